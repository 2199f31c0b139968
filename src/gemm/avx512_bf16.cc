// AVX-512 BF16: bf16 × bf16 → fp32 dot products of pairs along k. The instruction treats subnormal
// inputs and results as zero and rounds to nearest even whatever the environment.
#include <cstdint>

#include "gemm/engine.h"
#include "isa/intrinsics.h"

namespace npuless::avx512_bf16 {
namespace {

#include "gemm/multiply.inl"
#include "gemm/pack.inl"

struct PairBfloat16 {
  using Source = uint16_t;
  using Packed = uint16_t;
  static constexpr int kUnit = 2;
  static constexpr int kQuad = 16;

  static uint16_t convert(uint16_t x) { return x; }

  // By a power of two: exact unless it leaves the normal range, then rounded to nearest even.
  static uint16_t scale(uint16_t x, float factor) {
    const uint32_t wide = uint32_t{x} << 16;
    float value;
    __builtin_memcpy(&value, &wide, sizeof(value));
    value *= factor;
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x40);
    return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  }

  // A pair is moved as one 32-bit value.
  static void transpose4(const uint16_t* line, int64_t line_stride, uint16_t* out, int64_t group) {
    const auto load = [&](int64_t i) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + i * line_stride));
    };
    const __m256i a = load(0);
    const __m256i b = load(1);
    const __m256i c = load(2);
    const __m256i d = load(3);
    const __m256i ab_low = _mm256_unpacklo_epi32(a, b);
    const __m256i ab_high = _mm256_unpackhi_epi32(a, b);
    const __m256i cd_low = _mm256_unpacklo_epi32(c, d);
    const __m256i cd_high = _mm256_unpackhi_epi32(c, d);
    const __m256i pairs[4] = {
        _mm256_unpacklo_epi64(ab_low, cd_low), _mm256_unpackhi_epi64(ab_low, cd_low),
        _mm256_unpacklo_epi64(ab_high, cd_high), _mm256_unpackhi_epi64(ab_high, cd_high)};
    for (int i = 0; i < 4; ++i) {
      store(out + i * group, _mm256_castsi256_si128(pairs[i]));
      store(out + (i + 4) * group, _mm256_extracti128_si256(pairs[i], 1));
    }
  }

  static void copy4(const uint16_t* x, int64_t k_stride, uint16_t* out) {
    const __m128i even = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x));
    const __m128i odd = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(x + k_stride));
    store(out, _mm_unpacklo_epi16(even, odd));
  }

  static void copy8(const uint16_t* x, int64_t k_stride, uint16_t* out) {
    const __m128i even = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
    const __m128i odd = _mm_loadu_si128(reinterpret_cast<const __m128i*>(x + k_stride));
    store(out, _mm_unpacklo_epi16(even, odd));
    store(out + 8, _mm_unpackhi_epi16(even, odd));
  }

 private:
  static void store(uint16_t* out, __m128i pairs) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), pairs);
  }
};

static __m512bh pairs(__m512i bits) {
  __m512bh value;
  static_assert(sizeof(value) == sizeof(bits));
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

// 8 × 48: 24 accumulators, 3 registers of B and one broadcast pair of A of the 32; 11 loads per 24
// dot products stay below one per product, which embedded broadcasts would not.
struct Tile {
  using Packed = uint16_t;
  static constexpr int kMr = 8;
  static constexpr int kNr = 48;
  static constexpr int kUnit = 2;

  static void run(int64_t groups, const uint16_t* a, const uint16_t* b, float* c, int64_t c_stride,
                  bool accumulate) {
    __m512 sum[kMr][3];
    for (auto& row : sum) row[0] = row[1] = row[2] = _mm512_setzero_ps();
#pragma GCC unroll 2
    for (int64_t k = 0; k < groups; ++k, a += kUnit * kMr, b += kUnit * kNr) {
      const __m512bh b0 = pairs(_mm512_loadu_si512(b));
      const __m512bh b1 = pairs(_mm512_loadu_si512(b + 32));
      const __m512bh b2 = pairs(_mm512_loadu_si512(b + 64));
#pragma GCC unroll 8
      for (int i = 0; i < kMr; ++i) {
        int pair;
        __builtin_memcpy(&pair, a + kUnit * i, sizeof(pair));
        const __m512bh ai = pairs(_mm512_set1_epi32(pair));
        sum[i][0] = _mm512_dpbf16_ps(sum[i][0], ai, b0);
        sum[i][1] = _mm512_dpbf16_ps(sum[i][1], ai, b1);
        sum[i][2] = _mm512_dpbf16_ps(sum[i][2], ai, b2);
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

// kc: a B micro-panel of 480 × 48 × 2 = 45 KiB, as on avx512; 480 divides the loss operators'
// vocabulary panels.
constinit const gemm::Engine gemm_engine = {Tile::kMr,
                                            Tile::kNr,
                                            480,
                                            Tile::kUnit,
                                            sizeof(Tile::Packed),
                                            {&pack<PairBfloat16>, nullptr, nullptr},
                                            &multiply_blocks<Tile>};

}  // namespace npuless::avx512_bf16
