// acl_base.h: element sizes, fp16 helpers, data buffers.
#include <cmath>
#include <limits>

#include "base/half.h"
#include "support.h"

namespace npuless::runtime {
namespace {

TEST(Base, DataTypeSizes) {
  const struct {
    int type;
    size_t size;
  } rows[] = {{-1, 0}, {0, 4},  {1, 2},  {2, 1},  {3, 4},  {4, 1},  {6, 2},  {7, 2},
              {8, 4},  {9, 8},  {10, 8}, {11, 8}, {12, 1}, {13, 0}, {16, 8}, {17, 16},
              {27, 2}, {29, 1}, {30, 1}, {33, 4}, {34, 1}, {35, 1}, {36, 1}, {37, 1},
              {38, 8}, {39, 8}, {40, 8}, {41, 8}, {5, 8},  {99, 8}};
  for (const auto& row : rows) {
    EXPECT_EQ(aclDataTypeSize(enumerator<aclDataType>(row.type)), row.size) << row.type;
  }
}

// Every finite half survives the round trip; exponent 31 counts on instead of meaning infinity.
TEST(Base, EveryHalfToFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<aclFloat16>(bits);
    const double mantissa = (bits & 0x3FF) / 1024.0;
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -14) : std::ldexp(1.0 + mantissa, exponent - 15);
    const double expected = (bits & 0x8000) != 0 ? -magnitude : magnitude;
    ASSERT_EQ(static_cast<double>(aclFloat16ToFloat(half)), expected) << bits;
    if (exponent != 31) {
      ASSERT_EQ(aclFloatToFloat16(aclFloat16ToFloat(half)), half) << bits;
    }
  }
}

TEST(Base, FloatToHalfSaturates) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const struct {
    float value;
    aclFloat16 bits;
  } rows[] = {{65504.0f, 0x7BFF},
              {65519.9f, 0x7BFF},
              {65520.0f, 0x7BFF},
              {1e30f, 0x7BFF},
              {kInf, 0x7BFF},
              {nan, 0x7BFF},
              {-65520.0f, 0xFBFF},
              {-kInf, 0xFBFF},
              {std::copysign(nan, -1.0f), 0xFBFF},
              {0.0f, 0x0000},
              {-0.0f, 0x8000},
              {1.0f, 0x3C00},
              {0x1p-24f, 0x0001},
              {0x1p-25f, 0x0000},
              {0x1.8p-25f, 0x0001},
              {1.0f + 0x1p-11f, 0x3C00},
              {1.0f + 0x3p-11f, 0x3C02}};
  for (const auto& row : rows) {
    EXPECT_EQ(aclFloatToFloat16(row.value), row.bits) << row.value;
  }
}

TEST(Base, DataBuffer) {
  int data = 0;
  aclDataBuffer* buffer = aclCreateDataBuffer(&data, size_t{5} << 32);
  ASSERT_NE(buffer, nullptr);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), &data);
  EXPECT_EQ(aclGetDataBufferSizeV2(buffer), size_t{5} << 32);
  EXPECT_EQ(aclGetDataBufferSize(buffer), 0u);
  EXPECT_EQ(aclUpdateDataBuffer(buffer, nullptr, 7), 0);
  EXPECT_EQ(aclGetDataBufferAddr(buffer), nullptr);
  EXPECT_EQ(aclGetDataBufferSize(buffer), 7u);
  EXPECT_EQ(aclDestroyDataBuffer(buffer), 0);
}

TEST(Base, DataBufferNull) {
  check_rows({
      {"destroy null", 100000, [] { return aclDestroyDataBuffer(nullptr); }},
      {"update null", 100000, [] { return aclUpdateDataBuffer(nullptr, nullptr, 1); }},
  });
  EXPECT_EQ(aclGetDataBufferAddr(nullptr), nullptr);
  EXPECT_EQ(aclGetDataBufferSizeV2(nullptr), 0u);
  EXPECT_EQ(aclGetDataBufferSize(nullptr), 0u);
}

}  // namespace
}  // namespace npuless::runtime
