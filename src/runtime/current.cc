#include "runtime/current.h"

#include <atomic>

#include "runtime/launch.h"

namespace npuless::runtime {
namespace {

std::atomic<void*> default_context{nullptr};

}  // namespace

ThreadState& this_thread() {
  thread_local ThreadState state;
  return state;
}

void set_default_context(void* context) {
  default_context.store(context, std::memory_order_release);
}

Status current_context(ContextPin* context) {
  const void* handle = this_thread().context;
  if (handle == nullptr) handle = default_context.load(std::memory_order_acquire);
  if (handle == nullptr) {
    return fail(code::kRtContextNull, "this thread has no current context; call aclrtSetDevice");
  }
  *context = contexts().find(handle);
  if (*context) return {};
  return fail(code::kRtContextNull, "the current context of this thread was destroyed");
}

Status find_stream(void* handle, StreamPin* stream) {
  if (handle != nullptr) {
    *stream = streams().find(handle);
    if (!*stream) return fail(code::kRtInvalidHandle, "%p is not a stream, or no longer", handle);
  }
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  if (handle == nullptr) {
    *stream = streams().find(context->default_stream);
    if (*stream) return (*stream)->refuse_orphan();
    return fail(code::kRtContextNull, "the current context is being destroyed");
  }
  if ((*stream)->options().context == context.handle()) return (*stream)->refuse_orphan();
  return fail(code::kRtStreamContext, "stream %d belongs to another context than the current one",
              (*stream)->id());
}

Status require(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return fail(code::kInvalidParam, "%s must not be null", name);
}

}  // namespace npuless::runtime
