// Scalar conversions between fp32 and the two 16-bit formats: IEEE, round to nearest even,
// subnormals kept, NaN stays NaN (quiet, upper payload bits kept) – the same bits as F16C and as
// the vector narrowing in src/isa, which is what makes every ISA level agree.
#pragma once

#include <bit>
#include <cstdint>

#include "base/dtype.h"

namespace npuless {

inline float widen(float x) {
  return x;
}

inline float widen(bf16 x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
}

inline float widen(f16 x) {
  const uint32_t sign = static_cast<uint32_t>(x.bits & 0x8000u) << 16;
  const uint32_t exponent = (x.bits >> 10) & 0x1Fu;
  const uint32_t mantissa = x.bits & 0x3FFu;
  if (exponent == 0) {  // zero or subnormal: mantissa · 2^-24 is exact in fp32
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
  }
  if (exponent == 31) {
    const uint32_t quiet = mantissa != 0 ? 0x400000u : 0u;
    return std::bit_cast<float>(sign | 0x7F800000u | quiet | (mantissa << 13));
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

template <class T>
T narrow(float x);

template <>
inline float narrow<float>(float x) {
  return x;
}

template <>
inline bf16 narrow<bf16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) {
    return {static_cast<uint16_t>((bits >> 16) | 0x40u)};
  }
  return {static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16)};
}

template <>
inline f16 narrow<f16>(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return {static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu))};
  }
  if (magnitude >= 0x477FF000u) {  // 65520 and beyond round to infinity
    return {static_cast<uint16_t>(sign | 0x7C00u)};
  }
  if (magnitude < 0x38800000u) {  // below 2^-14: let the adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return {static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) & 0x7FFu))};
  }
  const uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return {static_cast<uint16_t>(sign | ((rounded >> 13) - (112u << 10)))};
}

}  // namespace npuless
