// Scalars, arrays and lists through their public functions.
#include "tensor/arrays.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>

#include "aclnn/acl_meta.h"
#include "sentence.h"
#include "tensor/tensor.h"

namespace npuless::tensor {
namespace {

// The three arrays differ in names only.
template <class ArrayType, class T>
struct Functions {
  ArrayType* (*create)(const T*, uint64_t);
  aclnnStatus (*destroy)(const ArrayType*);
  aclnnStatus (*size)(const ArrayType*, uint64_t*);
};

template <class ArrayType, class T>
void check_array(const Functions<ArrayType, T>& f, std::array<T, 3> values) {
  const std::array<T, 3> kept = values;
  ArrayType* array = f.create(values.data(), values.size());
  values.fill(T{});
  ASSERT_NE(array, nullptr);
  uint64_t size = 99;
  EXPECT_EQ(f.size(array, &size), 0);
  EXPECT_EQ(size, 3u);
  EXPECT_TRUE(std::equal(kept.begin(), kept.end(), array->values));
  expect_error(f.size(array, nullptr), code::kParamNullptr, "size must not be null");
  expect_error(f.size(nullptr, &size), code::kParamNullptr, "must not be null");
  EXPECT_EQ(f.destroy(array), 0);
  EXPECT_EQ(f.destroy(nullptr), 0);
}

template <class ArrayType, class T>
void check_empty(const Functions<ArrayType, T>& f) {
  const T value{};
  const struct {
    const T* values;
    uint64_t count;
  } cases[] = {{nullptr, 0}, {nullptr, 5}, {&value, 0}};
  for (const auto& c : cases) {
    ArrayType* array = f.create(c.values, c.count);
    ASSERT_NE(array, nullptr);
    uint64_t size = 99;
    EXPECT_EQ(f.size(array, &size), 0);
    EXPECT_EQ(size, 0u);
    EXPECT_EQ(f.destroy(array), 0);
  }
}

template <class ArrayType, class T>
void check_no_memory(const Functions<ArrayType, T>& f) {
  const T value{};
  EXPECT_EQ(f.create(&value, std::numeric_limits<uint64_t>::max()), nullptr);
  expect_error(code::kMemoryAllocation, code::kMemoryAllocation, "out of host memory");
}

constexpr Functions<aclIntArray, int64_t> kInts{aclCreateIntArray, aclDestroyIntArray,
                                                aclGetIntArraySize};
constexpr Functions<aclFloatArray, float> kFloats{aclCreateFloatArray, aclDestroyFloatArray,
                                                  aclGetFloatArraySize};
constexpr Functions<aclBoolArray, bool> kBools{aclCreateBoolArray, aclDestroyBoolArray,
                                               aclGetBoolArraySize};
constexpr Functions<aclTensorList, const aclTensor*> kTensors{
    aclCreateTensorList, aclDestroyTensorList, aclGetTensorListSize};
constexpr Functions<aclScalarList, const aclScalar*> kScalars{
    aclCreateScalarList, aclDestroyScalarList, aclGetScalarListSize};

TEST(Arrays, CopyTheirValues) {
  check_array(kInts, {1, -2, std::numeric_limits<int64_t>::max()});
  check_array(kFloats, {1.5f, -2.0f, 0.25f});
  check_array(kBools, {true, false, true});
}

TEST(Arrays, NullOrNoValuesMakeAnEmptyOne) {
  check_empty(kInts);
  check_empty(kFloats);
  check_empty(kBools);
  check_empty(kTensors);
  check_empty(kScalars);
}

TEST(Arrays, ImpossibleSizesGiveNull) {
  check_no_memory(kInts);
  check_no_memory(kFloats);
  check_no_memory(kTensors);
}

aclTensor* make_tensor() {
  const int64_t dim = 2;
  return aclCreateTensor(&dim, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr);
}

TEST(Lists, HoldTheTensorsThemselves) {
  check_array(kTensors, {make_tensor(), nullptr, make_tensor()});
}

TEST(Lists, DestroyTheirMembers) {
  aclTensor* members[] = {make_tensor(), make_tensor()};
  for (const aclTensor* member : members) retain(member);
  aclTensorList* list = aclCreateTensorList(members, 2);
  EXPECT_EQ(aclDestroyTensorList(list), 0);
  for (const aclTensor* member : members) {
    EXPECT_EQ(member->references.load(), 1);
    release(member);
  }
}

TEST(Lists, HoldTheScalarsThemselves) {
  float value = 1.0f;
  check_array(kScalars,
              {aclCreateScalar(&value, ACL_FLOAT), nullptr, aclCreateScalar(&value, ACL_FLOAT)});
}

TEST(Scalars, CopyTheirValue) {
  const struct {
    aclDataType dtype;
    size_t bytes;
  } cases[] = {
      {ACL_FLOAT, 4},     {ACL_FLOAT16, 2},     {ACL_INT8, 1},          {ACL_INT32, 4},
      {ACL_UINT8, 1},     {ACL_INT16, 2},       {ACL_UINT16, 2},        {ACL_UINT32, 4},
      {ACL_INT64, 8},     {ACL_UINT64, 8},      {ACL_DOUBLE, 8},        {ACL_BOOL, 1},
      {ACL_COMPLEX64, 8}, {ACL_COMPLEX128, 16}, {ACL_BF16, 2},          {ACL_COMPLEX32, 4},
      {ACL_HIFLOAT8, 1},  {ACL_FLOAT8_E5M2, 1}, {ACL_FLOAT8_E4M3FN, 1}, {ACL_FLOAT4_E2M1, 1}};
  for (const auto& c : cases) {
    // Exactly sized, so that a sanitizer sees a read beyond.
    std::vector<unsigned char> value(c.bytes, 0xA5);
    aclScalar* scalar = aclCreateScalar(value.data(), c.dtype);
    ASSERT_NE(scalar, nullptr) << c.dtype;
    EXPECT_EQ(static_cast<int>(scalar->dtype), c.dtype);
    EXPECT_EQ(std::memcmp(scalar->bytes, value.data(), c.bytes), 0);
    EXPECT_EQ(aclDestroyScalar(scalar), 0);
  }
  EXPECT_EQ(aclDestroyScalar(nullptr), 0);
}

TEST(Scalars, RefuseNullAndWhatIsNoNumber) {
  int64_t value = 1;
  EXPECT_EQ(aclCreateScalar(nullptr, ACL_FLOAT), nullptr);
  expect_error(code::kParamNullptr, code::kParamNullptr, "aclCreateScalar", "value");
  for (const int dtype : {static_cast<int>(ACL_STRING), static_cast<int>(ACL_DT_UNDEFINED), 5}) {
    EXPECT_EQ(aclCreateScalar(&value, static_cast<aclDataType>(dtype)), nullptr);
    expect_error(code::kParamInvalid, code::kParamInvalid, std::to_string(dtype).c_str());
  }
}

}  // namespace
}  // namespace npuless::tensor
