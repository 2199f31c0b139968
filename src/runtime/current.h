// What belongs to the calling thread: its current context and its last error code. Also how
// handles that the client passes are looked up against them.
#pragma once

#include "base/guard.h"
#include "base/status.h"
#include "runtime/context.h"

namespace npuless::runtime {

struct ThreadState {
  void* context = nullptr;
  int32_t last_error = code::kOk;
};

ThreadState& this_thread();

// The context of threads that never made one current (defaultDevice of aclInit); null for none.
void set_default_context(void* context);

// 107002 when the thread has no context, or its context was destroyed.
Status current_context(ContextPin* context);
// Null means the default stream of the current context. Codes as launch() in runtime/launch.h.
Status find_stream(void* handle, StreamPin* stream);

// 100000 "<name> must not be null".
Status require(const void* pointer, const char* name);

// The body of every public runtime function: guarded, and its code becomes the thread's last error.
template <class Body>
int32_t api(const char* name, Body&& body) noexcept {
  const int32_t code = guarded(name, body);
  if (code != code::kOk) this_thread().last_error = code;
  return code;
}

}  // namespace npuless::runtime
