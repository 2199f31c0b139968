// acl_rt_event.h: events, and the waits of acl_rt_stream.h.
#include <bit>

#include "acl/acl_rt.h"
#include "runtime/current.h"
#include "runtime/event.h"
#include "runtime/synchronize.h"

namespace npuless::runtime {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kExclusiveFlags = ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;
constexpr uint32_t kKnownFlags = ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS |
                                 ACL_EVENT_TIME_LINE | ACL_EVENT_DEVICE_USE_ONLY | kExclusiveFlags;

Status require_flags(uint32_t flags) {
  if (flags == 0 || (flags & ~kKnownFlags) != 0) {
    return fail(code::kRtParamInvalid, "event flag 0x%x is 0 or has unknown bits", flags);
  }
  if ((flags & kExclusiveFlags) == 0) return {};
  if (!std::has_single_bit(flags)) {
    return fail(code::kRtParamInvalid, "event flag 0x%x combines a flag that stands alone", flags);
  }
  return fail(code::kFeatureNotSupport, "events shared with others (flag 0x%x) are not supported",
              flags);
}

Status create(aclrtEvent* handle, EventKind kind, uint32_t flags) {
  NPULESS_TRY(require(handle, "event"));
  NPULESS_TRY(require_flags(flags));
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  const bool waitable = kind == EventKind::kReusable || (flags & ACL_EVENT_SYNC) != 0;
  const EventPin event = events().insert(kind, waitable, (flags & ACL_EVENT_TIME_LINE) != 0);
  if (!event) return fail(code::kMemoryAllocation, "out of host memory for an event");
  *handle = event.handle();
  return {};
}

Status find_event(aclrtEvent handle, EventPin* event) {
  NPULESS_TRY(require(handle, "event"));
  *event = events().find(handle);
  if (*event) return {};
  return fail(code::kRtInvalidHandle, "%p is not an event, or no longer", handle);
}

Status find_both(aclrtEvent event_handle, aclrtStream stream_handle, EventPin* event,
                 StreamPin* stream) {
  NPULESS_TRY(find_event(event_handle, event));
  return find_stream(stream_handle, stream);
}

// Flags of records and waits: external ones belong to captured graphs, which do not exist here.
Status require_default(uint32_t flag) {
  if (flag == ACL_EVENT_RECORD_DEFAULT) return {};
  if (flag == ACL_EVENT_RECORD_EXTERNAL) {
    return fail(code::kFeatureNotSupport, "external records and waits are not supported");
  }
  return fail(code::kRtParamInvalid, "unknown flag 0x%x", flag);
}

Status record(aclrtEvent event_handle, aclrtStream stream_handle) {
  EventPin event;
  StreamPin stream;
  NPULESS_TRY(find_both(event_handle, stream_handle, &event, &stream));
  return record_event(event, stream);
}

// A limit of zero asks for the one that aclrtSetOpWaitTimeout gave the context.
Status wait(aclrtEvent event_handle, aclrtStream stream_handle, milliseconds limit) {
  EventPin event;
  StreamPin stream;
  NPULESS_TRY(find_both(event_handle, stream_handle, &event, &stream));
  if (limit.count() == 0) {
    ContextPin context;
    NPULESS_TRY(current_context(&context));
    limit = std::chrono::seconds(context->op_wait_seconds.load(std::memory_order_relaxed));
  }
  return wait_event(event, stream, limit);
}

Status refuse_reusable(const EventPin& event) {
  if (event->kind() != EventKind::kReusable) return {};
  return fail(code::kFeatureNotSupport, "not for events of aclrtCreateEventExWithFlag");
}

Status event_time(aclrtEvent handle, Clock::time_point* time) {
  EventPin event;
  NPULESS_TRY(find_event(handle, &event));
  return event->time(time);
}

Status elapsed(float* ms, aclrtEvent start_handle, aclrtEvent end_handle) {
  NPULESS_TRY(require(ms, "ms"));
  NPULESS_TRY(require(start_handle, "startEvent"));
  NPULESS_TRY(require(end_handle, "endEvent"));
  Clock::time_point start;
  Clock::time_point end;
  NPULESS_TRY(event_time(start_handle, &start));
  NPULESS_TRY(event_time(end_handle, &end));
  *ms = std::chrono::duration<float, std::milli>(end - start).count();
  return {};
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) {
  return api(__func__, [&] {
    return create(event, EventKind::kPlain, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
  });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return api(__func__, [&] { return create(event, EventKind::kFlagged, flag); });
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  return api(__func__, [&] { return create(event, EventKind::kReusable, flag); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(event, "event"));
    if (events().take(event)) return {};
    return fail(code::kRtInvalidHandle, "%p is not an event, or no longer", event);
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return api(__func__, [&] { return record(event, stream); });
}

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(event, "event"));
    NPULESS_TRY(require_default(flag));
    return record(event, stream);
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return api(__func__, [&]() -> Status {
    EventPin found;
    StreamPin queue;
    NPULESS_TRY(find_both(event, stream, &found, &queue));
    return reset_event(found, queue);
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return api(__func__, [&] { return wait(event, stream, milliseconds(0)); });
}

aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(event, "event"));
    Deadline unused;
    NPULESS_TRY(deadline_from(timeout, &unused));
    return wait(event, stream, milliseconds(timeout == -1 ? 0 : timeout));
  });
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(event, "event"));
    NPULESS_TRY(require_default(flag));
    return wait(event, stream, milliseconds(timeout));
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(status, "status"));
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    NPULESS_TRY(refuse_reusable(found));
    *status = found->reached() ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(status, "status"));
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    *status =
        found->reached() ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return {};
  });
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event, aclrtEventWaitStatus* status) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(status, "status"));
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    NPULESS_TRY(refuse_reusable(found));
    *status = found->has_pending_waits() ? ACL_EVENT_WAIT_STATUS_NOT_READY
                                         : ACL_EVENT_WAIT_STATUS_COMPLETE;
    return {};
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return api(__func__, [&]() -> Status {
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    return found->synchronize(kForever);
  });
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(event, "event"));
    Deadline deadline;
    NPULESS_TRY(deadline_from(timeout, &deadline));
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    return found->synchronize(deadline);
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return api(__func__, [&] { return elapsed(ms, startEvent, endEvent); });
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(timestamp, "timestamp"));
    Clock::time_point time;
    NPULESS_TRY(event_time(event, &time));
    const auto since_epoch = std::chrono::floor<std::chrono::microseconds>(time.time_since_epoch());
    *timestamp = static_cast<uint64_t>(since_epoch.count());
    return {};
  });
}

aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(eventId, "eventId"));
    EventPin found;
    NPULESS_TRY(find_event(event, &found));
    *eventId = found->id();
    return {};
  });
}

aclError aclrtGetEventAvailNum(uint32_t* eventCount) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(eventCount, "eventCount"));
    *eventCount = events().available();
    return {};
  });
}

}  // extern "C"
