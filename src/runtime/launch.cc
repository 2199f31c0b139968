#include "runtime/launch.h"

#include <cstring>

#include "runtime/current.h"

namespace npuless::runtime {

Status launch(void* stream, TaskFn fn, const void* payload, size_t payload_bytes, bool brief) {
  StreamPin found;
  NPULESS_TRY(find_stream(stream, &found));
  if (payload_bytes > kMaxTaskPayload) {
    return fail(code::kInner, "a task payload of %zu bytes exceeds %zu", payload_bytes,
                kMaxTaskPayload);
  }
  return found->enqueue(TaskKind{.run = fn, .anywhere = true, .brief = brief}, [&](void* slot) {
    if (payload_bytes > 0) std::memcpy(slot, payload, payload_bytes);
  });
}

Status check_stream(void* stream) {
  StreamPin found;
  return find_stream(stream, &found);
}

}  // namespace npuless::runtime
