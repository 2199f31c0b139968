#include "gemm/blocked.h"

#include <cstring>

#include "base/math.h"
#include "base/parallel.h"
#include "base/workspace.h"
#include "gemm/engines.h"

namespace npuless::gemm {
namespace {

constexpr int64_t kMinColumns = 480;
constexpr int64_t kMaxColumns = 1920;
// Enough pieces that the last ones do not leave workers idle.
constexpr int64_t kWantedPieces = 16;

int64_t source_bytes(Source source) {
  return source == Source::kFloat32 ? 4 : 2;
}

// The operand from a line and a k on.
Operand part_of(Operand operand, Source source, int64_t line, int64_t k) {
  const int64_t offset = line * operand.line_stride + k * operand.k_stride;
  operand.data = static_cast<const char*>(operand.data) + offset * source_bytes(source);
  if (operand.k_scale != nullptr) operand.k_scale += k;
  return operand;
}

// The product over an empty k.
void sum_nothing(const Engine& engine, int64_t rows, int64_t cols, float* c, int64_t c_stride,
                 bool accumulate) {
  if (accumulate) return;
  const size_t bytes = static_cast<size_t>(round_up(cols, engine.nr)) * sizeof(float);
  for (int64_t i = 0; i < rows; ++i) std::memset(c + i * c_stride, 0, bytes);
}

}  // namespace

int64_t Blocking::pieces() const {
  return ceil_div(rows, kRowBlock) * ceil_div(cols, col_block);
}

Blocking choose_blocking(int64_t rows, int64_t cols, int64_t unit) {
  const int64_t across = max64(1, ceil_div(kWantedPieces, ceil_div(rows, kRowBlock)));
  const int64_t wanted = round_up(ceil_div(cols, across), unit);
  const int64_t low = round_up(kMinColumns, unit);
  const int64_t high = max64(unit, kMaxColumns / unit * unit);
  return {rows, cols, min64(high, max64(low, wanted))};
}

Block block_at(const Blocking& blocking, int64_t index) {
  const int64_t across = ceil_div(blocking.cols, blocking.col_block);
  const int64_t row = index / across * kRowBlock;
  const int64_t col = index % across * blocking.col_block;
  return {row, min64(kRowBlock, blocking.rows - row), col,
          min64(blocking.col_block, blocking.cols - col)};
}

int64_t packed_block_bytes(const Engine& engine) {
  return round_up(kRowBlock * engine.kc * engine.element_bytes, kWorkspaceAlign);
}

int64_t tile_floats(const Engine& engine, int64_t col_block) {
  return kRowBlock * round_up(col_block, engine.nr);
}

int64_t packed_bytes(const Engine& engine, int64_t lines, int64_t k, int width) {
  return packed_size(engine, lines, k, width) * engine.element_bytes;
}

const unsigned char* panel_at(const Engine& engine, const unsigned char* packed, int64_t line,
                              int64_t k) {
  return packed + line * padded_k(engine, k) * engine.element_bytes;
}

void pack_b(const Engine& engine, int threads, const Matrix& matrix, bool lines_are_rows,
            const float* k_scale, unsigned char* packed) {
  const int64_t lines = lines_are_rows ? matrix.rows : matrix.cols;
  const int64_t k = lines_are_rows ? matrix.cols : matrix.rows;
  const int64_t line_stride = lines_are_rows ? matrix.row_stride : matrix.col_stride;
  const int64_t k_stride = lines_are_rows ? matrix.col_stride : matrix.row_stride;
  const PackFn pack = engine.pack[static_cast<int>(source_of(matrix.dtype))];
  // Four panels at a time: rows of a matrix packed along its columns are read in whole lines.
  const int64_t step = 4 * engine.nr;
  parallel_for(threads, ceil_div(lines, step), [&](int64_t index, int) {
    const int64_t line = index * step;
    const void* first = lines_are_rows ? element(matrix, line, 0) : element(matrix, 0, line);
    pack({first, line_stride, k_stride, k_scale}, min64(step, lines - line), k, engine.nr,
         const_cast<unsigned char*>(panel_at(engine, packed, line, k)));
  });
}

void multiply(const Engine& engine, const Rows& a, const unsigned char* b, int64_t cols,
              unsigned char* block, float* c, int64_t c_stride, bool accumulate) {
  if (a.k == 0) return sum_nothing(engine, a.rows, cols, c, c_stride, accumulate);
  const PackFn pack = engine.pack[static_cast<int>(a.source)];
  for (int64_t k = 0; k < a.k; k += engine.kc) {
    const int64_t depth = min64(engine.kc, a.k - k);
    pack(part_of(a.operand, a.source, 0, k), a.rows, depth, engine.mr, block);
    engine.multiply({a.rows, cols, depth, block, b + k * engine.nr * engine.element_bytes,
                     panel_stride(engine, depth, engine.mr), panel_stride(engine, a.k, engine.nr),
                     c, c_stride, accumulate || k > 0});
  }
}

int64_t streamed_block_bytes(const Engine& engine) {
  return round_up(streamed_columns(engine) * engine.kc * engine.element_bytes, kWorkspaceAlign);
}

void pack_a(const Engine& engine, int threads, const Rows& a, unsigned char* packed) {
  const PackFn pack = engine.pack[static_cast<int>(a.source)];
  parallel_for(threads, ceil_div(a.rows, engine.mr), [&](int64_t index, int) {
    const int64_t row = index * engine.mr;
    pack(part_of(a.operand, a.source, row, 0), min64(engine.mr, a.rows - row), a.k, engine.mr,
         packed + row * padded_k(engine, a.k) * engine.element_bytes);
  });
}

void multiply_streamed(const Engine& engine, const Streamed& p, unsigned char* block, float* c,
                       int64_t c_stride, bool accumulate) {
  if (p.k == 0) return sum_nothing(engine, p.rows, p.cols, c, c_stride, accumulate);
  const PackFn pack = engine.pack[static_cast<int>(p.source)];
  for (int64_t col = 0; col < p.cols; col += streamed_columns(engine)) {
    const int64_t cols = min64(streamed_columns(engine), p.cols - col);
    for (int64_t k = 0; k < p.k; k += engine.kc) {
      const int64_t depth = min64(engine.kc, p.k - k);
      pack(part_of(p.b, p.source, col, k), cols, depth, engine.nr, block);
      engine.multiply({p.rows, cols, depth, p.a + k * engine.mr * engine.element_bytes, block,
                       panel_stride(engine, p.k, engine.mr), panel_stride(engine, depth, engine.nr),
                       c + col, c_stride, accumulate || k > 0});
    }
  }
}

}  // namespace npuless::gemm
