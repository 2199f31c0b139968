#include "runtime/task_queue.h"

#include <new>

namespace npuless::runtime {

TaskQueue::~TaskQueue() {
  while (chunks_ != nullptr) {
    Chunk* next = chunks_->next;
    delete chunks_;
    chunks_ = next;
  }
}

bool TaskQueue::reserve() noexcept {
  if (free_ != nullptr) return true;
  Chunk* chunk = new (std::nothrow) Chunk;
  if (chunk == nullptr) return false;
  chunk->next = chunks_;
  chunks_ = chunk;
  for (Task& task : chunk->tasks) give_back(&task);
  return true;
}

Task* TaskQueue::take_slot() {
  Task* slot = free_;
  free_ = slot->next;
  return slot;
}

void TaskQueue::give_back(Task* slot) {
  slot->next = free_;
  free_ = slot;
}

void TaskQueue::push(Task* task) {
  task->next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = task;
  last_ = task;
}

Task* TaskQueue::pop() {
  Task* task = first_;
  first_ = task->next;
  return task;
}

}  // namespace npuless::runtime
