// AVX2 + FMA: fp32 products, 16-bit operands widened while packing.
#include <cstdint>

#include "gemm/engine.h"
#include "isa/intrinsics.h"

namespace npuless::avx2 {
namespace {

#include "gemm/multiply.inl"
#include "gemm/pack.inl"
#include "gemm/pack_x86.inl"

// 4 × 24: 12 accumulators, 3 registers of B and one broadcast are exactly the 16 there are; 12
// independent sums cover two FMA pipes of latency 4–5, and 7 loads per 12 FMA stay below two a
// cycle (6 × 16 needs 8).
struct Tile {
  using Packed = float;
  static constexpr int kMr = 4;
  static constexpr int kNr = 24;
  static constexpr int kUnit = 1;

  static void run(int64_t groups, const float* a, const float* b, float* c, int64_t c_stride,
                  bool accumulate) {
    __m256 sum[kMr][3];
    for (auto& row : sum) row[0] = row[1] = row[2] = _mm256_setzero_ps();
#pragma GCC unroll 4
    for (int64_t k = 0; k < groups; ++k, a += kMr, b += kNr) {
      const __m256 b0 = _mm256_loadu_ps(b);
      const __m256 b1 = _mm256_loadu_ps(b + 8);
      const __m256 b2 = _mm256_loadu_ps(b + 16);
#pragma GCC unroll 4
      for (int i = 0; i < kMr; ++i) {
        const __m256 ai = _mm256_broadcast_ss(a + i);
        sum[i][0] = _mm256_fmadd_ps(ai, b0, sum[i][0]);
        sum[i][1] = _mm256_fmadd_ps(ai, b1, sum[i][1]);
        sum[i][2] = _mm256_fmadd_ps(ai, b2, sum[i][2]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < kMr; ++i, c += c_stride) {
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        float* out = c + 8 * j;
        const __m256 old = accumulate ? _mm256_loadu_ps(out) : _mm256_setzero_ps();
        _mm256_storeu_ps(out, _mm256_add_ps(old, sum[i][j]));
      }
    }
  }
};

}  // namespace

// kc: a B micro-panel of 240 × 24 × 4 = 23 KiB and an A micro-panel of 4 KiB share a 32 KiB
// first-level cache; 240 divides the loss operators' vocabulary panels.
constinit const gemm::Engine gemm_engine = {
    Tile::kMr,
    Tile::kNr,
    240,
    Tile::kUnit,
    sizeof(Tile::Packed),
    {&pack<ToFloat32<Bfloat16>>, &pack<ToFloat32<Float16>>, &pack<ToFloat32<Float32>>},
    &multiply_blocks<Tile>};

}  // namespace npuless::avx2
