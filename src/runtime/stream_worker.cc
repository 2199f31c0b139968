// What a stream's worker thread does.
#include <pthread.h>

#include <cstdio>
#include <system_error>

#include "base/guard.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "base/spin.h"
#include "runtime/stream.h"

namespace npuless::runtime {
namespace {

// What a worker inherits: it leaves signals to the program's own threads.
class BlockSignals {
 public:
  BlockSignals() : saved_(block_signals()) {}
  ~BlockSignals() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }
  BlockSignals(const BlockSignals&) = delete;
  BlockSignals& operator=(const BlockSignals&) = delete;

 private:
  sigset_t saved_;
};

// The number of this process in a line of forks.
std::atomic<uint32_t> this_process{1};

bool count_forks() {
  static const bool counted = pthread_atfork(nullptr, nullptr, [] {
                                this_process.fetch_add(1, std::memory_order_relaxed);
                              }) == 0;
  return counted;
}

Status run_task(Task& task) noexcept {
  try {
    return task.kind.run(task.payload);
  } catch (const std::bad_alloc&) {
    return fail(code::kMemoryAllocation, "out of host memory in a queued task");
  } catch (...) {
    return fail(code::kRtInternal, "unexpected exception in a queued task");
  }
}

}  // namespace

Status Stream::start_locked() {
  const BlockSignals inherited_by_the_worker;
  if (!count_forks()) return fail(code::kMemoryAllocation, "out of host memory for a stream");
  process_.store(this_process.load(std::memory_order_relaxed), std::memory_order_relaxed);
  try {
    worker_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    return fail(code::kNoStreamResource, "the system refused another thread for a stream");
  }
  char name[16];
  std::snprintf(name, sizeof(name), "npuless-%d", id_);
  pthread_setname_np(worker_.native_handle(), name);
  return {};
}

bool Stream::is_orphan() const {
  const uint32_t home = process_.load(std::memory_order_relaxed);
  return home != 0 && home != this_process.load(std::memory_order_relaxed);
}

void Stream::work() {
  // A thread starts with its creator's flush-to-zero and rounding modes.
  const detail::DefaultFpEnv env;
  std::unique_lock lock(mutex_);
  while (wait_for_task(lock)) run_task_locked(lock);
}

void Stream::help(uint64_t position) {
  if (reached(position)) return;
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    help_locked(lock, position);
    wake = wants_waking_locked();
  }
  if (wake) work_ready_.notify_one();
}

void Stream::help_locked(std::unique_lock<std::mutex>& lock, uint64_t position) {
  const auto may_take = [&] {
    return !busy_ && !queue_.empty() && queue_.front()->kind.anywhere && running() <= position;
  };
  if (!may_take()) return;
  const LastError own = copy_last_error();
  const detail::DefaultFpEnv env;
  while (may_take()) run_task_locked(lock);
  restore_last_error(own);
}

void Stream::run_task_locked(std::unique_lock<std::mutex>& lock) {
  Task* task = queue_.pop();
  busy_ = true;
  taken_.fetch_add(1, std::memory_order_release);
  const bool skip = !task->kind.always && skips_locked();
  lock.unlock();
  clear_last_error();
  const ApiScope no_function(nullptr);  // a helping client's call is not what fails here
  const Status status = skip ? skipped() : run_task(*task);
  if (task->kind.destroy != nullptr) task->kind.destroy(task->payload);
  lock.lock();
  busy_ = false;
  finish_locked(task, status);
}

// False when the stream shuts down and everything queued was handled.
bool Stream::wait_for_task(std::unique_lock<std::mutex>& lock) {
  if (queue_.empty()) {
    lock.unlock();
    spin_until([this] {
      return stopping_.load(std::memory_order_acquire) ||
             taken_.load(std::memory_order_acquire) < submitted();
    });
    lock.lock();
  }
  while (busy_ || queue_.empty()) {
    if (!busy_ && stopping_.load(std::memory_order_relaxed)) return false;
    asleep_ = true;
    work_ready_.wait(lock);
    asleep_ = false;
  }
  return true;
}

bool Stream::skips_locked() const {
  const bool stops = attribute(StreamAttribute::kFailureMode) != 0;
  return discards(running()) || (stops && failure_.error.code != code::kOk);
}

// The status of a task that did not run. Behind a failure it adds nothing to that failure.
Status Stream::skipped() const {
  if (!discards(running())) return {};
  return fail(code::kRtStreamAbort, "queued work of stream %d was discarded", id_);
}

void Stream::finish_locked(Task* task, Status status) {
  const uint64_t position = running();
  if (!status.ok()) keep_failure_locked(status, position);
  queue_.give_back(task);
  completed_.store(position, std::memory_order_release);
  if (position < wake_at_) return;
  wake_at_ = UINT64_MAX;
  progress_.notify_all();
}

void Stream::keep_failure_locked(Status status, uint64_t position) {
  if (failure_.error.code != code::kOk) return;
  failure_.error = copy_last_error();
  if (failure_.error.code == code::kOk) {
    status = fail(status.code(), "a task of stream %d failed with code %d", id_, status.code());
    failure_.error = copy_last_error();
  }
  failure_.error.code = status.code();
  failure_.position = position;
  failed_.store(true, std::memory_order_release);
}

}  // namespace npuless::runtime
