// The vector of simd_portable.h in AVX2 and F16C.
#pragma once

#include <cstdint>

#include "base/dtype.h"
#include "isa/intrinsics.h"

namespace npuless::avx2 {
namespace {

inline constexpr int kLanes = 8;
using F32 = __m256;

inline F32 zero() {
  return _mm256_setzero_ps();
}

inline F32 broadcast(float x) {
  return _mm256_set1_ps(x);
}

inline F32 add(F32 a, F32 b) {
  return _mm256_add_ps(a, b);
}

inline F32 mul(F32 a, F32 b) {
  return _mm256_mul_ps(a, b);
}

inline F32 sub(F32 a, F32 b) {
  return _mm256_sub_ps(a, b);
}

inline F32 div(F32 a, F32 b) {
  return _mm256_div_ps(a, b);
}

inline F32 madd(F32 a, F32 b, F32 c) {
  return _mm256_fmadd_ps(a, b, c);
}

// max and min answer their second operand when either is NaN.
inline F32 clamp(F32 x, float low, float high) {
  return _mm256_min_ps(_mm256_set1_ps(high), _mm256_max_ps(_mm256_set1_ps(low), x));
}

inline F32 max(F32 a, F32 b) {
  return _mm256_max_ps(a, b);
}

inline F32 round_int(F32 x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline F32 pow2(__m256i n) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

inline F32 scale_pow2(F32 x, F32 n) {
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const __m256i rest = _mm256_sub_epi32(whole, half);
  return _mm256_mul_ps(_mm256_mul_ps(x, pow2(half)), pow2(rest));
}

inline float first_lane(F32 x) {
  return _mm256_cvtss_f32(x);
}

inline F32 widen_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}

// The bf16 result in the upper half of each lane, anything in the lower half.
inline __m256i round_bf16(F32 x) {
  const __m256i bits = _mm256_castps_si256(x);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i carry = _mm256_add_epi32(_mm256_set1_epi32(0x7FFF), odd);
  const __m256i nan = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(_mm256_add_epi32(bits, carry), nan, is_nan);
}

inline __m128i narrow_bf16(F32 x) {
  const __m256i result = _mm256_srli_epi32(round_bf16(x), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(result), _mm256_extracti128_si256(result, 1));
}

inline __m128i narrow_f16(F32 x) {
  return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline __m128i load_u16(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}

inline void store_u16(void* p, __m128i x) {
  _mm_storeu_si128(static_cast<__m128i*>(p), x);
}

inline F32 load(const float* p) {
  return _mm256_loadu_ps(p);
}

inline F32 load(const bf16* p) {
  return widen_bf16(load_u16(p));
}

inline F32 load(const f16* p) {
  return _mm256_cvtph_ps(load_u16(p));
}

inline void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x);
}

inline void store(bf16* p, F32 x) {
  store_u16(p, narrow_bf16(x));
}

inline void store(f16* p, F32 x) {
  store_u16(p, narrow_f16(x));
}

// By powers of two: a call to memcpy would cost more than the whole tail.
template <class T>
inline void copy_lanes(T* to, const T* from, int count) {
  if ((count & 4) != 0) {
    __builtin_memcpy(to, from, 4 * sizeof(T));
    to += 4;
    from += 4;
  }
  if ((count & 2) != 0) {
    __builtin_memcpy(to, from, 2 * sizeof(T));
    to += 2;
    from += 2;
  }
  if ((count & 1) != 0) __builtin_memcpy(to, from, sizeof(T));
}

template <class T>
inline F32 load_partial(const T* p, int count) {
  T lanes[kLanes] = {};
  copy_lanes(lanes, p, count);
  return load(lanes);
}

template <class T>
inline void store_partial(T* p, F32 x, int count) {
  T lanes[kLanes];
  store(lanes, x);
  copy_lanes(p, lanes, count);
}

inline void prefetch(const void* p) {
  _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0);
}

inline void stream(float* p, F32 x) {
  _mm256_stream_ps(p, x);
}

inline void stream(bf16* p, F32 x) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow_bf16(x));
}

inline void stream(f16* p, F32 x) {
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrow_f16(x));
}

inline void stream_fence() {
  _mm_sfence();
}

#include "isa/pair.inl"

inline Pair load_pair(const bf16* p) {
  const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(x, 16)),
          _mm256_castsi256_ps(_mm256_and_si256(x, _mm256_set1_epi32(-0x10000)))};
}

// For NaN, whose carry must not reach the sign.
[[gnu::noinline, gnu::cold]] __m256i narrow_bf16_lanes(Pair x) {
  return _mm256_blend_epi16(_mm256_srli_epi32(round_bf16(x.first), 16), round_bf16(x.second), 0xAA);
}

// Both halves of every lane at once: `kept` and `cut` hold the upper and lower 16 bits of all
// elements in order, and the average's top bit is the carry of cut + 0x7FFF + (kept's last bit).
inline __m256i narrow_bf16(Pair x) {
  const __m256i even = _mm256_castps_si256(x.first);
  const __m256i odd = _mm256_castps_si256(x.second);
  const __m256i kept = _mm256_blend_epi16(_mm256_srli_epi32(even, 16), odd, 0xAA);
  const __m256i cut = _mm256_blend_epi16(even, _mm256_slli_epi32(odd, 16), 0xAA);
  const __m256i last_bit = _mm256_and_si256(kept, _mm256_set1_epi16(1));
  const __m256i half = _mm256_or_si256(last_bit, _mm256_set1_epi16(0x7FFE));
  const __m256i carry = _mm256_srli_epi16(_mm256_avg_epu16(cut, half), 15);
  const F32 has_nan = _mm256_cmp_ps(x.first, x.second, _CMP_UNORD_Q);
  if (__builtin_expect(_mm256_movemask_ps(has_nan) != 0, 0)) return narrow_bf16_lanes(x);
  return _mm256_add_epi16(kept, carry);
}

inline void store_pair(bf16* p, Pair x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(x));
}

inline void stream_pair(bf16* p, Pair x) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrow_bf16(x));
}

}  // namespace
}  // namespace npuless::avx2
