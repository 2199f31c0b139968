// What the programs of this folder share: C++11, public headers only, as a user would write it.
#ifndef NPULESS_TESTS_CAPI_CLIENT_H_
#define NPULESS_TESTS_CAPI_CLIENT_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"

namespace client {

inline int& failures() {
  static int count = 0;
  return count;
}

inline void check(bool passed, const char* what, const char* file, int line) {
  if (passed) return;
  ++failures();
  std::printf("%s:%d: %s\n", file, line, what);
}

inline void check_code(int got, int expected, const char* what, const char* file, int line) {
  if (got == expected) return;
  ++failures();
  const char* sentence = aclGetRecentErrMsg();
  std::printf("%s:%d: %s returned %d, expected %d (%s)\n", file, line, what, got, expected,
              sentence == nullptr ? "no sentence" : sentence);
}

// The call failed and left one sentence that contains `part`; the second reading finds none.
inline void check_refusal(int got, int expected, const char* part, const char* what,
                          const char* file, int line) {
  const char* sentence = aclGetRecentErrMsg();
  check(sentence != nullptr && std::strstr(sentence, part) != nullptr,
        sentence == nullptr ? "an error left no sentence" : sentence, file, line);
  check(aclGetRecentErrMsg() == nullptr, "reading the sentence did not clear it", file, line);
  check_code(got, expected, what, file, line);
}

#define CHECK(condition) client::check((condition), #condition, __FILE__, __LINE__)
#define CHECK_OK(call) client::check_code((call), ACL_SUCCESS, #call, __FILE__, __LINE__)
#define CHECK_CODE(call, code) client::check_code((call), (code), #call, __FILE__, __LINE__)
#define CHECK_REFUSED(call, code, part) \
  client::check_refusal((call), (code), (part), #call, __FILE__, __LINE__)

// The library from aclInit to aclFinalize, with device 0 and one stream.
class Session {
 public:
  Session() : stream(nullptr) {
    CHECK_OK(aclInit(nullptr));
    CHECK_OK(aclrtSetDevice(0));
    CHECK_OK(aclrtCreateStream(&stream));
  }
  ~Session() {
    CHECK_OK(aclrtDestroyStream(stream));
    CHECK_OK(aclrtResetDevice(0));
    CHECK_OK(aclFinalize());
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  aclrtStream stream;
};

// Bytes of device memory, none for size 0.
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size) : data_(nullptr), size_(size) {
    if (size > 0) CHECK_OK(aclrtMalloc(&data_, size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  ~DeviceBytes() {
    if (data_ != nullptr) CHECK_OK(aclrtFree(data_));
  }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  void* get() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* data_;
  size_t size_;
};

// A contiguous tensor, its device memory, and copies to and from the host.
template <class T>
class Tensor {
 public:
  Tensor(const std::vector<int64_t>& dims, aclDataType dtype, const std::vector<T>& values)
      : memory_(values.size() * sizeof(T)), tensor_(nullptr) {
    write(values);
    tensor_ = aclCreateTensor(dims.data(), dims.size(), dtype, nullptr, 0, ACL_FORMAT_ND,
                              dims.data(), dims.size(), memory_.get());
    CHECK(tensor_ != nullptr);
  }
  ~Tensor() { CHECK_OK(aclDestroyTensor(tensor_)); }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  aclTensor* get() const { return tensor_; }
  void* address() const { return memory_.get(); }

  void write(const std::vector<T>& values) {
    CHECK_OK(aclrtMemcpy(memory_.get(), memory_.size(), values.data(), values.size() * sizeof(T),
                         ACL_MEMCPY_HOST_TO_DEVICE));
  }
  std::vector<T> read() const {
    std::vector<T> values(memory_.size() / sizeof(T));
    CHECK_OK(aclrtMemcpy(values.data(), memory_.size(), memory_.get(), memory_.size(),
                         ACL_MEMCPY_DEVICE_TO_HOST));
    return values;
  }

 private:
  DeviceBytes memory_;
  aclTensor* tensor_;
};

// What phase 1 gives, with the workspace it asks for.
struct Planned {
  Planned() : size(0), executor(nullptr) {}
  uint64_t size;
  aclOpExecutor* executor;
};

typedef aclnnStatus (*PhaseTwo)(void*, uint64_t, aclOpExecutor*, aclrtStream);

inline void run_and_wait(PhaseTwo phase2, const Planned& planned, aclrtStream stream) {
  const DeviceBytes workspace(static_cast<size_t>(planned.size));
  CHECK_OK(phase2(workspace.get(), planned.size, planned.executor, stream));
  CHECK_OK(aclrtSynchronizeStream(stream));
}

inline int result() {
  if (failures() != 0) std::printf("%d checks failed\n", failures());
  return failures() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace client

#endif  // NPULESS_TESTS_CAPI_CLIENT_H_
