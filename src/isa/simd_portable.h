// One fp32 vector and what kernels do with it, for compilers' generic vectors: the contract that
// simd_avx2.h and simd_avx512.h repeat function by function with the same bits.
//
// A kernel is written once against these names and compiled inside each level's namespace. All
// functions have internal linkage, so that nothing compiled for one level can be linked into
// another. Loads and stores take any alignment unless said otherwise.
//
//   load / store          kLanes elements of float, bf16 or f16, widened to fp32 exactly / narrowed
//                         with one round to nearest even; subnormals kept, NaN stays NaN
//   load_partial / …      the first `count` < kLanes elements only; lanes beyond read as +0 and
//                         memory beyond is not touched
//   stream                a store past the caches to an address that is a multiple of its own
//                         kLanes elements; ordered for other threads by stream_fence()
//   load_pair / …         2 · kLanes elements as two vectors: the even and the odd ones of bf16,
//                         which need no shuffles, the lower and upper half of others
#pragma once

#include <cstdint>

#include "base/dtype.h"

#if defined(__SSE2__)
#include "isa/intrinsics.h"
#endif

namespace npuless::portable {
namespace {

inline constexpr int kLanes = 4;
using F32 = float __attribute__((vector_size(16)));
using U32 = uint32_t __attribute__((vector_size(16)));
using U16 = uint16_t __attribute__((vector_size(8)));

inline F32 zero() {
  return F32{};
}

inline F32 broadcast(float x) {
  return F32{x, x, x, x};
}

inline F32 add(F32 a, F32 b) {
  return a + b;
}

inline F32 mul(F32 a, F32 b) {
  return a * b;
}

inline F32 sub(F32 a, F32 b) {
  return a - b;
}

inline F32 div(F32 a, F32 b) {
  return a / b;
}

// a · b + c, fused where the level has the instruction: for GEMM-based operators only, whose bits
// are promised per level.
inline F32 madd(F32 a, F32 b, F32 c) {
  return a * b + c;
}

inline U32 bits_of(F32 x) {
  return __builtin_bit_cast(U32, x);
}

inline F32 float_of(U32 x) {
  return __builtin_bit_cast(F32, x);
}

// Comparisons of generic vectors answer all ones or all zeros per lane, as signed integers.
template <class Mask>
inline U32 select(Mask mask, U32 yes, U32 no) {
  const U32 m = __builtin_bit_cast(U32, mask);
  return (m & yes) | (~m & no);
}

// All ones where x > limit. Both below 2^31: signed, the one comparison that SSE2 has.
inline U32 above(U32 x, uint32_t limit) {
  using I32 = int32_t __attribute__((vector_size(16)));
  const auto signed_limit = static_cast<int32_t>(limit);
  return __builtin_bit_cast(U32, __builtin_bit_cast(I32, x) > signed_limit);
}

// x limited to [low, high]; NaN stays NaN.
inline F32 clamp(F32 x, float low, float high) {
  const U32 raised = select(x < broadcast(low), bits_of(broadcast(low)), bits_of(x));
  return float_of(select(x > broadcast(high), bits_of(broadcast(high)), raised));
}

// The larger lane by lane; b where either is NaN.
inline F32 max(F32 a, F32 b) {
  return float_of(select(a > b, bits_of(a), bits_of(b)));
}

// Nearest integer, for |x| < 2^22: adding 1.5 · 2^23 leaves no fraction bits.
inline F32 round_int(F32 x) {
  return (x + broadcast(0x1.8p23f)) - broadcast(0x1.8p23f);
}

// x · 2^n for integral |n| ≤ 252, in two steps so that subnormal results are rounded once and 2^128
// overflows.
inline F32 scale_pow2(F32 x, F32 n) {
  const U32 half = bits_of(n * broadcast(0.5f) + broadcast(0x1.8p23f));
  const F32 half_n = float_of(half) - broadcast(0x1.8p23f);
  const U32 rest = bits_of(n - half_n + broadcast(0x1.8p23f));
  return x * float_of((half + 127u) << 23) * float_of((rest + 127u) << 23);
}

inline float first_lane(F32 x) {
  return x[0];
}

inline F32 widen_bf16(U32 x) {
  return float_of(x << 16);
}

// The bf16 result in the upper half of each lane, anything in the lower half.
inline U32 round_bf16(F32 x) {
  const U32 bits = bits_of(x);
  return select(x != x, bits | 0x400000u, bits + 0x7FFFu + ((bits >> 16) & 1u));
}

inline U32 narrow_bf16(F32 x) {
  return round_bf16(x) >> 16;
}

inline F32 widen_f16(U32 x) {
  const U32 magnitude = (x & 0x7FFFu) << 13;
  // A subnormal is its mantissa over 2^24: placed below 2^-14, which is then taken off, exactly.
  const F32 base = broadcast(0x1p-14f);
  const U32 subnormal = bits_of(float_of(magnitude + bits_of(base)) - base);
  // Infinity and NaN move up twice: from exponent 31 to 255.
  const U32 special = above(magnitude, (31u << 23) - 1u) & (112u << 23);
  const U32 quiet = above(magnitude, 31u << 23) & 0x400000u;
  const U32 normal = (magnitude + (112u << 23) + special) | quiet;
  const U32 value = select(above(magnitude, (1u << 23) - 1u), normal, subnormal);
  return float_of(value | ((x & 0x8000u) << 16));
}

inline U32 narrow_f16(F32 x) {
  const U32 bits = bits_of(x);
  const U32 magnitude = bits & 0x7FFFFFFFu;
  const U32 normal = ((magnitude + 0xFFFu + ((magnitude >> 13) & 1u)) >> 13) - (112u << 10);
  // Below 2^-14 the adder rounds at 2^-24, the last bit of 0.5f.
  const U32 subnormal = bits_of(float_of(magnitude) + 0.5f) & 0x7FFu;
  const U32 nan = 0x7E00u | ((magnitude >> 13) & 0x3FFu);
  const U32 finite = select(magnitude < 0x38800000u, subnormal, normal);
  const U32 number = select(magnitude >= 0x477FF000u, U32{} + 0x7C00u, finite);
  return select(magnitude > 0x7F800000u, nan, number) | ((bits >> 16) & 0x8000u);
}

inline U32 load_u16(const void* p) {
  U16 x;
  __builtin_memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, U32);
}

inline void store_u16(void* p, U32 x) {
  const U16 low = __builtin_convertvector(x, U16);
  __builtin_memcpy(p, &low, sizeof low);
}

inline F32 load(const float* p) {
  F32 x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

inline F32 load(const bf16* p) {
  return widen_bf16(load_u16(p));
}

inline F32 load(const f16* p) {
  return widen_f16(load_u16(p));
}

inline void store(float* p, F32 x) {
  __builtin_memcpy(p, &x, sizeof x);
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
  __builtin_prefetch(p);
}

#if defined(__SSE2__)

inline void stream(float* p, F32 x) {
  _mm_stream_ps(p, x);
}

template <class T>
inline void stream(T* p, F32 x) {
  uint64_t bits;
  T lanes[kLanes];
  store(lanes, x);
  __builtin_memcpy(&bits, lanes, sizeof bits);
  _mm_stream_si64(reinterpret_cast<long long*>(p), static_cast<long long>(bits));
}

inline void stream_fence() {
  _mm_sfence();
}

#else

template <class T>
inline void stream(T* p, F32 x) {
  store(p, x);
}

inline void stream_fence() {}

#endif

#include "isa/pair.inl"

inline Pair load_pair(const bf16* p) {
  U32 x;
  __builtin_memcpy(&x, p, sizeof x);
  return {float_of(x << 16), float_of(x & 0xFFFF0000u)};
}

inline U32 narrow_bf16(Pair x) {
  return (round_bf16(x.first) >> 16) | (round_bf16(x.second) & 0xFFFF0000u);
}

inline void store_pair(bf16* p, Pair x) {
  const U32 narrowed = narrow_bf16(x);
  __builtin_memcpy(p, &narrowed, sizeof narrowed);
}

inline void stream_pair(bf16* p, Pair x) {
#if defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), __builtin_bit_cast(__m128i, narrow_bf16(x)));
#else
  store_pair(p, x);
#endif
}

}  // namespace
}  // namespace npuless::portable
