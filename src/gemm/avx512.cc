// AVX-512: fp32 products, 16-bit operands widened while packing.
#include <cstdint>

#include "gemm/engine.h"
#include "isa/intrinsics.h"

namespace npuless::avx512 {
namespace {

#include "gemm/multiply.inl"
#include "gemm/pack.inl"
#include "gemm/pack_x86.inl"

// 8 × 48: 24 accumulators, 3 registers of B and one broadcast of the 32; 11 loads per 24 FMA stay
// below one per FMA, which embedded broadcasts would not.
// 11 loads per 24 FMA stay below one load per FMA pipe and cycle.
struct Tile {
  using Packed = float;
  static constexpr int kMr = 8;
  static constexpr int kNr = 48;
  static constexpr int kUnit = 1;

  static void run(int64_t groups, const float* a, const float* b, float* c, int64_t c_stride,
                  bool accumulate) {
    __m512 sum[kMr][3];
    for (auto& row : sum) row[0] = row[1] = row[2] = _mm512_setzero_ps();
#pragma GCC unroll 2
    for (int64_t k = 0; k < groups; ++k, a += kMr, b += kNr) {
      const __m512 b0 = _mm512_loadu_ps(b);
      const __m512 b1 = _mm512_loadu_ps(b + 16);
      const __m512 b2 = _mm512_loadu_ps(b + 32);
#pragma GCC unroll 8
      for (int i = 0; i < kMr; ++i) {
        const __m512 ai = _mm512_set1_ps(a[i]);
        sum[i][0] = _mm512_fmadd_ps(ai, b0, sum[i][0]);
        sum[i][1] = _mm512_fmadd_ps(ai, b1, sum[i][1]);
        sum[i][2] = _mm512_fmadd_ps(ai, b2, sum[i][2]);
      }
    }
#pragma GCC unroll 8
    for (int i = 0; i < kMr; ++i, c += c_stride) {
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) {
        float* out = c + 16 * j;
        const __m512 old = accumulate ? _mm512_loadu_ps(out) : _mm512_setzero_ps();
        _mm512_storeu_ps(out, _mm512_add_ps(old, sum[i][j]));
      }
    }
  }
};

}  // namespace

// kc: a B micro-panel of 240 × 48 × 4 = 45 KiB fits the 48 KiB first-level caches of this level's
// machines nearly, and the second level feeds what does not; 240 divides the loss operators'
// vocabulary panels.
constinit const gemm::Engine gemm_engine = {
    Tile::kMr,
    Tile::kNr,
    240,
    Tile::kUnit,
    sizeof(Tile::Packed),
    {&pack<ToFloat32<Bfloat16>>, &pack<ToFloat32<Float16>>, &pack<ToFloat32<Float32>>},
    &multiply_blocks<Tile>};

}  // namespace npuless::avx512
