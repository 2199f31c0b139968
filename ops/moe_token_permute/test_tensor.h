// A tensor for tests in memory of exactly its size: the byte after its last element is on a page
// that may not be touched. Everything is poisoned with NaN bytes, the slack in front included.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/math.h"

namespace npuless::moe_token_permute {

// Strides and offset of a tensor with given dims.
struct Layout {
  std::vector<int64_t> strides;
  int64_t offset = 0;
};

// Without elements all strides are 1: the dims beside the empty one may be too large to multiply.
inline Layout contiguous(const std::vector<int64_t>& dims) {
  Layout layout;
  layout.strides.assign(dims.size(), 1);
  if (std::find(dims.begin(), dims.end(), 0) != dims.end()) return layout;
  for (size_t i = dims.size(); i-- > 1;) layout.strides[i - 1] = layout.strides[i] * dims[i];
  return layout;
}

class TestTensor {
 public:
  TestTensor(DType dtype, std::vector<int64_t> dims) : TestTensor(dtype, dims, contiguous(dims)) {}

  TestTensor(DType dtype, std::vector<int64_t> dims, Layout layout)
      : dtype_(dtype), dims_(std::move(dims)), layout_(std::move(layout)) {
    map(extent() * dtype_size(dtype));
    handle_ = aclCreateTensor(dims_.data(), dims_.size(), static_cast<aclDataType>(dtype_),
                              layout_.strides.data(), layout_.offset, ACL_FORMAT_ND, dims_.data(),
                              dims_.size(), data_);
  }

  ~TestTensor() {
    aclDestroyTensor(handle_);
    munmap(pages_, static_cast<size_t>(mapped_ + page()));
  }
  TestTensor(const TestTensor&) = delete;
  TestTensor& operator=(const TestTensor&) = delete;

  aclTensor* handle() const { return handle_; }
  int64_t dim(size_t axis) const { return dims_[axis]; }
  int64_t count() const {
    if (empty()) return 0;
    int64_t elements = 1;
    for (const int64_t dim : dims_) elements *= dim;
    return elements;
  }

  // Element `i` in row-major order of the dims, wherever the layout puts it.
  template <class T>
  T& at(int64_t i) const {
    int64_t element = layout_.offset;
    for (size_t axis = dims_.size(); axis-- > 0; i /= dims_[axis]) {
      element += i % dims_[axis] * layout_.strides[axis];
    }
    return reinterpret_cast<T*>(data_)[element];
  }

  template <class T>
  void write(const std::vector<T>& values) const {
    for (size_t i = 0; i < values.size(); ++i) at<T>(static_cast<int64_t>(i)) = values[i];
  }

  // Where elements share memory, what the last one written left there.
  template <class T>
  std::vector<T> read() const {
    std::vector<T> values;
    for (int64_t i = 0; i < count(); ++i) values.push_back(at<T>(i));
    return values;
  }

  void poison() const { std::memset(pages_, 0xFF, static_cast<size_t>(mapped_)); }

  // All memory that may be touched, for comparisons before and after.
  std::vector<unsigned char> bytes() const { return {pages_, pages_ + mapped_}; }

 private:
  bool empty() const { return std::find(dims_.begin(), dims_.end(), 0) != dims_.end(); }

  // Elements from the start of the storage to the last one of the tensor.
  int64_t extent() const {
    if (empty()) return 0;
    int64_t elements = layout_.offset + 1;
    for (size_t i = 0; i < dims_.size(); ++i) elements += (dims_[i] - 1) * layout_.strides[i];
    return elements;
  }

  static int64_t page() { return sysconf(_SC_PAGESIZE); }

  void map(int64_t size) {
    mapped_ = round_up(size, page());
    void* memory = mmap(nullptr, static_cast<size_t>(mapped_ + page()), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    pages_ = static_cast<unsigned char*>(memory);
    mprotect(pages_ + mapped_, static_cast<size_t>(page()), PROT_NONE);
    data_ = pages_ + mapped_ - size;
    if (size < kPoisonLimit) poison();
  }

  // Larger mappings are sparse: only what a test touches takes memory.
  static constexpr int64_t kPoisonLimit = int64_t{1} << 30;

  DType dtype_;
  std::vector<int64_t> dims_;
  Layout layout_;
  aclTensor* handle_ = nullptr;
  unsigned char* pages_ = nullptr;
  unsigned char* data_ = nullptr;
  int64_t mapped_ = 0;
};

}  // namespace npuless::moe_token_permute
