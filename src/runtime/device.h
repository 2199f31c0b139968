// The virtual devices of the process: how many, who uses them, their primary contexts.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace npuless::runtime {

// NPULESS_DEVICE_COUNT devices (default 1), of which ASCEND_RT_VISIBLE_DEVICES selects and
// renumbers some. Read once.
int device_count();
// 107001 unless 0 ≤ device < device_count().
Status require_device(int64_t device);
// The number that the device has among all, before ASCEND_RT_VISIBLE_DEVICES renumbered them.
int physical_device(int device);

// Counts one reference; the first one creates the primary context. *context is its handle.
Status retain_device(int device, void** context);
// Drops one reference, or all when `force`; 507007 when there is none. The last one destroys the
// primary context and, when no other context of the device is left, its memory.
Status release_device(int device, bool force);
bool has_primary_context(int device);
// Destroys every context and frees every device's memory.
void release_all_devices();

}  // namespace npuless::runtime
