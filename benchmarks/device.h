// What the benches need of the public interface: tensors in device memory and repeatable calls.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/half.h"

namespace npuless::bench {

inline void must(aclError status) {
  if (status == ACL_SUCCESS) return;
  const char* sentence = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s\n", sentence == nullptr ? "failed" : sentence);
  std::abort();
}

// A contiguous tensor in device memory, which is addressable here.
template <class T>
class DeviceTensor {
 public:
  explicit DeviceTensor(const std::vector<int64_t>& dims) {
    for (const int64_t dim : dims) count_ *= dim;
    void* memory = nullptr;
    must(aclrtMalloc(&memory, static_cast<size_t>(bytes()), ACL_MEM_MALLOC_HUGE_FIRST));
    data_ = static_cast<T*>(memory);
    handle_ = aclCreateTensor(dims.data(), dims.size(), static_cast<aclDataType>(kDType<T>),
                              nullptr, 0, ACL_FORMAT_ND, dims.data(), dims.size(), memory);
  }
  ~DeviceTensor() {
    aclDestroyTensor(handle_);
    aclrtFree(data_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  T* data() const { return data_; }
  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
  aclTensor* handle() const { return handle_; }

 private:
  T* data_;
  int64_t count_ = 1;
  aclTensor* handle_;
};

// Evenly spread over [-scale/2, scale/2), the same in every run; another seed, other numbers.
template <class T>
void fill(const DeviceTensor<T>& tensor, float scale = 1.0f, uint32_t seed = 1) {
  uint32_t state = seed * 2654435761u;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.data()[i] = narrow<T>((static_cast<float>(state >> 16) * 0x1p-16f - 0.5f) * scale);
  }
}

// One operator call that can be run again: `launcher.executor` and `launcher.workspace_size` are
// what phase 1 writes, then prepare().
class Launcher {
 public:
  using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

  Launcher(Phase2 phase2, aclrtStream stream) : phase2_(phase2), stream_(stream) {}
  ~Launcher() {
    aclDestroyAclOpExecutor(executor);
    aclrtFree(workspace_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void prepare() {
    must(aclSetAclOpExecutorRepeatable(executor));
    if (workspace_size == 0) return;
    must(aclrtMalloc(&workspace_, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  void run() const {
    must(phase2_(workspace_, workspace_size, executor, stream_));
    must(aclrtSynchronizeStream(stream_));
  }

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;

 private:
  Phase2 phase2_;
  aclrtStream stream_;
  void* workspace_ = nullptr;
};

}  // namespace npuless::bench
