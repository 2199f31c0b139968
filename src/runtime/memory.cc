#include "runtime/memory.h"

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <vector>

#include "runtime/device.h"
#include "runtime/environment.h"
#include "runtime/storage.h"

namespace npuless::runtime {
namespace {

constexpr size_t kDeviceAlign = 512;

// What one device may hold and holds.
class Budget {
 public:
  bool charge(uint64_t size, uint64_t limit) {
    const std::lock_guard lock(mutex_);
    if (size > limit || used_ > limit - size) return false;
    used_ += size;
    if (used_ > peak_) peak_ = used_;
    return true;
  }
  void discharge(uint64_t size) {
    const std::lock_guard lock(mutex_);
    used_ -= size;
  }
  MemoryUse read(uint64_t limit) {
    const std::lock_guard lock(mutex_);
    return {used_, peak_, limit};
  }

 private:
  std::mutex mutex_;
  uint64_t used_ = 0;
  uint64_t peak_ = 0;
};

struct Memory {
  std::shared_mutex mutex;  // guards blocks
  std::map<uintptr_t, Block*> blocks;
  std::vector<Budget> budgets{static_cast<size_t>(device_count())};
  const uint64_t limit = size_variable("NPULESS_DEVICE_MEMORY").value_or(physical_memory());

  Budget& budget(int device) { return budgets[static_cast<size_t>(device)]; }
};

// Never destroyed: queued copies may still run while static destructors do.
Memory& memory() {
  static Memory* instance = new Memory;
  return *instance;
}

void dispose(Block* block) {
  if (block->kind != MemoryKind::kRegistered) {
    give_back({reinterpret_cast<void*>(block->base), block->mapped});
  }
  if (block->kind == MemoryKind::kDevice) memory().budget(block->device).discharge(block->size);
  delete block;
}

// With the mutex held. Ends are compared because the block in front may reach into the range.
bool overlaps(uintptr_t base, size_t size) {
  const auto next = memory().blocks.lower_bound(base + size);
  return next != memory().blocks.begin() && std::prev(next)->second->end() > base;
}

// With the mutex held: forgets registered ranges that begin in a new allocation and would hide it.
// The program gave their memory back to the system without a word. An allocation owns its end
// address, too.
void forget_stale_ranges(uintptr_t base, uintptr_t end) {
  auto& blocks = memory().blocks;
  auto next = blocks.lower_bound(base);
  while (next != blocks.end() && next->first <= end) {
    const BlockRef stale(next->second);
    next = blocks.erase(next);
  }
}

Status insert(BlockRef block) {
  const std::lock_guard lock(memory().mutex);
  if (block->kind != MemoryKind::kRegistered) {
    forget_stale_ranges(block->base, block->end());
  } else if (overlaps(block->base, block->size)) {
    return fail(code::kRtParamInvalid, "the range overlaps memory that is already known");
  }
  Block*& entry = memory().blocks[block->base];
  entry = block.detach();
  return {};
}

Status make_block(MemoryKind kind, int device, size_t size, const Storage& storage) {
  const auto base = reinterpret_cast<uintptr_t>(storage.address);
  Block* block = new (std::nothrow) Block{base, size, kind, device, storage.mapped};
  if (block != nullptr) return insert(BlockRef(block));
  if (kind != MemoryKind::kRegistered) give_back(storage);
  if (kind == MemoryKind::kDevice) memory().budget(device).discharge(size);
  return fail(code::kMemoryAllocation, "out of host memory");
}

Status charge(int device, size_t size) {
  if (memory().budget(device).charge(size, memory().limit)) return {};
  const MemoryUse use = memory_use(device);
  return fail(code::kMemoryAllocation, "device %d cannot hold %zu more bytes: %llu of %llu in use",
              device, size, static_cast<unsigned long long>(use.used),
              static_cast<unsigned long long>(use.limit));
}

const char* kind_name(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "a device allocation";
    case MemoryKind::kPinned:
      return "an allocation of aclrtMallocHost";
    default:
      return "registered host memory";
  }
}

}  // namespace

BlockRef::~BlockRef() {
  if (block_ == nullptr) return;
  if (block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) dispose(block_);
}

Status allocate(MemoryKind kind, int device, size_t size, void** address) {
  const bool on_device = kind == MemoryKind::kDevice;
  if (on_device) NPULESS_TRY(charge(device, size));
  const Storage storage = take_storage(size, on_device ? kDeviceAlign : page_size());
  if (storage.address == nullptr) {
    if (on_device) memory().budget(device).discharge(size);
    return fail(code::kMemoryAllocation, "the system has no %zu bytes of memory", size);
  }
  NPULESS_TRY(make_block(kind, device, size, storage));
  *address = storage.address;
  return {};
}

Status register_host(void* address, size_t size) {
  return make_block(MemoryKind::kRegistered, 0, size, {address, 0});
}

Status release(MemoryKind kind, void* address) {
  const BlockRef removed = [&] {
    const std::lock_guard lock(memory().mutex);
    const auto found = memory().blocks.find(reinterpret_cast<uintptr_t>(address));
    if (found == memory().blocks.end() || found->second->kind != kind) return BlockRef();
    Block* block = found->second;
    memory().blocks.erase(found);
    return BlockRef(block);
  }();
  if (removed) return {};
  return fail(code::kRtParamInvalid, "%p is not the start of %s, or was freed before", address,
              kind_name(kind));
}

void release_memory(int device) {
  const std::lock_guard lock(memory().mutex);
  std::erase_if(memory().blocks, [device](const auto& entry) {
    Block* block = entry.second;
    if (block->kind != MemoryKind::kDevice || block->device != device) return false;
    const BlockRef dropped(block);
    return true;
  });
}

BlockRef find_block(const void* address) {
  const uintptr_t value = reinterpret_cast<uintptr_t>(address);
  const std::shared_lock lock(memory().mutex);
  const auto next = memory().blocks.upper_bound(value);
  if (next == memory().blocks.begin()) return {};
  Block* block = std::prev(next)->second;
  if (!block->contains(value)) return {};
  block->references.fetch_add(1, std::memory_order_relaxed);
  return BlockRef(block);
}

MemoryUse memory_use(int device) {
  return memory().budget(device).read(memory().limit);
}

}  // namespace npuless::runtime
