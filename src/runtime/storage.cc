#include "runtime/storage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace npuless::runtime {
namespace {

// The size of a huge page on x86-64 and, with 4 KiB pages, on aarch64.
constexpr size_t kHugePage = size_t{2} << 20;

size_t round_up_to(size_t size, size_t step) {
  return (size + step - 1) / step * step;
}

// A mapping that starts on a huge page and ends with an inaccessible page, so that a write past a
// large block faults instead of reaching a neighbour.
Storage map_storage(size_t size) {
  const size_t usable = round_up_to(size, page_size());
  const size_t mapped = usable + page_size();
  const size_t reserved = mapped + kHugePage;
  void* start =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return {};
  const uintptr_t low = reinterpret_cast<uintptr_t>(start);
  const uintptr_t base = round_up_to(low, kHugePage);
  void* const address = reinterpret_cast<void*>(base);
  if (base > low) munmap(start, base - low);
  munmap(reinterpret_cast<void*>(base + mapped), low + reserved - base - mapped);
  if (mprotect(address, usable, PROT_READ | PROT_WRITE) != 0) {
    munmap(address, mapped);
    return {};
  }
  madvise(address, usable, MADV_HUGEPAGE);
  return {address, mapped};
}

}  // namespace

Storage take_storage(size_t size, size_t alignment) {
  if (size > physical_memory()) return {};
  if (size >= kHugePage) return map_storage(size);
  Storage storage;
  // One byte more: a block owns its end address, where another malloc's next block could start.
  if (posix_memalign(&storage.address, alignment, size + 1) != 0) return {};
  return storage;
}

void give_back(const Storage& storage) {
  if (storage.mapped != 0) {
    munmap(storage.address, storage.mapped);
  } else {
    std::free(storage.address);
  }
}

size_t page_size() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t physical_memory() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  return size;
}

}  // namespace npuless::runtime
