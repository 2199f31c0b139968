// aclDumpOpTensors and the text it logs.
#include "tensor/dump.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "add_fixture.h"
#include "sentence.h"

namespace npuless::tensor {
namespace {

template <class T>
std::string described(std::vector<T> data, aclDataType dtype, std::vector<int64_t> dims,
                      std::vector<int64_t> strides = {}, int64_t offset = 0) {
  aclTensor* tensor =
      aclCreateTensor(dims.data(), dims.size(), dtype, strides.empty() ? nullptr : strides.data(),
                      offset, ACL_FORMAT_ND, dims.data(), dims.size(), data.data());
  char text[kTensorText];
  EXPECT_TRUE(describe(*tensor, text).ok());
  aclDestroyTensor(tensor);
  return text;
}

TEST(Describe, EachType) {
  EXPECT_EQ(described<float>({1.5f, -0.1f}, ACL_FLOAT, {2}), "FLOAT32 [2]: 1.5 -0.100000001");
  EXPECT_EQ(described<uint16_t>({0x3C00, 0xFC00}, ACL_FLOAT16, {2}), "FLOAT16 [2]: 1 -inf");
  EXPECT_EQ(described<uint16_t>({0x3F80, 0xC000}, ACL_BF16, {2}), "BFLOAT16 [2]: 1 -2");
  EXPECT_EQ(described<int8_t>({-128, 127}, ACL_INT8, {2}), "INT8 [2]: -128 127");
  EXPECT_EQ(described<uint8_t>({255}, ACL_UINT8, {1}), "UINT8 [1]: 255");
  EXPECT_EQ(described<uint8_t>({1, 0}, ACL_BOOL, {2}), "BOOL [2]: 1 0");
  EXPECT_EQ(described<int32_t>({-5}, ACL_INT32, {}), "INT32 []: -5");
  EXPECT_EQ(described<int64_t>({INT64_MIN}, ACL_INT64, {1}), "INT64 [1]: -9223372036854775808");
  EXPECT_EQ(described<int16_t>({0x0102}, ACL_INT16, {1}), "another type [1]: 0x0201");
}

TEST(Describe, FollowsTheView) {
  const std::vector<int32_t> data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  EXPECT_EQ(described(data, ACL_INT32, {2, 3}, {1, 3}, 1), "INT32 [2, 3]: 1 4 7 2 5 8");
  EXPECT_EQ(described(data, ACL_INT32, {2, 2}, {0, 1}), "INT32 [2, 2]: 0 1 0 1");
  EXPECT_EQ(described(data, ACL_INT32, {3, 0}), "INT32 [3, 0]:");
}

TEST(Describe, CutsOffWhatDoesNotFit) {
  constexpr size_t kRoom = kTensorText - 1;
  const std::string rest = " …";
  int64_t value = 1;
  for (size_t digits = 1; digits < 18; ++digits, value *= 10) {
    for (size_t size = 1; size < 3 * kRoom / (digits + 1); ++size) {
      std::string whole = "INT64 [" + std::to_string(size) + "]:";
      for (size_t i = 0; i < size; ++i) whole += ' ' + std::to_string(value);
      const std::string text =
          described(std::vector<int64_t>(size, value), ACL_INT64, {static_cast<int64_t>(size)});
      if (text == whole) continue;
      ASSERT_GT(whole.size() + rest.size(), kRoom);
      ASSERT_TRUE(text.ends_with(rest)) << text;
      const size_t kept = text.size() - rest.size();
      ASSERT_EQ(text.substr(0, kept), whole.substr(0, kept));
      ASSERT_EQ(whole[kept], ' ') << "values are kept whole";
      ASSERT_GT(text.size() + digits + 1, kRoom) << "as many as fit";
    }
  }
}

TEST(Describe, JudgesTheGeometry) {
  aclTensor tensor;
  tensor.view.rank = 1;
  tensor.view.dims[0] = -1;
  char text[kTensorText];
  expect_error(describe(tensor, text).code(), code::kParamInvalid, "tensor");
  tensor.view.dims[0] = 3;
  tensor.dtype = DType::kInt8;
  EXPECT_TRUE(describe(tensor, text).ok());
  EXPECT_STREQ(text, "INT8 [3] without an address");
}

using Dump = StreamTest;

TEST_F(Dump, WaitsForTheStream) {
  Addition add;
  aclTensor* tensors[] = {add.a_tensor, nullptr, add.out_tensor};
  EXPECT_EQ(add.launch(add.plan(), stream), 0);
  EXPECT_EQ(aclDumpOpTensors("Add", "add_1", tensors, 2, 1, stream), 0);
  add.expect_added();
}

TEST_F(Dump, WrongArguments) {
  Addition add;
  aclTensor* tensors[] = {add.a_tensor};
  expect_error(aclDumpOpTensors(nullptr, "n", tensors, 1, 0, stream), code::kParamNullptr,
               "opType");
  expect_error(aclDumpOpTensors("t", nullptr, tensors, 1, 0, stream), code::kParamNullptr,
               "opName");
  expect_error(aclDumpOpTensors("t", "n", nullptr, 1, 0, stream), code::kParamNullptr, "tensors");
  expect_error(aclDumpOpTensors("t", "n", tensors, 1, 0, &add), code::kRtInvalidHandle);
}

}  // namespace
}  // namespace npuless::tensor
