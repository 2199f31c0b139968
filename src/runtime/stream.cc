#include "runtime/stream.h"

#include <cstdlib>
#include <cstring>

#include "base/spin.h"

namespace npuless::runtime {
namespace {

std::atomic<int32_t> next_id{0};

bool launch_blocking() {
  static const bool blocking = [] {
    const char* text = std::getenv("ASCEND_LAUNCH_BLOCKING");
    return text != nullptr && std::strcmp(text, "1") == 0;
  }();
  return blocking;
}

}  // namespace

StreamTable& streams() {
  static constinit StreamTable table;
  return table;
}

Stream::Stream(const StreamOptions& options) noexcept
    : options_(options), id_(next_id.fetch_add(1, std::memory_order_relaxed)) {
  set_attribute(StreamAttribute::kPriority, options.priority);
}

Status Stream::start() {
  const std::lock_guard lock(mutex_);
  return prepare_locked();
}

Status Stream::prepare_locked() {
  if (stopping_.load(std::memory_order_relaxed)) {
    return fail(code::kRtInvalidHandle, "the stream is being destroyed");
  }
  if (!queue_.reserve()) {
    return fail(code::kMemoryAllocation, "out of host memory for the tasks of a stream");
  }
  return worker_.joinable() ? Status() : start_locked();
}

void Stream::commit_locked(Task* task, uint64_t* position) {
  const uint64_t number = submitted_.load(std::memory_order_relaxed) + 1;
  queue_.push(task);
  submitted_.store(number, std::memory_order_release);
  if (position != nullptr) *position = number;
}

// While a client runs a task it wakes the worker for what is left.
bool Stream::wants_waking_locked() {
  if (!asleep_ || busy_) return false;
  if (queue_.empty() && !stopping_.load(std::memory_order_relaxed)) return false;
  asleep_ = false;
  return true;
}

Status Stream::after_enqueue() {
  return launch_blocking() ? synchronize(kForever) : Status();
}

bool Stream::wait_reached(uint64_t position, Deadline deadline, const Stream* waiter) {
  if (spin_until([&] { return reached(position); })) return true;
  std::unique_lock lock(mutex_);
  while (!reached(position)) {
    if (waiter != nullptr && waiter->discards(waiter->running())) return false;
    if (position < wake_at_) wake_at_ = position;
    if (!wait_once(progress_, lock, deadline)) return reached(position);
  }
  return true;
}

Status Stream::wait_for(const StreamPin& source, uint64_t position, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    awaited_ = source.share();
  }
  const bool reached = source->wait_reached(position, deadline, this);
  StreamPin awaited;
  {
    const std::lock_guard lock(mutex_);
    awaited = std::move(awaited_);
  }
  if (reached) return {};
  if (discards(running())) {
    return fail(code::kRtStreamAbort, "stream %d was aborted while it waited for an event", id_);
  }
  return fail(code::kRtWaitTimeout, "stream %d waited too long for an event of stream %d", id_,
              source->id());
}

Status Stream::synchronize(Deadline deadline) {
  NPULESS_TRY(refuse_orphan());
  const uint64_t position = submitted();
  // A task cannot be left when a deadline passes.
  if (deadline == kForever) help(position);
  if (!wait_reached(position, deadline)) {
    return fail(code::kStreamSyncTimeout, "stream %d still has unfinished work after the timeout",
                id_);
  }
  return take_failure(position);
}

Status Stream::take_failure(uint64_t position) {
  if (!failed_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  const int32_t code = failure_.error.code;
  if (code == code::kOk || failure_.position > position) return {};
  restore_last_error(failure_.error);
  failure_.error.code = code::kOk;
  failed_.store(false, std::memory_order_release);
  return Status(code);
}

uint64_t Stream::discard_queued() {
  uint64_t last = 0;
  StreamPin awaited;
  {
    const std::lock_guard lock(mutex_);
    last = submitted_.load(std::memory_order_relaxed);
    discard_until_.store(last, std::memory_order_release);
    awaited = awaited_.share();
  }
  if (awaited) awaited->notify_waiters();
  return last;
}

void Stream::notify_waiters() {
  { const std::lock_guard lock(mutex_); }
  progress_.notify_all();
}

void Stream::abort() {
  wait_reached(discard_queued(), kForever);
}

void Stream::shut_down(bool discard) {
  if (discard) discard_queued();
  {
    const std::lock_guard lock(mutex_);
    stopping_.store(true, std::memory_order_release);
  }
  work_ready_.notify_one();
  if (worker_.joinable()) worker_.join();
}

void Stream::abandon(StreamPin orphan) {
  Stream& stream = *orphan;
  stream.kept_ = std::move(orphan);
}

Status Stream::refuse_orphan() const {
  if (!is_orphan()) return {};
  return fail(code::kRtInvalidHandle,
              "stream %d belongs to the process that this one was forked from", id_);
}

}  // namespace npuless::runtime
