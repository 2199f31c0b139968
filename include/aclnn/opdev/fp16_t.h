// op::fp16_t: an IEEE binary16 number for host code, two bytes as the device sees them.
//
// It converts from every arithmetic type with one rounding (nearest, ties to even; overflow gives
// infinity) and to float exactly, from where C++ converts on. Arithmetic between two fp16_t gives
// the exact result rounded to fp16_t; mixed with another arithmetic type it is that type's
// operation with the float value. Compound assignment computes in double and rounds once.
// Comparisons compare the float values.
//
// One trap, as in CANN: constructing from a uint16_t takes raw bits, fp16_t(uint16_t{1}) is 2^-24.
// Assigning a uint16_t converts the number.
#ifndef NPULESS_ACLNN_OPDEV_FP16_T_H_
#define NPULESS_ACLNN_OPDEV_FP16_T_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#define FP16_EXP_BIAS 15
#define FP16_EXP_LEN 5
#define FP16_MAN_LEN 10
#define FP16_SIGN_INDEX 15
#define FP16_SIGN_MASK 0x8000
#define FP16_EXP_MASK 0x7C00
#define FP16_MAN_MASK 0x03FF
#define FP16_MAX 0x7BFF  // bits of 65504
#define FP16_MIN 0xFBFF  // bits of -65504

namespace op {
namespace fp16_detail {

inline uint16_t bits_from(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = static_cast<uint32_t>(bits >> 48) & FP16_SIGN_MASK;
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  uint64_t mantissa = magnitude & ((uint64_t{1} << 52) - 1);
  if (exponent == 1024 && mantissa != 0) {  // NaN: quiet, upper payload bits kept
    return static_cast<uint16_t>(sign | FP16_EXP_MASK | 0x200 | (mantissa >> 42));
  }
  if (exponent > FP16_EXP_BIAS) return static_cast<uint16_t>(sign | FP16_EXP_MASK);
  if (exponent < -25) return static_cast<uint16_t>(sign);
  // Cut to 10 fraction bits, fewer below 2^-14. A carry out of the rounding moves into the exponent
  // field and is right there, up to infinity.
  mantissa |= uint64_t{1} << 52;
  const bool subnormal = exponent < 1 - FP16_EXP_BIAS;
  const int dropped = subnormal ? 42 + (1 - FP16_EXP_BIAS - exponent) : 42;
  const uint64_t half = uint64_t{1} << (dropped - 1);
  const uint64_t odd = (mantissa >> dropped) & 1;
  const uint32_t rounded = static_cast<uint32_t>((mantissa + half - 1 + odd) >> dropped);
  const int field = subnormal ? 0 : exponent + FP16_EXP_BIAS - 1;
  return static_cast<uint16_t>(sign | (static_cast<uint32_t>(field << FP16_MAN_LEN) + rounded));
}

inline float float_from(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & FP16_SIGN_MASK) << 16;
  const uint32_t exponent = static_cast<uint32_t>(bits & FP16_EXP_MASK) >> FP16_MAN_LEN;
  const uint32_t mantissa = bits & FP16_MAN_MASK;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) / 16777216.0f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t widened = exponent == 31 ? 255 : exponent + 127 - FP16_EXP_BIAS;
  const uint32_t quiet = exponent == 31 && mantissa != 0 ? 0x400000 : 0;
  const uint32_t word = sign | (widened << 23) | quiet | (mantissa << 13);
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace fp16_detail

struct tagFp16 {
  uint16_t val;

  constexpr tagFp16() : val(0) {}
  constexpr tagFp16(uint16_t bits) : val(bits) {}
  template <class Number, class = typename std::enable_if<std::is_arithmetic<Number>::value ||
                                                          std::is_enum<Number>::value>::type>
  tagFp16(Number value) : val(fp16_detail::bits_from(static_cast<double>(value))) {}

  template <class Number>
  typename std::enable_if<std::is_arithmetic<Number>::value, tagFp16&>::type operator=(
      Number value) {
    val = fp16_detail::bits_from(static_cast<double>(value));
    return *this;
  }

  tagFp16 operator-() const { return tagFp16(static_cast<uint16_t>(val ^ FP16_SIGN_MASK)); }

  operator float() const { return fp16_detail::float_from(val); }

  template <class Number>
  tagFp16& operator+=(Number rhs) {
    return *this = static_cast<double>(*this) + static_cast<double>(rhs);
  }
  template <class Number>
  tagFp16& operator-=(Number rhs) {
    return *this = static_cast<double>(*this) - static_cast<double>(rhs);
  }
  template <class Number>
  tagFp16& operator*=(Number rhs) {
    return *this = static_cast<double>(*this) * static_cast<double>(rhs);
  }
  template <class Number>
  tagFp16& operator/=(Number rhs) {
    return *this = static_cast<double>(*this) / static_cast<double>(rhs);
  }
};

typedef tagFp16 fp16_t;

// Templates, so that they never compete with the built-in operators that mixed operands use.
template <class Half>
typename std::enable_if<std::is_same<Half, fp16_t>::value, Half>::type operator+(Half a, Half b) {
  return a += b;
}
template <class Half>
typename std::enable_if<std::is_same<Half, fp16_t>::value, Half>::type operator-(Half a, Half b) {
  return a -= b;
}
template <class Half>
typename std::enable_if<std::is_same<Half, fp16_t>::value, Half>::type operator*(Half a, Half b) {
  return a *= b;
}
template <class Half>
typename std::enable_if<std::is_same<Half, fp16_t>::value, Half>::type operator/(Half a, Half b) {
  return a /= b;
}

}  // namespace op

#endif  // NPULESS_ACLNN_OPDEV_FP16_T_H_
