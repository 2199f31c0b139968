// Raw memory for blocks: the heap for small ones, huge-page mappings for large ones.
#pragma once

#include <cstddef>

namespace npuless::runtime {

struct Storage {
  void* address = nullptr;  // null: out of memory
  size_t mapped = 0;        // bytes of the mapping; 0: from the heap
};

Storage take_storage(size_t size, size_t alignment);
void give_back(const Storage& storage);

size_t page_size();
size_t physical_memory();

}  // namespace npuless::runtime
