// Products larger than the caches, on top of an engine: cutting the result into pieces that are
// computed independently, and packing A block by block along k.
#pragma once

#include <cstdint>

#include "base/view.h"
#include "gemm/engine.h"

namespace npuless::gemm {

// A block of A is kRowBlock × kc packed elements, about 120 KiB: half of a small second-level
// cache. A multiple of every MR.
inline constexpr int64_t kRowBlock = 128;

// The pieces of a result: kRowBlock × col_block each.
struct Blocking {
  int64_t rows;
  int64_t cols;
  int64_t col_block;

  int64_t pieces() const;
};

// Column blocks are multiples of `unit`, at least 480 and at most 1920 columns where the result is
// that wide: enough that packing A, once per piece, is below 2 % of its use.
Blocking choose_blocking(int64_t rows, int64_t cols, int64_t unit);

// One of them. Columns vary fastest: neighbouring pieces read the same rows of A.
struct Block {
  int64_t row;
  int64_t rows;
  int64_t col;
  int64_t cols;
};
Block block_at(const Blocking& blocking, int64_t index);

// Scratch of one worker.
int64_t packed_block_bytes(const Engine& engine);
int64_t tile_floats(const Engine& engine, int64_t col_block);

// Bytes of a whole packed operand.
int64_t packed_bytes(const Engine& engine, int64_t lines, int64_t k, int width);

// B packed by pack_b(): where its panel that starts at `line` begins.
const unsigned char* panel_at(const Engine& engine, const unsigned char* packed, int64_t line,
                              int64_t k);

// Packs the matrix as B on `threads` threads: lines are its rows (k along the columns) or its
// columns (k along the rows). k_scale as in Operand.
void pack_b(const Engine& engine, int threads, const Matrix& matrix, bool lines_are_rows,
            const float* k_scale, unsigned char* packed);

// Rows of A; elements of `source` type.
struct Rows {
  Operand operand;
  Source source;
  int64_t rows;
  int64_t k;
};

// c[rows, cols] = or += A · B. `b` starts at the first column's panel; `block` is the worker's
// packed_block_bytes(); c has room for whole tiles.
void multiply(const Engine& engine, const Rows& a, const unsigned char* b, int64_t cols,
              unsigned char* block, float* c, int64_t c_stride, bool accumulate);

// --- few rows -----------------------------------------------------------------------------------
// With no more than kRowBlock rows of A, each panel of B would be packed to memory for one use. So
// A is packed instead, once and for all k, and B a few panels at a time, in the cache of the worker
// that multiplies them at once. The order of every sum is the same.

constexpr bool has_few_rows(int64_t rows) {
  return rows <= kRowBlock;
}

// Columns packed at once: kc of them are 180 KiB on AVX2 and 360 on AVX-512, which share a
// second-level cache of 512 KiB, 1 MiB or more with the panels of A that stream past them.
constexpr int64_t streamed_columns(const Engine& engine) {
  return 8 * engine.nr;
}

// Scratch of one worker for the columns packed at once.
int64_t streamed_block_bytes(const Engine& engine);

// Packs A for all k: packed_bytes(engine, rows, k, engine.mr).
void pack_a(const Engine& engine, int threads, const Rows& a, unsigned char* packed);

// c[rows, cols] = or += A · B, both k deep; A is packed by pack_a(), `b` lists the columns as
// lines; `block` is the worker's streamed_block_bytes().
struct Streamed {
  const unsigned char* a;
  int64_t rows;
  Operand b;
  Source source;
  int64_t cols;
  int64_t k;
};
void multiply_streamed(const Engine& engine, const Streamed& product, unsigned char* block,
                       float* c, int64_t c_stride, bool accumulate);

}  // namespace npuless::gemm
