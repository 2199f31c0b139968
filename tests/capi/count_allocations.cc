#include "count_allocations.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace {

std::atomic<bool> counting(false);
std::atomic<long> count(0);

void note() {
  if (counting.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// The definitions of a program come before those of its libraries, so every library calls these.
extern "C" {

void* __libc_malloc(size_t size);
void* __libc_calloc(size_t n, size_t size);
void* __libc_realloc(void* memory, size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  note();
  return __libc_malloc(size);
}

void* calloc(size_t n, size_t size) {
  note();
  return __libc_calloc(n, size);
}

void* realloc(void* memory, size_t size) {
  note();
  return __libc_realloc(memory, size);
}

void* memalign(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(size_t alignment, size_t size) {
  note();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  note();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) {
  note();
  return reinterpret_cast<void*>(
      syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

}  // extern "C"

namespace client {

void begin_counting_allocations() {
  count = 0;
  counting = true;
}

long end_counting_allocations() {
  counting = false;
  return count;
}

}  // namespace client
