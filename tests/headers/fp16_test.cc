// op::fp16_t against binary16 by its definition: value = ±mantissa · 2^exponent, and the nearest of
// two neighbours decided at their exact midpoint.
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "aclnn/opdev/fp16_t.h"
#include "gtest/gtest.h"

namespace {

using op::fp16_t;

constexpr uint32_t kInfinity = 0x7C00;
constexpr double kInf = std::numeric_limits<double>::infinity();

fp16_t raw(uint32_t bits) {
  return fp16_t(static_cast<uint16_t>(bits));
}

// Of a finite pattern. The pattern of infinity gives 65536, the neighbour that 65504 rounds up to.
double value_of(uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 31);
  const int mantissa = static_cast<int>(bits & 1023);
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(uint32_t bits) {
  return (bits & 0x7FFF) > kInfinity;
}

TEST(Fp16, EveryPatternGoesThroughFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float widened = raw(bits);
    ASSERT_EQ(std::signbit(widened), (bits & 0x8000) != 0) << bits;
    if (is_nan(bits)) {
      ASSERT_TRUE(std::isnan(widened)) << bits;
      ASSERT_EQ(fp16_t(widened).val, bits | 0x200) << bits;
      continue;
    }
    const bool infinite = (bits & 0x7FFF) == kInfinity;
    ASSERT_EQ(widened, infinite ? std::copysign(kInf, value_of(bits)) : value_of(bits)) << bits;
    ASSERT_EQ(fp16_t(widened).val, bits);
    ASSERT_EQ(fp16_t(static_cast<double>(widened)).val, bits);
  }
}

// Midpoints of fp16 neighbours are exact in float and in double, so this decides every rounding.
template <class Real>
void expect_rounding_between_neighbours() {
  const Real inf = std::numeric_limits<Real>::infinity();
  for (uint32_t low = 0; low < kInfinity; ++low) {
    const Real tie = static_cast<Real>((value_of(low) + value_of(low + 1)) / 2);
    const uint32_t even = low + (low & 1);
    ASSERT_EQ(fp16_t(std::nextafter(tie, Real(0))).val, low);
    ASSERT_EQ(fp16_t(tie).val, even);
    ASSERT_EQ(fp16_t(std::nextafter(tie, inf)).val, low + 1);
    ASSERT_EQ(fp16_t(-std::nextafter(tie, Real(0))).val, low | 0x8000);
    ASSERT_EQ(fp16_t(-tie).val, even | 0x8000);
    ASSERT_EQ(fp16_t(-std::nextafter(tie, inf)).val, (low + 1) | 0x8000);
  }
}

TEST(Fp16, FloatRoundsToTheNearestTiesToEven) {
  expect_rounding_between_neighbours<float>();
}

TEST(Fp16, DoubleRoundsOnceToTheNearestTiesToEven) {
  expect_rounding_between_neighbours<double>();
}

TEST(Fp16, ExtremesOfTheSourceTypes) {
  const struct {
    double value;
    uint32_t bits;
  } rows[] = {
      {0.0, 0x0000},
      {-0.0, 0x8000},
      {std::numeric_limits<double>::denorm_min(), 0x0000},
      {-std::numeric_limits<double>::min(), 0x8000},
      {std::ldexp(1.0, -126), 0x0000},
      {std::ldexp(1.0, -24), 0x0001},
      {std::ldexp(1.0, -14), 0x0400},
      {65504.0, FP16_MAX},
      {-65504.0, FP16_MIN},
      {65536.0, 0x7C00},
      {98304.0, 0x7C00},
      {1e6, 0x7C00},
      {std::numeric_limits<double>::max(), 0x7C00},
      {-std::numeric_limits<double>::max(), 0xFC00},
      {kInf, 0x7C00},
      {-kInf, 0xFC00},
      {std::numeric_limits<double>::quiet_NaN(), 0x7E00},
  };
  for (const auto& row : rows) EXPECT_EQ(fp16_t(row.value).val, row.bits) << row.value;
}

template <class To, class From>
To bits_of(From value) {
  To bits;
  static_assert(sizeof bits == sizeof value, "same size");
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// A signalling NaN becomes quiet and stays a NaN, even when its payload does not fit.
TEST(Fp16, ConversionsQuietNaN) {
  EXPECT_EQ(fp16_t(bits_of<double>(uint64_t{0x7FF0000000000001})).val, 0x7E00u);
  EXPECT_EQ(fp16_t(bits_of<double>(uint64_t{0xFFF4000000000000})).val, 0xFF00u);
  for (uint32_t payload = 1; payload < 1024; ++payload) {
    const uint32_t widened = bits_of<uint32_t>(static_cast<float>(raw(kInfinity | payload)));
    ASSERT_EQ(widened, 0x7FC00000u | payload << 13);
  }
}

TEST(Fp16, ConvertsFromEveryArithmeticType) {
  enum Number { kTwo = 2 };
  EXPECT_EQ(fp16_t().val, 0u);
  EXPECT_EQ(fp16_t(1.0).val, 0x3C00u);
  EXPECT_EQ(fp16_t(1.0f).val, 0x3C00u);
  EXPECT_EQ(fp16_t(1.0L).val, 0x3C00u);
  EXPECT_EQ(fp16_t(1).val, 0x3C00u);
  EXPECT_EQ(fp16_t(1u).val, 0x3C00u);
  EXPECT_EQ(fp16_t(int8_t{-1}).val, 0xBC00u);
  EXPECT_EQ(fp16_t(uint8_t{1}).val, 0x3C00u);
  EXPECT_EQ(fp16_t(int16_t{-1}).val, 0xBC00u);
  EXPECT_EQ(fp16_t(int64_t{2049}).val, 0x6800u);
  EXPECT_EQ(fp16_t(std::numeric_limits<uint64_t>::max()).val, 0x7C00u);
  EXPECT_EQ(fp16_t(true).val, 0x3C00u);
  EXPECT_EQ(fp16_t(kTwo).val, 0x4000u);
}

TEST(Fp16, ConstructingFromUint16TakesBitsAndAssigningConverts) {
  constexpr fp16_t one(uint16_t{0x3C00});
  static_assert(one.val == 0x3C00, "usable in constant expressions");
  EXPECT_EQ(fp16_t(uint16_t{1}).val, 1u);
  fp16_t half;
  half = uint16_t{1};
  EXPECT_EQ(half.val, 0x3C00u);
  half = -2.5;
  EXPECT_EQ(half.val, 0xC100u);
  half = int64_t{3};
  EXPECT_EQ(half.val, 0x4200u);
  half = one;
  EXPECT_EQ(half.val, 0x3C00u);
}

TEST(Fp16, ConvertsToEveryArithmeticType) {
  const fp16_t half = 2.5;
  const float single_precision = half;
  const double double_precision = half;
  const int integer = half;
  const uint16_t unsigned_integer = half;
  const bool truth = half;
  EXPECT_EQ(single_precision, 2.5f);
  EXPECT_EQ(double_precision, 2.5);
  EXPECT_EQ(integer, 2);
  EXPECT_EQ(unsigned_integer, 2u);
  EXPECT_TRUE(truth);
  EXPECT_FALSE(static_cast<bool>(fp16_t(-0.0)));
  EXPECT_EQ(static_cast<int8_t>(fp16_t(-3.75)), -3);
}

// All exponents, with mantissas that make carries, ties and cancellations.
std::vector<fp16_t> operands() {
  std::vector<fp16_t> values;
  for (uint32_t exponent = 0; exponent < 31; ++exponent) {
    for (const uint32_t mantissa : {0u, 1u, 2u, 3u, 0x155u, 0x200u, 0x2AAu, 0x3FEu, 0x3FFu}) {
      values.push_back(raw(exponent << 10 | mantissa));
      values.push_back(raw(0x8000 | exponent << 10 | mantissa));
    }
  }
  values.push_back(raw(kInfinity));
  return values;
}

void expect_same(fp16_t got, double exact) {
  const fp16_t expected(exact);
  if (is_nan(expected.val)) {
    ASSERT_TRUE(is_nan(got.val));
  } else {
    ASSERT_EQ(got.val, expected.val) << exact;
  }
}

// In double, sums and products of fp16 values are exact and no quotient rounds across the midpoint
// of two fp16 values; rounding the double is therefore the right answer.
TEST(Fp16, ArithmeticRoundsTheExactResult) {
  const std::vector<fp16_t> values = operands();
  for (const fp16_t a : values) {
    for (const fp16_t b : values) {
      const double x = a;
      const double y = b;
      expect_same(a + b, x + y);
      expect_same(a - b, x - y);
      expect_same(a * b, x * y);
      expect_same(a / b, x / y);
    }
  }
}

TEST(Fp16, NegationFlipsTheSignAlone) {
  for (const uint32_t bits : {0x0000u, 0x3C00u, 0x7C00u, 0x7E01u, 0x83FFu}) {
    EXPECT_EQ((-raw(bits)).val, bits ^ 0x8000);
  }
}

TEST(Fp16, CompoundAssignmentRoundsOnce) {
  fp16_t half = 1.0;
  half += std::ldexp(1.0, -11) + std::ldexp(1.0, -30);  // just above a tie; 1 in two roundings
  EXPECT_EQ(half.val, 0x3C01u);
  half = 3;
  half *= 2;
  EXPECT_EQ(half, 6);
  half -= fp16_t(0.5);
  EXPECT_EQ(half, 5.5);
  half /= 4.0f;
  EXPECT_EQ(half, 1.375);
}

TEST(Fp16, MixedOperandsFollowTheWiderType) {
  const fp16_t half = 0.5;
  EXPECT_TRUE((std::is_same<decltype(half + half), fp16_t>::value));
  EXPECT_TRUE((std::is_same<decltype(half * 2), float>::value));
  EXPECT_TRUE((std::is_same<decltype(1.0f - half), float>::value));
  EXPECT_TRUE((std::is_same<decltype(half / 3.0), double>::value));
  EXPECT_EQ(half + 1e5f, 100000.5f);
}

TEST(Fp16, ComparisonsAreThoseOfTheValues) {
  const fp16_t one = 1.0;
  const fp16_t nan = raw(0x7E00);
  EXPECT_TRUE(one == fp16_t(1) && one == 1 && one != 1.5f && !(one != one));
  EXPECT_TRUE(one < 2 && 0.5 < one && one <= one && one >= 1 && one > fp16_t(-1));
  EXPECT_TRUE(raw(0x8000) == raw(0x0000));
  EXPECT_FALSE(nan == nan || nan < one || nan > one);
}

TEST(Fp16, IsTwoPlainBytes) {
  EXPECT_EQ(sizeof(fp16_t), 2u);
  EXPECT_TRUE(std::is_standard_layout<fp16_t>::value);
  EXPECT_TRUE(std::is_trivially_copyable<fp16_t>::value);
  EXPECT_TRUE((std::is_same<fp16_t, op::tagFp16>::value));
  EXPECT_TRUE((std::is_same<decltype(fp16_t::val), uint16_t>::value));
}

TEST(Fp16, FieldMacrosDescribeThePattern) {
  EXPECT_EQ(FP16_SIGN_MASK | FP16_EXP_MASK | FP16_MAN_MASK, 0xFFFF);
  EXPECT_EQ(1 << FP16_SIGN_INDEX, FP16_SIGN_MASK);
  EXPECT_EQ((1 << FP16_MAN_LEN) - 1, FP16_MAN_MASK);
  EXPECT_EQ(((1 << FP16_EXP_LEN) - 1) << FP16_MAN_LEN, FP16_EXP_MASK);
  EXPECT_EQ(fp16_t(1.0).val >> FP16_MAN_LEN, FP16_EXP_BIAS);
}

}  // namespace
