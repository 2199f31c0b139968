// A stream: a queue and the worker thread that runs it in order. A client that synchronises runs
// what it waits for itself where the worker has not begun it: waking a thread takes longer than
// most small operators. One task at a time, whoever runs it.
//
// Tasks are numbered from 1 in the order they were queued; the number is a position in the stream.
// "Reached p" means that the first p tasks ended, and it is all that synchronising calls and events
// need to know. The first failure since the last report stays with the stream, with its sentence,
// until a synchronising call that covers its position takes it.
//
// A forked child inherits the streams of its parent without their workers: orphans. They are
// refused, never waited for and never destroyed: a mutex may be locked forever, and a condition
// variable's destructor would wait for the worker that sleeps in it.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/handle_table.h"
#include "base/status.h"
#include "runtime/deadline.h"
#include "runtime/task_queue.h"

namespace npuless::runtime {

class Stream;
using StreamTable = HandleTable<Stream, 's'>;
using StreamPin = StreamTable::Pin;

StreamTable& streams();

struct StreamOptions {
  void* context = nullptr;  // handle of the owner
  int device = 0;
  bool is_default = false;  // of its context, which alone destroys it
  uint32_t priority = 0;
  uint32_t flags = 0;
};

// Values a client may attach; numbered as aclrtStreamAttr.
enum class StreamAttribute : size_t {
  kFailureMode = 1,  // 0: work behind a failed task still runs, 1: it does not
  kOverflowCheck = 2,
  kCustomTag = 3,
  kCacheOpInfo = 4,
  kPriority = 5,
};

class Stream {
 public:
  explicit Stream(const StreamOptions& options) noexcept;

  const StreamOptions& options() const { return options_; }
  int32_t id() const { return id_; }

  // Starts the worker and reserves task slots; otherwise the first task does.
  Status start();
  // Waits for the queued work, or discards it, and joins the worker. Called once, by whoever took
  // the stream out of the table; later tasks are refused.
  void shut_down(bool discard);
  // What is done to an orphan instead.
  static void abandon(StreamPin orphan);

  bool is_orphan() const;
  // 107017 for an orphan.
  Status refuse_orphan() const;

  // Queues a task whose payload `fill(void*)` writes.
  template <class Fill>
  Status enqueue(const TaskKind& kind, Fill&& fill, uint64_t* position = nullptr);
  // Queues a function object `Status operator()()`; it is destroyed after it ran or was discarded.
  template <class Work>
  Status post(Work&& work, bool always = false, uint64_t* position = nullptr);

  uint64_t submitted() const { return submitted_.load(std::memory_order_acquire); }
  bool reached(uint64_t position) const {
    return completed_.load(std::memory_order_acquire) >= position;
  }
  bool idle() const { return reached(submitted()); }

  // Blocks until `position` is reached; false after the deadline. `waiter`, the stream whose worker
  // waits, ends the wait early when it discards its work.
  bool wait_reached(uint64_t position, Deadline deadline, const Stream* waiter = nullptr);
  // On this stream's own worker: blocks until `source` reached `position`.
  Status wait_for(const StreamPin& source, uint64_t position, Deadline deadline);
  // Waits for everything queued so far, then reports: 507046 after the deadline, else the failure.
  Status synchronize(Deadline deadline);
  // The failure at or before `position`, whose sentence becomes this thread's; then forgets it.
  Status take_failure(uint64_t position);

  // Discards what is queued, ends waits for other streams and waits for the running task.
  void abort();

  void set_attribute(StreamAttribute attribute, uint64_t value) {
    attributes_[static_cast<size_t>(attribute)].store(value, std::memory_order_relaxed);
  }
  uint64_t attribute(StreamAttribute attribute) const {
    return attributes_[static_cast<size_t>(attribute)].load(std::memory_order_relaxed);
  }

 private:
  struct Failure {
    LastError error;
    uint64_t position = 0;
  };

  Status prepare_locked();
  Status start_locked();
  void commit_locked(Task* task, uint64_t* position);
  // Whether the worker must be woken, which the caller then does.
  bool wants_waking_locked();
  Status after_enqueue();

  void work();
  // On a client's thread: runs tasks up to `position` as long as they may run anywhere and nobody
  // else runs one.
  void help(uint64_t position);
  void help_locked(std::unique_lock<std::mutex>& lock, uint64_t position);
  bool wait_for_task(std::unique_lock<std::mutex>& lock);
  void run_task_locked(std::unique_lock<std::mutex>& lock);
  bool discards(uint64_t position) const {
    return position <= discard_until_.load(std::memory_order_acquire);
  }
  // Position of the task that runs now.
  uint64_t running() const { return completed_.load(std::memory_order_relaxed) + 1; }
  bool skips_locked() const;
  Status skipped() const;
  void finish_locked(Task* task, Status status);
  void keep_failure_locked(Status status, uint64_t position);
  // The position of the last task that it discards.
  uint64_t discard_queued();
  void notify_waiters();

  const StreamOptions options_;
  const int32_t id_;
  std::array<std::atomic<uint64_t>, 6> attributes_{};

  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> taken_{0};  // tasks that someone runs or ran
  std::atomic<uint64_t> completed_{0};
  std::atomic<uint64_t> discard_until_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::atomic<uint32_t> process_{0};  // that has the worker, as numbered in stream_worker.cc

  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::condition_variable progress_;
  TaskQueue queue_;
  bool busy_ = false;              // someone runs a task
  bool asleep_ = false;            // the worker blocks in work_ready_ and nobody woke it yet
  uint64_t wake_at_ = UINT64_MAX;  // the lowest position that someone blocks for in progress_
  StreamPin awaited_;              // the stream that the running task waits for
  Failure failure_;
  std::thread worker_;
  StreamPin kept_;  // an abandoned stream keeps itself
};

// --- templates ----------------------------------------------------------------------------------

template <class Fill>
Status Stream::enqueue(const TaskKind& kind, Fill&& fill, uint64_t* position) {
  bool wake = false;
  {
    std::unique_lock lock(mutex_);
    NPULESS_TRY(prepare_locked());
    Task* task = queue_.take_slot();
    task->kind = kind;
    fill(static_cast<void*>(task->payload));
    commit_locked(task, position);
    if (kind.brief && queue_.front() == task) help_locked(lock, running());
    wake = wants_waking_locked();
  }
  if (wake) work_ready_.notify_one();
  return after_enqueue();
}

template <class Work>
Status Stream::post(Work&& work, bool always, uint64_t* position) {
  using Held = std::decay_t<Work>;
  static_assert(sizeof(Held) <= kMaxTaskPayload && std::is_nothrow_move_constructible_v<Held>);
  const TaskKind kind{[](void* payload) { return (*static_cast<Held*>(payload))(); },
                      [](void* payload) { static_cast<Held*>(payload)->~Held(); }, always};
  return enqueue(
      kind, [&](void* payload) { new (payload) Held(std::forward<Work>(work)); }, position);
}

}  // namespace npuless::runtime
