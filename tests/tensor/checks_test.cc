// The checks that operators share: code, and a sentence that names argument, expectation and fact.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "sentence.h"
#include "tensor/tensor.h"

namespace npuless::tensor {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();

struct Plain : aclTensor {
  explicit Plain(std::vector<int64_t> dims, DType type = DType::kFloat32) {
    view.rank = static_cast<int>(dims.size());
    std::copy(dims.begin(), dims.end(), view.dims);
    std::fill_n(strides, kMaxRank, 1);
    dtype = type;
  }
};

TEST(Checks, Require) {
  EXPECT_TRUE(require("", "grad").ok());
  expect_error(require(nullptr, "grad").code(), code::kParamNullptr, "grad must not be null");
}

TEST(Checks, Dtype) {
  const DType allowed[] = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};
  for (const DType dtype : allowed) {
    const Plain tensor({2}, dtype);
    EXPECT_TRUE(require_dtype(&tensor, "x", allowed).ok());
  }
  const Plain wrong({2}, DType::kInt8);
  expect_error(require_dtype(&wrong, "x", allowed).code(), code::kParamInvalid,
               "type of x must be FLOAT32, FLOAT16 or BFLOAT16, got INT8");
  const DType one[] = {DType::kInt32};
  expect_error(require_dtype(&wrong, "x", one).code(), code::kParamInvalid,
               "must be INT32, got INT8");
}

TEST(Checks, SameDtype) {
  const Plain a({2}, DType::kFloat16), b({3}, DType::kFloat16), c({2}, DType::kBfloat16);
  EXPECT_TRUE(require_same_dtype(&a, "x", &b, "w").ok());
  expect_error(require_same_dtype(&a, "x", &c, "w").code(), code::kParamInvalid,
               "x and w must have one type, got FLOAT16 and BFLOAT16");
}

TEST(Checks, Format) {
  Plain tensor({2});
  EXPECT_TRUE(require_nd(&tensor, "x").ok());
  tensor.format = ACL_FORMAT_FRACTAL_NZ;
  expect_error(require_nd(&tensor, "x").code(), code::kParamInvalid,
               "format of x must be ND (2), got 29");
}

TEST(Checks, Rank) {
  const Plain matrix({1024, 7});
  EXPECT_TRUE(require_rank(&matrix, "x", 2).ok());
  expect_error(require_rank(&matrix, "x", 1).code(), code::kParamInvalid,
               "x must have 1 dimension, got shape [1024, 7]");
  expect_error(require_rank(&matrix, "x", 3).code(), code::kParamInvalid, "3 dimensions");
}

TEST(Checks, Dim) {
  const Plain matrix({1024, 7});
  EXPECT_TRUE(require_dim(&matrix, "x", 0, 1024, "the length of grad").ok());
  EXPECT_TRUE(require_dim(&matrix, "x", 1, 7, "hidden").ok());
  expect_error(require_dim(&matrix, "x", 0, 16, "the length of grad").code(), code::kParamInvalid,
               "dimension 0 of x must be 16 (the length of grad), got shape [1024, 7]");
  expect_error(require_dim(&matrix, "x", 2, 0, "nothing").code(), code::kParamInvalid,
               "dimension 2 of x");
}

TEST(Checks, NegativeGeometry) {
  Plain dims({2, -3});
  expect_error(require_addressable(&dims, "x").code(), code::kParamInvalid, "every dimension of x",
               "got -3");
  Plain strides({2, 3});
  strides.strides[0] = -1;
  expect_error(require_addressable(&strides, "x").code(), code::kParamInvalid, "every stride of x",
               "got -1");
  Plain offset({2, 3});
  offset.offset = -4;
  expect_error(require_addressable(&offset, "x").code(), code::kParamInvalid, "offset of x",
               "got -4");
}

TEST(Checks, GeometryBeyondTheAddressSpace) {
  Plain by_stride({2, 3});
  by_stride.strides[0] = kHuge;
  Plain by_dim({kHuge, 2});
  by_dim.strides[0] = 2;
  Plain by_sum({2, 2});
  by_sum.strides[0] = by_sum.strides[1] = kHuge / 2 + 1;
  Plain by_offset({2});
  by_offset.offset = kHuge;
  Plain by_bytes({2});
  by_bytes.offset = kHuge / 4;
  for (const Plain* tensor : {&by_stride, &by_dim, &by_sum, &by_offset, &by_bytes}) {
    expect_error(require_addressable(tensor, "x").code(), code::kParamInvalid, "of x",
                 "beyond the address space");
  }
  by_stride.view.dims[1] = 0;
  EXPECT_TRUE(require_addressable(&by_stride, "x").ok()) << "nothing of an empty tensor is read";
  Plain last({2});
  last.offset = kHuge / 4 - 1;
  EXPECT_TRUE(require_addressable(&last, "x").ok());
}

TEST(Checks, RepeatedRowsAndNullAddressesAreAddressable) {
  Plain tensor({4, 3});
  tensor.strides[0] = 0;
  EXPECT_TRUE(require_addressable(&tensor, "x").ok());
}

// Whether two indices of the view lead to one place, by trying all.
bool overlaps(const aclTensor& tensor) {
  std::set<int64_t> places;
  const int64_t count = element_count(tensor);
  for (int64_t index = 0; index < count; ++index) {
    int64_t rest = index, place = 0;
    for (int axis = 0; axis < tensor.view.rank; ++axis) {
      place += rest % tensor.view.dims[axis] * tensor.strides[axis];
      rest /= tensor.view.dims[axis];
    }
    if (!places.insert(place).second) return true;
  }
  return false;
}

TEST(Checks, DistinctElementsOfVectorsAndMatrices) {
  for (int64_t rows = 0; rows <= 5; ++rows) {
    for (int64_t cols = 0; cols <= 5; ++cols) {
      for (int64_t strides = 0; strides < 64; ++strides) {
        Plain tensor({rows, cols});
        tensor.strides[0] = strides / 8;
        tensor.strides[1] = strides % 8;
        EXPECT_EQ(require_distinct(&tensor, "out").ok(), !overlaps(tensor))
            << rows << ' ' << cols << ' ' << strides / 8 << ' ' << strides % 8;
      }
    }
  }
  Plain rows({4, 3});
  rows.strides[0] = 2;
  expect_error(require_distinct(&rows, "out").code(), code::kParamInvalid, "elements of out",
               "strides [2, 1]");
}

TEST(Checks, DistinctElementsOfMoreDims) {
  for (int64_t strides = 0; strides < 1000; ++strides) {
    Plain tensor({2, 3, 4});
    tensor.strides[0] = strides / 100;
    tensor.strides[1] = strides / 10 % 10;
    tensor.strides[2] = strides % 10;
    const bool accepted = require_distinct(&tensor, "out").ok();
    EXPECT_FALSE(accepted && overlaps(tensor)) << strides;
  }
  for (const auto& order : {std::vector<int64_t>{12, 4, 1}, {1, 2, 6}, {24, 7, 1}}) {
    Plain tensor({2, 3, 4});
    std::copy(order.begin(), order.end(), tensor.strides);
    EXPECT_TRUE(require_distinct(&tensor, "out").ok());
  }
}

TEST(ShapeText, SpellsDims) {
  char text[kShapeText];
  EXPECT_STREQ(shape_text(Plain({}), text), "[]");
  EXPECT_STREQ(shape_text(Plain({5}), text), "[5]");
  EXPECT_STREQ(shape_text(Plain({1024, 0, -7}), text), "[1024, 0, -7]");
}

TEST(ShapeText, IsCutOffWhereItDoesNotFit) {
  char text[kShapeText];
  // 19 digits and two more characters a dim: any number of dims stays inside the buffer.
  for (int rank = 1; rank <= kMaxRank; ++rank) {
    std::memset(text, '#', sizeof(text));
    shape_text(Plain(std::vector<int64_t>(static_cast<size_t>(rank), kHuge)), text);
    const std::string whole(text, strnlen(text, kShapeText));
    ASSERT_LT(whole.size(), static_cast<size_t>(kShapeText));
    EXPECT_EQ(whole.front(), '[');
    EXPECT_EQ(whole.back(), ']');
    const bool cut = whole.find(", …]") != std::string::npos;
    EXPECT_EQ(cut, rank > 7) << whole;
  }
}

}  // namespace
}  // namespace npuless::tensor
