// Waiting for more than one stream, and the timeouts that clients give.
#pragma once

#include "base/status.h"
#include "runtime/deadline.h"

namespace npuless::runtime {

// Waits for what is queued on every stream of the device, then returns the first failure found and
// forgets the others. 507046 after the deadline.
Status synchronize_device(int device, Deadline deadline);

// -1 is forever, a positive number that many milliseconds from now, all else 107000.
Status deadline_from(int32_t timeout_ms, Deadline* deadline);

}  // namespace npuless::runtime
