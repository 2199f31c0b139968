// Events: a position of a stream, captured when the event is recorded.
//
// Waiting for an event is waiting until that stream reached that position, so a later record cannot
// disturb a wait that was issued before it, and waits among streams cannot form a cycle: every
// position that can be captured was queued before the wait.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/handle_table.h"
#include "base/status.h"
#include "runtime/deadline.h"
#include "runtime/stream.h"

namespace npuless::runtime {

class Event;
using EventTable = HandleTable<Event, 'e'>;
using EventPin = EventTable::Pin;

EventTable& events();

enum class EventKind {
  kPlain,     // aclrtCreateEvent
  kFlagged,   // aclrtCreateEventWithFlag
  kReusable,  // aclrtCreateEventExWithFlag
};

class Event {
 public:
  Event(EventKind kind, bool waitable, bool timed) noexcept;

  EventKind kind() const { return kind_; }
  uint32_t id() const { return id_; }

  // Never recorded: a reusable event is reached, another is not.
  bool reached() const;
  // Whether a wait that was queued on a stream is still to end.
  bool has_pending_waits() const { return pending_waits_.load(std::memory_order_acquire) != 0; }
  // Blocks until reached, then reports the failure of the work that was captured. 507047 after the
  // deadline, 507000 when never recorded.
  Status synchronize(Deadline deadline) const;
  // When the record was reached. 507000 never recorded, 107006 not reached or without time stamps.
  Status time(Clock::time_point* time) const;

 private:
  friend Status record_event(const EventPin& event, const StreamPin& stream);
  friend Status reset_event(const EventPin& event, const StreamPin& stream);
  friend Status wait_event(const EventPin& event, const StreamPin& stream,
                           std::chrono::milliseconds limit);
  friend class PendingWait;

  struct Capture {
    uint64_t record = 0;  // numbers the records of this event from 1; 0: never recorded
    StreamPin stream;
    uint64_t position = 0;
  };

  Capture capture() const;
  uint64_t begin_record();
  void end_record(Capture capture);
  void stamp(uint64_t record);
  void forget(uint64_t record);

  const EventKind kind_;
  const bool waitable_;
  const bool timed_;
  const uint32_t id_;
  std::atomic<int64_t> pending_waits_{0};

  mutable std::mutex mutex_;
  uint64_t records_ = 0;  // begun so far
  Capture capture_;
  uint64_t stamped_ = 0;  // the latest record that was reached
  Clock::time_point time_;
};

// Captures what is queued on the stream so far.
Status record_event(const EventPin& event, const StreamPin& stream);
// Queues the return to "never recorded", unless a later record comes first. 207000 for a reusable
// event, 107000 for one that cannot be reset.
Status reset_event(const EventPin& event, const StreamPin& stream);
// Queues a wait on the stream that fails after `limit`; zero is no limit. 107000 for an event that
// streams cannot wait for, or that was never recorded unless it is reusable.
Status wait_event(const EventPin& event, const StreamPin& stream, std::chrono::milliseconds limit);

}  // namespace npuless::runtime
