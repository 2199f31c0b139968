// The matrix-product engine of one ISA level and input type: packing and a blocked product.
//
// C[m, n] (+)= Σ_k A[m, k] · B[k, n], accumulated in fp32. Both operands are packed first:
//   A in panels of MR lines (rows of A), B in panels of NR lines (columns of B);
//   a panel holds, for each group of `k_unit` consecutive k, its lines' elements side by side:
//   [k / k_unit][line][k_unit]. fp32 engines have k_unit 1; the bf16 dot-product engine has 2.
// Missing lines and k are packed as zeros, so the product never handles edges: C must have room
// for whole MR × NR tiles.
//
// Each element of C is one sequential fp32 sum over k (pairs of k on the bf16 engine) inside one
// call, whatever m, n and its position: a token's result does not depend on the batch around it.
// Callers cut k in blocks of `kc` from 0; that cut, and nothing else, shapes the rounding.
//
// This header is included by the per-ISA files: plain types only.
#pragma once

#include <cstdint>

namespace npuless::gemm {

// `lines` × k elements of one operand, anywhere in memory. Strides in elements.
struct Operand {
  const void* data;
  int64_t line_stride;
  int64_t k_stride;
  // Null, or one factor per k, a power of two. Factor 0 packs +0 whatever the element holds, so
  // that a masked k drops out even when it is NaN or infinite.
  const float* k_scale;
};

enum class Source : int { kBfloat16, kFloat16, kFloat32 };
inline constexpr int kSources = 3;

// Packs `lines` × `k` elements into panels of `width` (the engine's mr or nr) lines, the panels
// `panel_stride(k, width)` elements apart.
using PackFn = void (*)(const Operand& source, int64_t lines, int64_t k, int width, void* panels);

struct Product {
  int64_t m;
  int64_t n;
  int64_t k;
  const void* a;  // packed, starting at the first k to use
  const void* b;
  int64_t a_panel_stride;  // in packed elements
  int64_t b_panel_stride;
  float* c;  // rows rounded up to mr, columns rounded up to nr
  int64_t c_stride;
  bool accumulate;  // false: C is overwritten
};

struct Engine {
  int mr;
  int nr;
  int kc;
  int k_unit;
  int element_bytes;      // of a packed element
  PackFn pack[kSources];  // null where the engine does not take the type
  void (*multiply)(const Product& product);
};

// --- sizes, in packed elements -----------------------------------------------------------------

constexpr int64_t padded_k(const Engine& engine, int64_t k) {
  return (k + engine.k_unit - 1) / engine.k_unit * engine.k_unit;
}
constexpr int64_t panel_stride(const Engine& engine, int64_t k, int width) {
  return padded_k(engine, k) * width;
}
constexpr int64_t packed_size(const Engine& engine, int64_t lines, int64_t k, int width) {
  return (lines + width - 1) / width * panel_stride(engine, k, width);
}

}  // namespace npuless::gemm

// One table per file; see engines.h for the choice.
namespace npuless::portable {
extern const gemm::Engine gemm_engine;
}
namespace npuless::avx2 {
extern const gemm::Engine gemm_engine;
}
namespace npuless::avx512 {
extern const gemm::Engine gemm_engine;
}
namespace npuless::avx512_bf16 {
extern const gemm::Engine gemm_engine;
}
