// The tasks of one stream: a first-in first-out list of slots that are never given back, so that
// queueing allocates only when more tasks wait than ever before.
// Not synchronised: the stream's mutex guards it.
#pragma once

#include <cstddef>

#include "runtime/launch.h"

namespace npuless::runtime {

struct TaskKind {
  TaskFn run = nullptr;
  // Ends the payload's life, whether the task ran or was discarded. Null: plain bytes.
  void (*destroy)(void* payload) = nullptr;
  // Runs even when the stream discards its work: events still get their time, or are forgotten.
  bool always = false;
  // May run on the thread of a client that waits for it, too.
  bool anywhere = false;
  // Takes about as long as waking a thread: where nothing is queued before it, and it may run
  // anywhere, the client that queues it runs it.
  bool brief = false;
};

struct Task {
  TaskKind kind;
  Task* next = nullptr;
  alignas(64) unsigned char payload[kMaxTaskPayload];
};

class TaskQueue {
 public:
  TaskQueue() = default;
  ~TaskQueue();
  TaskQueue(const TaskQueue&) = delete;
  TaskQueue& operator=(const TaskQueue&) = delete;

  // Makes sure that take_slot() has a slot to give. False: out of memory.
  bool reserve() noexcept;
  Task* take_slot();
  void give_back(Task* slot);

  bool empty() const { return first_ == nullptr; }
  const Task* front() const { return first_; }
  void push(Task* task);
  Task* pop();

 private:
  // 16 slots are 26 KB: more tasks than a client usually has in flight.
  static constexpr int kChunkTasks = 16;
  struct Chunk {
    Task tasks[kChunkTasks];
    Chunk* next = nullptr;
  };

  Chunk* chunks_ = nullptr;
  Task* free_ = nullptr;
  Task* first_ = nullptr;
  Task* last_ = nullptr;
};

}  // namespace npuless::runtime
