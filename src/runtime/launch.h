// What operators see of the runtime: one function that queues work on a stream.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace npuless::runtime {

// Largest payload a queued task carries. Payloads are copied bytes: trivially copyable, no
// destructor runs.
inline constexpr size_t kMaxTaskPayload = 1536;

// Runs on the stream's worker thread, on that of a client that synchronises with the stream, or,
// where it is brief and nothing is queued before it, on that of the client that launches it. A
// failure becomes the stream's sticky error, with the sentence that the task left in its thread's
// last-error slot, and is returned by the next synchronising call.
using TaskFn = Status (*)(void* payload);

// Queues `fn(copy of payload)` behind everything queued on `stream` so far and returns.
// `stream` is an aclrtStream; null means the current context's default stream. With
// ASCEND_LAUNCH_BLOCKING=1 it returns after the task ended, with the task's status.
// Allocates nothing in the steady state. Errors: 107002 no current context, 107017 not a stream, a
// destroyed one or one of the process that this one was forked from, 107003 a stream of another
// context, 207001 no memory for a task slot.
// A `brief` task may have run when it returns; its failure is reported as any other's.
Status launch(void* stream, TaskFn fn, const void* payload, size_t payload_bytes,
              bool brief = false);

// 107002… as launch() would answer for this stream, without queueing anything.
Status check_stream(void* stream);

}  // namespace npuless::runtime
