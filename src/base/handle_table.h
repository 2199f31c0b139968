// Handles for the client that are never dereferenced.
//
// A handle is an opaque non-null pointer value made of a kind, a slot number and the slot's
// generation; the top byte is the kind, so no address that a program can own looks like one. A
// destroyed handle, a handle of another kind or any garbage is recognised, never followed.
//
//   constinit HandleTable<Stream, 's'> streams;        // a global; never destroyed
//   auto pin = streams.insert(arguments…);             // empty: no memory or table full
//   *out = pin.handle();
//   …
//   if (auto pin = streams.find(handle)) pin->use();   // empty: stale or garbage
//   streams.take(handle);                              // removes; the pin it returns is the last
//                                                      // way to reach the object
//
// Objects live inside the slots. A pin keeps its object constructed: take() makes the handle stale
// at once, and the object is destroyed by whoever drops the last pin. Two threads that take the
// same handle cannot both succeed.
//
// find, take and dropping a pin are lock-free; insert and destruction take a short mutex around the
// free list. All are constant time. Slots come in chunks that double in size and never move or go
// away, so a lookup does not race with growth, and insert allocates only when more objects are
// alive than ever before.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>

namespace npuless {

template <class T, uint8_t kKind>
class HandleTable {
  static_assert(kKind != 0, "a zero kind could produce a null handle");
  struct Slot;

 public:
  // Move-only use count on one object. Empty pins are false.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept { swap(other); }
    Pin& operator=(Pin&& other) noexcept {
      Pin(std::move(other)).swap(*this);
      return *this;
    }
    ~Pin() {
      if (slot_ != nullptr) table_->unpin(*slot_, slot_number(handle_));
    }

    explicit operator bool() const { return slot_ != nullptr; }
    T* get() const { return slot_ == nullptr ? nullptr : slot_->object(); }
    T* operator->() const { return slot_->object(); }
    T& operator*() const { return *slot_->object(); }
    void* handle() const { return reinterpret_cast<void*>(handle_); }
    // A further use count on the same object, even when the handle is stale by now.
    Pin share() const {
      if (slot_ != nullptr) slot_->state.fetch_add(1, std::memory_order_relaxed);
      return Pin(table_, slot_, handle_);
    }

   private:
    friend class HandleTable;
    Pin(HandleTable* table, Slot* slot, uintptr_t handle)
        : table_(table), slot_(slot), handle_(handle) {}

    void swap(Pin& other) noexcept {
      std::swap(table_, other.table_);
      std::swap(slot_, other.slot_);
      std::swap(handle_, other.handle_);
    }

    HandleTable* table_ = nullptr;
    Slot* slot_ = nullptr;
    uintptr_t handle_ = 0;
  };

  constexpr HandleTable() = default;
  HandleTable(const HandleTable&) = delete;
  HandleTable& operator=(const HandleTable&) = delete;

  template <class... Args>
  Pin insert(Args&&... args) noexcept {
    static_assert(std::is_nothrow_constructible_v<T, Args...> && std::is_nothrow_destructible_v<T>);
    const uint32_t number = acquire_slot();
    if (number == kNone) return {};
    Slot& slot = slot_at(number);
    new (slot.storage) T(std::forward<Args>(args)...);
    const uint64_t state = slot.state.load(std::memory_order_relaxed);
    slot.state.store(state | kLive | 1, std::memory_order_release);
    return Pin(this, &slot, make_handle(number, generation_of(state)));
  }

  Pin find(const void* handle) noexcept { return acquire(handle, kLive); }
  Pin take(const void* handle) noexcept { return acquire(handle, 0); }

  // How many more objects fit beside those alive.
  uint32_t available() noexcept {
    const std::lock_guard lock(mutex_);
    return kCapacity - alive_;
  }

  // Calls visit(pin) for every object alive; objects inserted meanwhile may be missed.
  template <class Visit>
  void for_each(Visit&& visit) {
    const uint32_t count = size_.load(std::memory_order_acquire);
    for (uint32_t number = 0; number < count; ++number) {
      const uint64_t state = slot_at(number).state.load(std::memory_order_acquire);
      const uintptr_t handle = make_handle(number, generation_of(state));
      if (Pin pin = find(reinterpret_cast<void*>(handle))) visit(pin);
    }
  }

 private:
  // Slot state: generation in the upper half; below it whether the handle is valid, and the pins.
  static constexpr uint64_t kLive = uint64_t{1} << 31;
  static constexpr uint64_t kPins = kLive - 1;
  static constexpr int kGenerationBits = 32;
  static constexpr int kSlotBits = 24;
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kFirstChunk = 64;
  static constexpr uint32_t kChunks = 18;  // the most whose slots kSlotBits can number
  static constexpr uint32_t kCapacity = (kFirstChunk << kChunks) - kFirstChunk;

  struct Slot {
    std::atomic<uint64_t> state{uint64_t{1} << kGenerationBits};
    uint32_t next_free = kNone;
    alignas(T) unsigned char storage[sizeof(T)];

    T* object() { return std::launder(reinterpret_cast<T*>(storage)); }
  };

  static uint32_t generation_of(uint64_t state) {
    return static_cast<uint32_t>(state >> kGenerationBits);
  }
  static uint32_t slot_number(uintptr_t handle) {
    return static_cast<uint32_t>(handle >> kGenerationBits) & ((1u << kSlotBits) - 1);
  }
  static uintptr_t make_handle(uint32_t number, uint32_t generation) {
    return (uintptr_t{kKind} << (kGenerationBits + kSlotBits)) |
           (uintptr_t{number} << kGenerationBits) | generation;
  }

  Slot& slot_at(uint32_t number) {
    const uint32_t biased = number + kFirstChunk;
    const uint32_t chunk = chunk_of(biased);
    if (chunk >= kChunks) __builtin_unreachable();  // GCC 12 warns of overflow otherwise
    return chunks_[chunk].load(std::memory_order_acquire)[biased - (kFirstChunk << chunk)];
  }
  static uint32_t chunk_of(uint32_t biased) {
    return static_cast<uint32_t>(std::bit_width(biased) - std::bit_width(kFirstChunk));
  }

  // Pins the object of a valid handle; the handle stays valid iff `keep` is kLive.
  Pin acquire(const void* handle, uint64_t keep) noexcept {
    const uintptr_t value = reinterpret_cast<uintptr_t>(handle);
    const uint32_t number = slot_number(value);
    if (value >> (kGenerationBits + kSlotBits) != kKind) return {};
    if (number >= size_.load(std::memory_order_acquire)) return {};
    Slot& slot = slot_at(number);
    uint64_t state = slot.state.load(std::memory_order_acquire);
    do {
      if (generation_of(state) != static_cast<uint32_t>(value) || (state & kLive) == 0) return {};
    } while (!slot.state.compare_exchange_weak(state, (state + 1) & (~kLive | keep),
                                               std::memory_order_acq_rel,
                                               std::memory_order_acquire));
    return Pin(this, &slot, value);
  }

  void unpin(Slot& slot, uint32_t number) noexcept {
    const uint64_t before = slot.state.fetch_sub(1, std::memory_order_acq_rel);
    if ((before & kLive) != 0 || (before & kPins) != 1) return;
    slot.object()->~T();
    const uint32_t generation = generation_of(before) + 1;
    slot.state.store(uint64_t{generation} << kGenerationBits, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    slot.next_free = free_;
    free_ = number;
    --alive_;
  }

  uint32_t acquire_slot() noexcept {
    const std::lock_guard lock(mutex_);
    if (free_ != kNone) {
      const uint32_t number = free_;
      free_ = slot_at(number).next_free;
      ++alive_;
      return number;
    }
    const uint32_t number = size_.load(std::memory_order_relaxed);
    if (!ensure_chunk(number + kFirstChunk)) return kNone;
    size_.store(number + 1, std::memory_order_release);
    ++alive_;
    return number;
  }

  bool ensure_chunk(uint32_t biased) noexcept {
    const uint32_t chunk = chunk_of(biased);
    if (chunk >= kChunks) return false;
    if (chunks_[chunk].load(std::memory_order_relaxed) != nullptr) return true;
    Slot* slots = new (std::nothrow) Slot[size_t{kFirstChunk} << chunk];
    chunks_[chunk].store(slots, std::memory_order_release);
    return slots != nullptr;
  }

  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::atomic<uint32_t> size_{0};
  std::mutex mutex_;
  uint32_t free_ = kNone;
  uint32_t alive_ = 0;
};

}  // namespace npuless
