// aclTensor through its public functions: every row of the documented table.
#include "tensor/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "aclnn/acl_meta.h"
#include "sentence.h"

namespace npuless::tensor {
namespace {

using Dims = std::vector<int64_t>;

struct Destroy {
  void operator()(aclTensor* tensor) const { EXPECT_EQ(aclDestroyTensor(tensor), 0); }
};
using Owned = std::unique_ptr<aclTensor, Destroy>;

Owned make(const Dims& view, const Dims& strides, int64_t offset, const Dims& storage,
           void* data = nullptr, aclDataType dtype = ACL_FLOAT) {
  return Owned(aclCreateTensor(view.data(), view.size(), dtype,
                               strides.empty() ? nullptr : strides.data(), offset, ACL_FORMAT_ND,
                               storage.data(), storage.size(), data));
}

using DimsGetter = aclnnStatus (*)(const aclTensor*, int64_t**, uint64_t*);

Dims read(DimsGetter getter, const aclTensor* tensor) {
  int64_t* values = nullptr;
  uint64_t count = 99;
  EXPECT_EQ(getter(tensor, &values, &count), 0);
  const std::unique_ptr<int64_t[]> owner(values);
  return Dims(values, values + count);
}

TEST(Tensor, KeepsWhatItIsGiven) {
  float data[12] = {};
  const Owned tensor = make({2, 3}, {5, 1}, 4, {12}, data, ACL_FLOAT);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), (Dims{2, 3}));
  EXPECT_EQ(read(aclGetViewStrides, tensor.get()), (Dims{5, 1}));
  EXPECT_EQ(read(aclGetStorageShape, tensor.get()), (Dims{12}));
  int64_t offset = 0;
  EXPECT_EQ(aclGetViewOffset(tensor.get(), &offset), 0);
  EXPECT_EQ(offset, 4);
  aclDataType dtype = ACL_DT_UNDEFINED;
  EXPECT_EQ(aclGetDataType(tensor.get(), &dtype), 0);
  EXPECT_EQ(dtype, ACL_FLOAT);
  aclFormat format = ACL_FORMAT_UNDEFINED;
  EXPECT_EQ(aclGetFormat(tensor.get(), &format), 0);
  EXPECT_EQ(format, ACL_FORMAT_ND);
  void* address = nullptr;
  EXPECT_EQ(aclGetRawTensorAddr(tensor.get(), &address), 0);
  EXPECT_EQ(address, data);
  EXPECT_EQ(data_of(*tensor), data + 4);
}

TEST(Tensor, CopiesDimsAndStrides) {
  Dims view{2, 3}, strides{3, 1}, storage{6};
  const Owned tensor = make(view, strides, 0, storage);
  view = strides = storage = {7, 7};
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), (Dims{2, 3}));
  EXPECT_EQ(read(aclGetViewStrides, tensor.get()), (Dims{3, 1}));
  EXPECT_EQ(read(aclGetStorageShape, tensor.get()), (Dims{6}));
}

TEST(Tensor, NullStridesMeanContiguous) {
  const struct {
    Dims view, strides;
  } cases[] = {{{7}, {1}}, {{2, 3, 4}, {12, 4, 1}}, {{3, 0, 2}, {0, 2, 1}}, {{1, 1}, {1, 1}}};
  for (const auto& c : cases) {
    EXPECT_EQ(read(aclGetViewStrides, make(c.view, {}, 0, c.view).get()), c.strides);
  }
}

TEST(Tensor, WithoutDimsIsOneElement) {
  const Owned tensor(
      aclCreateTensor(nullptr, 0, ACL_INT64, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr));
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), Dims{});
  EXPECT_EQ(read(aclGetStorageShape, tensor.get()), Dims{});
  EXPECT_EQ(element_count(*tensor), 1);
  EXPECT_FALSE(is_empty(*tensor));
}

TEST(Tensor, NullDimsWithARankAreRefused) {
  const int64_t dim = 4;
  EXPECT_EQ(aclCreateTensor(nullptr, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr),
            nullptr);
  expect_error(code::kParamNullptr, code::kParamNullptr, "aclCreateTensor", "viewDims");
  EXPECT_EQ(aclCreateTensor(&dim, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 1, nullptr),
            nullptr);
  expect_error(code::kParamNullptr, code::kParamNullptr, "aclCreateTensor", "storageDims");
}

TEST(Tensor, RanksBeyondTheLimitAreRefusedUnread) {
  const Dims most(kMaxRank, 1);
  EXPECT_EQ(read(aclGetViewShape, make(most, {}, 0, most).get()), most);
  const int64_t dim = 1;
  for (const uint64_t rank : {uint64_t{kMaxRank + 1}, std::numeric_limits<uint64_t>::max()}) {
    EXPECT_EQ(aclCreateTensor(&dim, rank, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr),
              nullptr);
    expect_error(code::kParamInvalid, code::kParamInvalid, "viewDimsNum", "at most 16");
    EXPECT_EQ(aclCreateTensor(&dim, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, &dim, rank, nullptr),
              nullptr);
    expect_error(code::kParamInvalid, code::kParamInvalid, "storageDimsNum", "at most 16");
  }
}

TEST(Tensor, CreationJudgesNothingElse) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  EXPECT_NE(make({-1, kHuge, kHuge}, {}, kLeast, {-5}), nullptr);
  EXPECT_NE(make({4}, {kLeast}, kHuge, {1}, reinterpret_cast<void*>(1)), nullptr);
  EXPECT_NE(make({4}, {}, 0, {4}, nullptr, static_cast<aclDataType>(5)), nullptr);
}

TEST(Tensor, CountsElements) {
  constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(element_count(*make({3, 4, 5}, {}, 0, {60})), 60);
  EXPECT_EQ(element_count(*make({kHuge, kHuge, 0}, {}, 0, {1})), 0);
  EXPECT_TRUE(is_empty(*make({3, 0}, {}, 0, {1})));
  EXPECT_EQ(element_count(*make({kHuge, 2}, {}, 0, {1})), kHuge);
  EXPECT_EQ(element_count(*make({int64_t{1} << 32, int64_t{1} << 32}, {}, 0, {1})), kHuge);
}

TEST(Tensor, NullArgumentsOfGetters) {
  const Owned tensor = make({2}, {}, 0, {2});
  int64_t* values = nullptr;
  uint64_t count = 0;
  for (const DimsGetter getter : {aclGetViewShape, aclGetStorageShape, aclGetViewStrides}) {
    expect_error(getter(nullptr, &values, &count), code::kParamNullptr, "tensor must not be null");
    expect_error(getter(tensor.get(), nullptr, &count), code::kParamNullptr, "must not be null");
    expect_error(getter(tensor.get(), &values, nullptr), code::kParamNullptr, "Num");
  }
  int64_t offset = 0;
  expect_error(aclGetViewOffset(nullptr, &offset), code::kParamNullptr, "tensor");
  expect_error(aclGetViewOffset(tensor.get(), nullptr), code::kParamNullptr, "offset");
  aclFormat format;
  expect_error(aclGetFormat(nullptr, &format), code::kParamNullptr, "tensor");
  expect_error(aclGetFormat(tensor.get(), nullptr), code::kParamNullptr, "format");
  aclDataType dtype;
  expect_error(aclGetDataType(nullptr, &dtype), code::kParamNullptr, "tensor");
  expect_error(aclGetDataType(tensor.get(), nullptr), code::kParamNullptr, "dataType");
  void* address = nullptr;
  expect_error(aclGetRawTensorAddr(nullptr, &address), code::kParamNullptr, "tensor");
  expect_error(aclGetRawTensorAddr(tensor.get(), nullptr), code::kParamNullptr, "addr");
}

TEST(Tensor, RawAddressMovesTheStorage) {
  float first[8], second[8];
  const Owned tensor = make({2}, {}, 3, {8}, first);
  EXPECT_EQ(aclSetRawTensorAddr(tensor.get(), second), 0);
  EXPECT_EQ(data_of(*tensor), second + 3);
  expect_error(aclSetRawTensorAddr(nullptr, first), code::kParamNullptr, "tensor");
  expect_error(aclSetRawTensorAddr(tensor.get(), nullptr), code::kParamNullptr, "addr");
  EXPECT_EQ(data_of(*tensor), second + 3);
}

TEST(Tensor, AddressIsOffsetByElements) {
  char data[64];
  for (const aclDataType dtype : {ACL_INT8, ACL_FLOAT16, ACL_FLOAT, ACL_INT64}) {
    const Owned tensor = make({1}, {}, 3, {8}, data, dtype);
    EXPECT_EQ(data_of(*tensor), data + 3 * aclDataTypeSize(dtype));
  }
  EXPECT_EQ(data_of(*make({1}, {}, 3, {8})), nullptr);
}

TEST(InitTensor, ReplacesEverything) {
  int32_t data[6] = {};
  const Owned tensor = make({2, 3}, {}, 0, {6});
  const Dims view{3, 2}, strides{1, 3}, storage{2, 3};
  EXPECT_EQ(aclInitTensor(tensor.get(), view.data(), 2, ACL_INT32, strides.data(), 1,
                          ACL_FORMAT_NCHW, storage.data(), 2, data),
            0);
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), view);
  EXPECT_EQ(read(aclGetViewStrides, tensor.get()), strides);
  EXPECT_EQ(read(aclGetStorageShape, tensor.get()), storage);
  EXPECT_EQ(tensor->format, ACL_FORMAT_NCHW);
  EXPECT_EQ(data_of(*tensor), data + 1);
}

TEST(InitTensor, NullDimsKeepTheOld) {
  const Dims view{2, 3}, strides{1, 2}, storage{6};
  const Owned tensor = make(view, strides, 0, storage);
  EXPECT_EQ(aclInitTensor(tensor.get(), nullptr, 2, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, nullptr, 1,
                          nullptr),
            0);
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), view);
  EXPECT_EQ(read(aclGetViewStrides, tensor.get()), strides);
  EXPECT_EQ(read(aclGetStorageShape, tensor.get()), storage);
  EXPECT_EQ(tensor->dtype, DType::kInt8);
}

TEST(InitTensor, StridesOfAnotherRankAreNotTaken) {
  const Owned tensor = make({2, 3}, {1, 2}, 0, {6});
  const std::vector<int64_t> stride(1, 9);  // exactly sized, so that a sanitizer sees a read beyond
  EXPECT_EQ(aclInitTensor(tensor.get(), nullptr, 1, ACL_INT8, stride.data(), 0, ACL_FORMAT_ND,
                          nullptr, 1, nullptr),
            0);
  EXPECT_EQ(read(aclGetViewStrides, tensor.get()), (Dims{1, 2}));
}

TEST(InitTensor, RefusesNullAndBeyondTheLimit) {
  const int64_t dim = 1;
  expect_error(
      aclInitTensor(nullptr, &dim, 1, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr),
      code::kParamNullptr, "aclInitTensor", "tensor");
  const Owned tensor = make({2, 3}, {}, 0, {6});
  expect_error(
      aclInitTensor(tensor.get(), &dim, 17, ACL_INT8, nullptr, 0, ACL_FORMAT_ND, &dim, 1, nullptr),
      code::kParamInvalid, "viewDimsNum");
  EXPECT_EQ(read(aclGetViewShape, tensor.get()), (Dims{2, 3}));
  EXPECT_EQ(tensor->dtype, DType::kFloat32);
}

TEST(Tensor, DestroyingNullIsFine) {
  EXPECT_EQ(aclDestroyTensor(nullptr), 0);
}

TEST(Tensor, LivesUntilTheLastReference) {
  Owned tensor = make({2}, {}, 0, {2});
  const aclTensor* kept = tensor.get();
  retain(kept);
  tensor.reset();
  EXPECT_EQ(kept->view.dims[0], 2);
  release(kept);
}

TEST(Tensor, BecomesViews) {
  float data[40];
  const Owned vector = make({5}, {2}, 1, {40}, data);
  const Vector v = as_vector(*vector);
  EXPECT_EQ(v.data, data + 1);
  EXPECT_EQ(v.size, 5);
  EXPECT_EQ(&at<float>(v, 3), data + 7);
  EXPECT_EQ(v.dtype, DType::kFloat32);
  const Owned matrix = make({3, 4}, {1, 7}, 2, {40}, data);
  const Matrix m = as_matrix(*matrix);
  EXPECT_EQ(m.rows, 3);
  EXPECT_EQ(m.cols, 4);
  EXPECT_EQ(&at<float>(m, 2, 3), data + 2 + 2 * 1 + 3 * 7);
  EXPECT_EQ(m.dtype, DType::kFloat32);
}

}  // namespace
}  // namespace npuless::tensor
