// acl_rt_memory.h: copies and fills.
#include "acl/acl_rt.h"
#include "runtime/copy.h"
#include "runtime/current.h"

namespace npuless::runtime {
namespace {

struct CopyCall {
  void* dst;
  size_t dst_size;
  const void* src;
  size_t count;
  aclrtMemcpyKind kind;
};

struct Copy2dCall {
  CopyShape shape;
  aclrtMemcpyKind kind;
};

struct FillCall {
  void* dst;
  size_t dst_size;
  int32_t value;
  size_t count;
};

struct FillWordsCall {
  void* dst;
  size_t dst_size;
  uint32_t value;
  size_t words;
};

Status refuse_kind(aclrtMemcpyKind kind) {
  return fail(code::kInvalidParam, "kind %d is not supported by this copy", static_cast<int>(kind));
}

// The checks every form of a call shares, in the documented order; `todo` is false when there is
// nothing to do.
Status check(const CopyCall& call, Copy* copy, bool* todo) {
  *todo = false;
  if (call.count == 0) return {};
  NPULESS_TRY(require(call.dst, "dst"));
  NPULESS_TRY(require(call.src, "src"));
  if (call.kind < ACL_MEMCPY_HOST_TO_HOST || call.kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return refuse_kind(call.kind);
  }
  if (call.count > call.dst_size) {
    return fail(code::kRtParamInvalid, "count %zu exceeds destMax %zu", call.count, call.dst_size);
  }
  if (call.dst == call.src) return {};
  *todo = true;
  return Copy::make({call.dst, call.count, call.src, call.count, call.count, 1}, copy);
}

bool is_2d_kind(aclrtMemcpyKind kind) {
  return kind >= ACL_MEMCPY_HOST_TO_DEVICE && kind <= ACL_MEMCPY_DEFAULT;
}

Status check(const Copy2dCall& call, Copy* copy, bool* todo) {
  const CopyShape& shape = call.shape;
  *todo = false;
  if (shape.width == 0 || shape.height == 0) return {};
  NPULESS_TRY(require(shape.dst, "dst"));
  NPULESS_TRY(require(shape.src, "src"));
  if (shape.width > shape.dst_pitch || shape.width > shape.src_pitch) {
    return fail(code::kInvalidParam, "width %zu exceeds a pitch (%zu, %zu)", shape.width,
                shape.dst_pitch, shape.src_pitch);
  }
  if (!is_2d_kind(call.kind)) return refuse_kind(call.kind);
  *todo = true;
  return Copy::make(shape, copy);
}

Status check(const FillCall& call, Fill* fill, bool* todo) {
  *todo = false;
  if (call.count == 0) return {};
  NPULESS_TRY(require(call.dst, "devPtr"));
  if (call.count > call.dst_size) {
    return fail(code::kRtParamInvalid, "count %zu exceeds maxCount %zu", call.count, call.dst_size);
  }
  *todo = true;
  return Fill::bytes(call.dst, call.count, call.value, fill);
}

Status check(const FillWordsCall& call, Fill* fill, bool* todo) {
  *todo = false;
  if (call.words == 0) return {};
  NPULESS_TRY(require(call.dst, "ptr"));
  if (reinterpret_cast<uintptr_t>(call.dst) % sizeof(uint32_t) != 0) {
    return fail(code::kInvalidParam, "ptr must be a multiple of 4");
  }
  if (call.words > call.dst_size / sizeof(uint32_t)) {
    return fail(code::kInvalidParam, "%zu words exceed memSize %zu", call.words, call.dst_size);
  }
  *todo = true;
  return Fill::words(call.dst, call.words, call.value, fill);
}

template <class Work, class Call>
Status run_now(const Call& call) {
  Work work;
  bool todo = false;
  NPULESS_TRY(check(call, &work, &todo));
  if (todo) work.run();
  return {};
}

template <class Work, class Call>
Status run_on(aclrtStream handle, const Call& call) {
  Work work;
  bool todo = false;
  NPULESS_TRY(check(call, &work, &todo));
  if (!todo) return {};
  StreamPin stream;
  NPULESS_TRY(find_stream(handle, &stream));
  return submit(stream, std::move(work));
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless::runtime;

extern "C" {

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  return api(__func__, [&] { return run_now<Copy>(CopyCall{dst, destMax, src, count, kind}); });
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  return api(__func__, [&] {
    return run_on<Copy>(stream, CopyCall{dst, destMax, src, count, kind});
  });
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  return api(__func__, [&] {
    return run_on<Copy>(stream, CopyCall{dst, destMax, src, count, kind});
  });
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  return api(__func__, [&] {
    return run_now<Copy>(Copy2dCall{{dst, dpitch, src, spitch, width, height}, kind});
  });
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  return api(__func__, [&] {
    return run_on<Copy>(stream, Copy2dCall{{dst, dpitch, src, spitch, width, height}, kind});
  });
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  return api(__func__, [&] { return run_now<Fill>(FillCall{devPtr, maxCount, value, count}); });
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  return api(__func__, [&] {
    return run_on<Fill>(stream, FillCall{devPtr, maxCount, value, count});
  });
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  return api(__func__, [&] { return run_now<Fill>(FillWordsCall{ptr, memSize, value, N}); });
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  return api(__func__, [&] { return run_on<Fill>(stream, FillWordsCall{ptr, memSize, value, N}); });
}

}  // extern "C"
