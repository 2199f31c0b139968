// The vector of simd_portable.h in AVX-512 F, BW, DQ, VL.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "isa/intrinsics.h"

namespace npuless::avx512 {
namespace {

inline constexpr int kLanes = 16;
using F32 = __m512;

inline F32 zero() {
  return _mm512_setzero_ps();
}

inline F32 broadcast(float x) {
  return _mm512_set1_ps(x);
}

inline F32 add(F32 a, F32 b) {
  return _mm512_add_ps(a, b);
}

inline F32 mul(F32 a, F32 b) {
  return _mm512_mul_ps(a, b);
}

inline F32 sub(F32 a, F32 b) {
  return _mm512_sub_ps(a, b);
}

inline F32 div(F32 a, F32 b) {
  return _mm512_div_ps(a, b);
}

inline F32 madd(F32 a, F32 b, F32 c) {
  return _mm512_fmadd_ps(a, b, c);
}

// max and min answer their second operand when either is NaN.
inline F32 clamp(F32 x, float low, float high) {
  return _mm512_min_ps(_mm512_set1_ps(high), _mm512_max_ps(_mm512_set1_ps(low), x));
}

inline F32 max(F32 a, F32 b) {
  return _mm512_max_ps(a, b);
}

inline F32 round_int(F32 x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// 2^n for integral |n| ≤ 126: adding 1.5 · 2^23 + 127 leaves n + 127 in the lowest bits.
inline F32 pow2(F32 n) {
  const __m512i bits = _mm512_castps_si512(_mm512_add_ps(n, _mm512_set1_ps(0x1.8p23f + 127.0f)));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 23));
}

// Not VSCALEFPS: SIMDe's stand-in for it overflows at 2^128 before the product, so the instruction
// could not be tested where it is missing.
inline F32 scale_pow2(F32 x, F32 n) {
  const F32 half = round_int(_mm512_mul_ps(n, _mm512_set1_ps(0.5f)));
  return _mm512_mul_ps(_mm512_mul_ps(x, pow2(half)), pow2(_mm512_sub_ps(n, half)));
}

inline float first_lane(F32 x) {
  return _mm_cvtss_f32(_mm512_castps512_ps128(x));
}

inline F32 widen_bf16(__m256i x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

// The bf16 result in the upper half of each lane, anything in the lower half. Not VCVTNEPS2BF16,
// which flushes subnormals.
inline __m512i round_bf16(F32 x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i carry = _mm512_add_epi32(_mm512_set1_epi32(0x7FFF), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_add_epi32(bits, carry), is_nan, bits,
                              _mm512_set1_epi32(0x400000));
}

inline __m256i narrow_bf16(F32 x) {
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(round_bf16(x), 16));
}

inline __m256i narrow_f16(F32 x) {
  return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline __m256i load_u16(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

inline void store_u16(void* p, __m256i x) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), x);
}

inline F32 load(const float* p) {
  return _mm512_loadu_ps(p);
}

inline F32 load(const bf16* p) {
  return widen_bf16(load_u16(p));
}

inline F32 load(const f16* p) {
  return _mm512_cvtph_ps(load_u16(p));
}

inline void store(float* p, F32 x) {
  _mm512_storeu_ps(p, x);
}

inline void store(bf16* p, F32 x) {
  store_u16(p, narrow_bf16(x));
}

inline void store(f16* p, F32 x) {
  store_u16(p, narrow_f16(x));
}

inline __mmask16 first_lanes(int count) {
  return static_cast<__mmask16>((1u << count) - 1u);
}

inline F32 load_partial(const float* p, int count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
}

inline F32 load_partial(const bf16* p, int count) {
  return widen_bf16(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}

inline F32 load_partial(const f16* p, int count) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}

inline void store_partial(float* p, F32 x, int count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), x);
}

inline void store_partial(bf16* p, F32 x, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), narrow_bf16(x));
}

inline void store_partial(f16* p, F32 x, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), narrow_f16(x));
}

inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

inline void stream(float* p, F32 x) {
  _mm512_stream_ps(p, x);
}

inline void stream(bf16* p, F32 x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(x));
}

inline void stream(f16* p, F32 x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow_f16(x));
}

inline void stream_fence() {
  _mm_sfence();
}

#include "isa/pair.inl"

inline Pair load_pair(const bf16* p) {
  const __m512i x = _mm512_loadu_si512(p);
  return {_mm512_castsi512_ps(_mm512_slli_epi32(x, 16)),
          _mm512_castsi512_ps(_mm512_and_si512(x, _mm512_set1_epi32(-0x10000)))};
}

// For NaN, whose carry must not reach the sign.
[[gnu::noinline, gnu::cold]] __m512i narrow_bf16_lanes(Pair x) {
  return _mm512_or_si512(_mm512_srli_epi32(round_bf16(x.first), 16),
                         _mm512_and_si512(round_bf16(x.second), _mm512_set1_epi32(-0x10000)));
}

// As in simd_avx2.h.
inline __m512i narrow_bf16(Pair x) {
  constexpr __mmask32 kOdd = 0xAAAAAAAA;
  const __m512i even = _mm512_castps_si512(x.first);
  const __m512i odd = _mm512_castps_si512(x.second);
  const __m512i kept = _mm512_mask_blend_epi16(kOdd, _mm512_srli_epi32(even, 16), odd);
  const __m512i cut = _mm512_mask_blend_epi16(kOdd, even, _mm512_slli_epi32(odd, 16));
  const __m512i last_bit = _mm512_and_si512(kept, _mm512_set1_epi16(1));
  const __m512i half = _mm512_or_si512(last_bit, _mm512_set1_epi16(0x7FFE));
  const __m512i carry = _mm512_srli_epi16(_mm512_avg_epu16(cut, half), 15);
  const __mmask16 has_nan = _mm512_cmp_ps_mask(x.first, x.second, _CMP_UNORD_Q);
  if (__builtin_expect(has_nan != 0, 0)) return narrow_bf16_lanes(x);
  return _mm512_add_epi16(kept, carry);
}

inline void store_pair(bf16* p, Pair x) {
  _mm512_storeu_si512(p, narrow_bf16(x));
}

inline void stream_pair(bf16* p, Pair x) {
  _mm512_stream_ps(reinterpret_cast<float*>(p), _mm512_castsi512_ps(narrow_bf16(x)));
}

}  // namespace
}  // namespace npuless::avx512
