// Every allocation of the library with its extent. Thread-safe.
//
// Device memory is ordinary memory; what makes it a device's is that the library knows where each
// block begins and ends. Blocks are counted: the client's allocation is one reference, each queued
// copy another, so freeing a block that a queued copy still uses takes effect after the copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"

namespace npuless::runtime {

enum class MemoryKind {
  kDevice,      // aclrtMalloc
  kPinned,      // aclrtMallocHost
  kRegistered,  // the program's own memory, aclrtHostRegister
};

struct Block {
  uintptr_t base;
  size_t size;
  MemoryKind kind;
  int device;
  size_t mapped;  // bytes of its own mapping; 0: from the heap, or not ours
  std::atomic<int64_t> references{1};

  uintptr_t end() const { return base + size; }
  // The end of a device block belongs to it, for nothing of the program's can start there.
  bool contains(uintptr_t address) const {
    return address >= base &&
           (address < end() || (kind == MemoryKind::kDevice && address == end()));
  }
};

class BlockRef {
 public:
  BlockRef() = default;
  explicit BlockRef(Block* adopted) : block_(adopted) {}
  BlockRef(BlockRef&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  BlockRef& operator=(BlockRef&& other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~BlockRef();

  explicit operator bool() const { return block_ != nullptr; }
  const Block* operator->() const { return block_; }
  // Hands the reference over to the caller.
  Block* detach() { return std::exchange(block_, nullptr); }
  bool is_device() const { return block_ != nullptr && block_->kind == MemoryKind::kDevice; }

 private:
  Block* block_ = nullptr;
};

// Device addresses are multiples of 512, which upstream lays its own tensors out on; host addresses
// are page-aligned. 207001 when the device's budget or the system's memory does not suffice.
Status allocate(MemoryKind kind, int device, size_t size, void** address);
// Makes [address, address + size) a registered block; 107000 when it overlaps another block.
Status register_host(void* address, size_t size);
// 107000 unless `address` is the start of a block of that kind. Does not wait for queued work.
Status release(MemoryKind kind, void* address);
// Frees what is allocated on the device.
void release_memory(int device);

// The block that contains the address, empty for memory that is not the library's.
BlockRef find_block(const void* address);

struct MemoryUse {
  uint64_t used;
  uint64_t peak;
  uint64_t limit;
};
MemoryUse memory_use(int device);

}  // namespace npuless::runtime
