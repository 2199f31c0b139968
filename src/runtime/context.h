// Contexts: what a thread has current. A context belongs to a device and owns streams, one of them
// its default stream.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/handle_table.h"
#include "base/status.h"
#include "runtime/stream.h"

namespace npuless::runtime {

// The options of aclSysParamOpt, each unset or a value. Safe to use from several threads.
class SysParams {
 public:
  static bool known(int option) { return option >= 0 && option < kCount; }
  void set(int option, int64_t value) {
    slot(option).value.store(value, std::memory_order_relaxed);
    slot(option).is_set.store(true, std::memory_order_release);
  }
  std::optional<int64_t> get(int option) const {
    const Slot& read = slots_[static_cast<size_t>(option)];
    if (!read.is_set.load(std::memory_order_acquire)) return std::nullopt;
    return read.value.load(std::memory_order_relaxed);
  }

 private:
  static constexpr int kCount = 4;
  struct Slot {
    std::atomic<int64_t> value{0};
    std::atomic<bool> is_set{false};
  };
  Slot& slot(int option) { return slots_[static_cast<size_t>(option)]; }

  std::array<Slot, kCount> slots_;
};

struct Context {
  Context(int device_id, bool is_primary) noexcept : device(device_id), primary(is_primary) {}

  const int device;
  const bool primary;
  void* default_stream = nullptr;  // set once, before the context is handed out
  SysParams params;
  std::atomic<uint32_t> op_wait_seconds{0};  // 0: forever
};

using ContextTable = HandleTable<Context, 'c'>;
using ContextPin = ContextTable::Pin;

ContextTable& contexts();

Status create_context(int device, bool primary, void** handle);
// Destroys the context's streams, waiting for their work or discarding it. False: no such context.
bool destroy_context(const void* handle, bool discard);

// The range of stream priorities is 0, the most urgent, to this.
inline constexpr uint32_t kLeastPriority = 7;

// What one device has; a program that leaks streams meets this limit before the system's on
// threads.
inline constexpr uint32_t kMaxStreams = 2048;
uint32_t available_streams(int device);
// A started stream of the context. 207008 beyond kMaxStreams.
Status create_stream(const ContextPin& context, uint32_t priority, uint32_t flags, void** handle);
// False when somebody else destroyed it.
bool destroy_stream(const void* handle, bool discard);

}  // namespace npuless::runtime
