// AVX-512 intrinsics that SIMDe 0.7.4 lacks, in terms of AVX2, for isa/intrinsics.h only.
#pragma once

#include <cstdint>

namespace npuless::simde_missing {
namespace {

inline simde__m512i cvtepu16_epi32(__m256i x) {
  simde__m512i_private wide;
  wide.m256i[0] = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(x));
  wide.m256i[1] = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(x, 1));
  return simde__m512i_from_private(wide);
}

inline __m256i cvtepi32_epi16(simde__m512i x) {
  const simde__m512i_private wide = simde__m512i_to_private(x);
  uint16_t lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = static_cast<uint16_t>(wide.i32[i]);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes));
}

inline simde__m512 cvtph_ps(__m256i x) {
  simde__m512_private wide;
  wide.m256[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
  wide.m256[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
  return simde__m512_from_private(wide);
}

inline __m256i cvtps_ph_nearest(simde__m512 x) {
  const simde__m512_private wide = simde__m512_to_private(x);
  const __m128i low = _mm256_cvtps_ph(wide.m256[0], 0);
  const __m128i high = _mm256_cvtps_ph(wide.m256[1], 0);
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

// Lanes whose bit is clear are neither read nor written, as the instructions promise.
template <class T>
inline void masked_copy(T* to, const T* from, unsigned mask) {
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1u) != 0) to[i] = from[i];
  }
}

inline simde__m512 maskz_loadu_ps(unsigned mask, const void* p) {
  float lanes[16] = {};
  masked_copy(lanes, static_cast<const float*>(p), mask);
  return simde_mm512_loadu_ps(lanes);
}

inline void mask_storeu_ps(void* p, unsigned mask, simde__m512 x) {
  float lanes[16];
  simde_mm512_storeu_ps(lanes, x);
  masked_copy(static_cast<float*>(p), lanes, mask);
}

inline __m256i maskz_loadu_epi16(unsigned mask, const void* p) {
  uint16_t lanes[16] = {};
  masked_copy(lanes, static_cast<const uint16_t*>(p), mask);
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes));
}

inline void mask_storeu_epi16(void* p, unsigned mask, __m256i x) {
  uint16_t lanes[16];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), x);
  masked_copy(static_cast<uint16_t*>(p), lanes, mask);
}

inline void stream_ps(float* p, simde__m512 x) {
  const simde__m512_private wide = simde__m512_to_private(x);
  _mm256_stream_ps(p, wide.m256[0]);
  _mm256_stream_ps(p + 8, wide.m256[1]);
}

}  // namespace
}  // namespace npuless::simde_missing

#define _mm512_cvtepu16_epi32(x) ::npuless::simde_missing::cvtepu16_epi32(x)
#define _mm512_cvtepi32_epi16(x) ::npuless::simde_missing::cvtepi32_epi16(x)
#define _mm512_cvtph_ps(x) ::npuless::simde_missing::cvtph_ps(x)
#undef _mm512_cvtps_ph  // the compiler makes it a macro when it does not optimise
#define _mm512_cvtps_ph(x, rounding) ::npuless::simde_missing::cvtps_ph_nearest(x)
#define _mm512_maskz_loadu_ps(k, p) ::npuless::simde_missing::maskz_loadu_ps(k, p)
#define _mm512_mask_storeu_ps(p, k, x) ::npuless::simde_missing::mask_storeu_ps(p, k, x)
#define _mm256_maskz_loadu_epi16(k, p) ::npuless::simde_missing::maskz_loadu_epi16(k, p)
#define _mm256_mask_storeu_epi16(p, k, x) ::npuless::simde_missing::mask_storeu_epi16(p, k, x)
#define _mm512_stream_ps(p, x) ::npuless::simde_missing::stream_ps(p, x)
