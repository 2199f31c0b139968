#include "runtime/synchronize.h"

#include <cstdint>

#include "runtime/stream.h"

namespace npuless::runtime {

// Later failures are taken too, yet the first one's sentence is the one to report.
Status synchronize_device(int device, Deadline deadline) {
  Status first;
  LastError error;
  streams().for_each([&](const StreamPin& stream) {
    if (stream->options().device != device) return;
    const Status status = stream->synchronize(deadline);
    if (status.ok() || !first.ok()) return;
    first = status;
    error = copy_last_error();
  });
  if (!first.ok()) restore_last_error(error);
  return first;
}

Status deadline_from(int32_t timeout_ms, Deadline* deadline) {
  if (timeout_ms != -1 && timeout_ms <= 0) {
    return fail(code::kRtParamInvalid, "the timeout must be -1 or positive, got %d", timeout_ms);
  }
  *deadline = timeout_ms == -1 ? kForever : deadline_after(std::chrono::milliseconds(timeout_ms));
  return {};
}

}  // namespace npuless::runtime
