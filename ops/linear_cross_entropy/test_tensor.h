// A tensor for tests: an exactly sized, NaN-filled buffer with any strides and offset, written and
// read element by element.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "base/half.h"

namespace npuless::testing {

class TestTensor {
 public:
  TestTensor(DType dtype, std::vector<int64_t> dims, std::vector<int64_t> strides, int64_t offset)
      : dtype_(dtype), dims_(std::move(dims)), strides_(std::move(strides)), offset_(offset) {
    int64_t extent = offset_ + 1;
    for (size_t i = 0; i < dims_.size(); ++i) {
      extent += (dims_[i] > 0 ? dims_[i] - 1 : 0) * strides_[i];
    }
    bytes_.assign(static_cast<size_t>(extent * dtype_size(dtype)), 0xFF);
  }

  // Contiguous, or (spread) with a gap after each row, every second column and an offset.
  static TestTensor make(DType dtype, std::vector<int64_t> dims, bool spread) {
    std::vector<int64_t> strides(dims.size());
    int64_t stride = spread ? 2 : 1;
    for (size_t i = dims.size(); i-- > 0;) {
      strides[i] = stride;
      stride *= dims[i];
      if (spread) stride += 3;
    }
    return TestTensor(dtype, std::move(dims), std::move(strides), spread ? 5 : 0);
  }

  template <class T>
  T& at(int64_t i, int64_t j = 0) {
    const int64_t column = dims_.size() > 1 ? j * strides_[1] : 0;
    return reinterpret_cast<T*>(bytes_.data())[offset_ + i * strides_[0] + column];
  }

  // Rounds to the tensor's type; returns what was stored.
  double put(int64_t i, int64_t j, double value) {
    switch (dtype_) {
      case DType::kFloat32:
        return static_cast<double>(at<float>(i, j) = static_cast<float>(value));
      case DType::kFloat16:
        at<f16>(i, j) = narrow<f16>(static_cast<float>(value));
        break;
      case DType::kBfloat16:
        at<bf16>(i, j) = narrow<bf16>(static_cast<float>(value));
        break;
      case DType::kInt32:
        at<int32_t>(i, j) = static_cast<int32_t>(value);
        break;
      case DType::kInt64:
        at<int64_t>(i, j) = static_cast<int64_t>(value);
        break;
      default:
        at<uint8_t>(i, j) = static_cast<uint8_t>(value);
        break;
    }
    return get(i, j);
  }

  double get(int64_t i, int64_t j = 0) {
    switch (dtype_) {
      case DType::kFloat32:
        return static_cast<double>(at<float>(i, j));
      case DType::kFloat16:
        return static_cast<double>(widen(at<f16>(i, j)));
      case DType::kBfloat16:
        return static_cast<double>(widen(at<bf16>(i, j)));
      case DType::kInt32:
        return static_cast<double>(at<int32_t>(i, j));
      case DType::kInt64:
        return static_cast<double>(at<int64_t>(i, j));
      default:
        return static_cast<double>(at<uint8_t>(i, j));
    }
  }

  // The caller destroys it.
  aclTensor* create() {
    return aclCreateTensor(dims_.data(), dims_.size(), static_cast<aclDataType>(dtype_),
                           strides_.data(), offset_, ACL_FORMAT_ND, dims_.data(), dims_.size(),
                           bytes_.data());
  }

  void poison() { std::memset(bytes_.data(), 0xFF, bytes_.size()); }
  const std::vector<unsigned char>& bytes() const { return bytes_; }
  int64_t dim(size_t axis) const { return dims_[axis]; }

 private:
  DType dtype_;
  std::vector<int64_t> dims_;
  std::vector<int64_t> strides_;
  int64_t offset_;
  std::vector<unsigned char> bytes_;
};

// A matrix whose rows lie 2^24 elements apart, so that offsets pass 2^31 elements at row 128. Pages
// take memory when they are touched.
class FarMatrix {
 public:
  static constexpr int64_t kStride = int64_t{1} << 24;

  FarMatrix(DType dtype, int64_t rows, int64_t cols)
      : dtype_(dtype), dims_{rows, cols}, bytes_(static_cast<size_t>(rows * row_bytes())) {
    data_ = static_cast<unsigned char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    EXPECT_NE(static_cast<void*>(data_), MAP_FAILED);
    handle_ = aclCreateTensor(dims_, 2, static_cast<aclDataType>(dtype), kStrides, 0, ACL_FORMAT_ND,
                              dims_, 2, data_);
  }
  // With the elements of a contiguous tensor.
  FarMatrix(DType dtype, const TestTensor& near) : FarMatrix(dtype, near.dim(0), near.dim(1)) {
    for (int64_t i = 0; i < dims_[0]; ++i) {
      std::memcpy(data_ + i * row_bytes(), near.bytes().data() + i * used_bytes(),
                  static_cast<size_t>(used_bytes()));
    }
  }
  ~FarMatrix() {
    aclDestroyTensor(handle_);
    munmap(data_, bytes_);
  }
  FarMatrix(const FarMatrix&) = delete;
  FarMatrix& operator=(const FarMatrix&) = delete;

  aclTensor* handle() const { return handle_; }

  // The elements as a contiguous tensor of as many rows and columns would hold them.
  std::vector<unsigned char> elements() const {
    std::vector<unsigned char> all;
    for (int64_t i = 0; i < dims_[0]; ++i) {
      const unsigned char* row = data_ + i * row_bytes();
      all.insert(all.end(), row, row + used_bytes());
    }
    return all;
  }

 private:
  static constexpr int64_t kStrides[] = {kStride, 1};

  int64_t row_bytes() const { return kStride * dtype_size(dtype_); }
  int64_t used_bytes() const { return dims_[1] * dtype_size(dtype_); }

  DType dtype_;
  int64_t dims_[2];
  size_t bytes_;
  unsigned char* data_;
  aclTensor* handle_;
};

}  // namespace npuless::testing
