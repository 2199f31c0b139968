#include "runtime/event.h"

#include <utility>

namespace npuless::runtime {
namespace {

std::atomic<uint32_t> next_id{0};

}  // namespace

// Counts one queued wait of an event for as long as it lives.
class PendingWait {
 public:
  explicit PendingWait(EventPin event) : event_(std::move(event)) {
    event_->pending_waits_.fetch_add(1, std::memory_order_relaxed);
  }
  PendingWait(PendingWait&&) noexcept = default;
  PendingWait& operator=(PendingWait&&) = delete;
  ~PendingWait() {
    if (event_) event_->pending_waits_.fetch_sub(1, std::memory_order_release);
  }

 private:
  EventPin event_;
};

EventTable& events() {
  static constinit EventTable table;
  return table;
}

Event::Event(EventKind kind, bool waitable, bool timed) noexcept
    : kind_(kind),
      waitable_(waitable),
      timed_(timed),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)) {}

Event::Capture Event::capture() const {
  const std::lock_guard lock(mutex_);
  return {capture_.record, capture_.stream.share(), capture_.position};
}

uint64_t Event::begin_record() {
  const std::lock_guard lock(mutex_);
  return ++records_;
}

// Of records made at once on several streams the one that began last counts. The capture that loses
// goes with the argument, outside the lock.
void Event::end_record(Capture capture) {
  const std::lock_guard lock(mutex_);
  if (capture.record > capture_.record) std::swap(capture_, capture);
}

void Event::stamp(uint64_t record) {
  const Clock::time_point now = Clock::now();
  const std::lock_guard lock(mutex_);
  if (record < stamped_) return;
  stamped_ = record;
  time_ = now;
}

void Event::forget(uint64_t record) {
  Capture forgotten;
  const std::lock_guard lock(mutex_);
  if (capture_.record == record) std::swap(capture_, forgotten);
}

bool Event::reached() const {
  const Capture last = capture();
  if (last.record == 0) return kind_ == EventKind::kReusable;
  return last.stream->reached(last.position);
}

Status Event::synchronize(Deadline deadline) const {
  const Capture last = capture();
  if (last.record == 0) {
    if (kind_ == EventKind::kReusable) return {};
    return fail(code::kRtInternal, "event %u was never recorded", id_);
  }
  NPULESS_TRY(last.stream->refuse_orphan());
  if (!last.stream->wait_reached(last.position, deadline)) {
    return fail(code::kEventSyncTimeout, "event %u was not reached before the timeout", id_);
  }
  return last.stream->take_failure(last.position);
}

Status Event::time(Clock::time_point* time) const {
  const std::lock_guard lock(mutex_);
  if (capture_.record == 0) return fail(code::kRtInternal, "event %u was never recorded", id_);
  if (!timed_) {
    return fail(code::kRtTimestamp, "event %u has no time stamps; create it with them", id_);
  }
  if (stamped_ < capture_.record) {
    return fail(code::kRtTimestamp, "event %u is not reached yet; synchronise first", id_);
  }
  *time = time_;
  return {};
}

Status record_event(const EventPin& event, const StreamPin& stream) {
  const uint64_t record = event->begin_record();
  uint64_t position = 0;
  auto stamp = [event = event.share(), record] {
    event->stamp(record);
    return Status();
  };
  const Status status = stream->post(std::move(stamp), true, &position);
  if (position != 0) event->end_record({record, stream.share(), position});
  return status;
}

Status reset_event(const EventPin& event, const StreamPin& stream) {
  if (event->kind() == EventKind::kReusable) {
    return fail(code::kFeatureNotSupport, "event %u is reset by recording it again", event->id());
  }
  if (event->kind() == EventKind::kPlain || !event->waitable_) {
    return fail(code::kRtParamInvalid, "event %u was not created to be reset", event->id());
  }
  const uint64_t record = event->capture().record;
  return stream->post(
      [event = event.share(), record] {
        event->forget(record);
        return Status();
      },
      true);
}

Status wait_event(const EventPin& event, const StreamPin& stream, std::chrono::milliseconds limit) {
  if (!event->waitable_) {
    return fail(code::kRtParamInvalid, "event %u was created without ACL_EVENT_SYNC", event->id());
  }
  Event::Capture last = event->capture();
  if (last.record == 0) {
    if (event->kind() == EventKind::kReusable) return {};
    return fail(code::kRtParamInvalid, "event %u was never recorded", event->id());
  }
  NPULESS_TRY(last.stream->refuse_orphan());
  // The stream's own worker runs this, so the stream outlives it.
  return stream->post([pending = PendingWait(event.share()), self = stream.get(),
                       source = std::move(last.stream), position = last.position, limit] {
    const Deadline deadline = limit.count() == 0 ? kForever : deadline_after(limit);
    return self->wait_for(source, position, deadline);
  });
}

}  // namespace npuless::runtime
