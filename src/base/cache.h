// When to write past the caches.
#pragma once

#include <cstdint>

namespace npuless {

// An output of this size cannot wait in a last-level cache (16 to 32 MiB per core complex, shared
// with what is read meanwhile) for whoever reads it, so writing it through the cache would only
// add a read of every line.
inline constexpr int64_t kStreamBytes = int64_t{16} << 20;

}  // namespace npuless
