// Any compiler target: plain loops that the vectoriser turns into what the baseline has.
#include <cstdint>

#include "gemm/engine.h"

namespace npuless::portable {
namespace {

#include "gemm/multiply.inl"
#include "gemm/pack.inl"

static float float_of_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

struct FromFloat32 {
  using Source = float;
  using Packed = float;
  static constexpr int kUnit = 1;
  static constexpr int kQuad = 0;
  static float convert(float x) { return x; }
  static float scale(float x, float factor) { return x * factor; }
};

struct FromBfloat16 : FromFloat32 {
  using Source = uint16_t;
  static float convert(uint16_t x) { return float_of_bits(static_cast<uint32_t>(x) << 16); }
  static float scale(uint16_t x, float factor) { return convert(x) * factor; }
};

struct FromFloat16 : FromFloat32 {
  using Source = uint16_t;
  static float convert(uint16_t x) {
    const uint32_t sign = static_cast<uint32_t>(x & 0x8000) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(x & 0x7FFF) << 13;
    if (magnitude >= 0x0F800000) {  // infinity and NaN
      return float_of_bits(sign | 0x70000000 | magnitude | (magnitude > 0x0F800000 ? 0x400000 : 0));
    }
    // The exponent is 112 short; a product by 2^112 is exact and normalises subnormals as well.
    const float value = float_of_bits(magnitude) * 0x1p112f;
    return (x & 0x8000) != 0 ? -value : value;
  }
  static float scale(uint16_t x, float factor) { return convert(x) * factor; }
};

// 4 × 8 accumulators fill half of a 16-register file of 128-bit vectors, leaving room for a row of
// B and the broadcast.
struct Tile {
  using Packed = float;
  static constexpr int kMr = 4;
  static constexpr int kNr = 8;
  static constexpr int kUnit = 1;

  static void run(int64_t groups, const float* __restrict a, const float* __restrict b, float* c,
                  int64_t c_stride, bool accumulate) {
    float sum[kMr][kNr] = {};
    for (int64_t k = 0; k < groups; ++k, a += kMr, b += kNr) {
      for (int i = 0; i < kMr; ++i) {
        for (int j = 0; j < kNr; ++j) sum[i][j] += a[i] * b[j];
      }
    }
    for (int i = 0; i < kMr; ++i) {
      float* row = c + i * c_stride;
      for (int j = 0; j < kNr; ++j) row[j] = accumulate ? row[j] + sum[i][j] : sum[i][j];
    }
  }
};

}  // namespace

// kc: one panel of B, 240 × 8 × 4 bytes, is a quarter of a 32 KiB first-level cache; 240 divides
// the loss operators' vocabulary panels.
constinit const gemm::Engine gemm_engine = {
    Tile::kMr,
    Tile::kNr,
    240,
    Tile::kUnit,
    sizeof(Tile::Packed),
    {&pack<FromBfloat16>, &pack<FromFloat16>, &pack<FromFloat32>},
    &multiply_blocks<Tile>};

}  // namespace npuless::portable
