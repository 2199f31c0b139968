// Memory of this process and of the machine, in bytes.
#pragma once

#include <cstdint>

namespace npuless::bench {

// What a new problem may take: free memory and reclaimable caches, within what the control group's
// limit leaves, where its caches count as used.
int64_t available_memory();

// Highest resident size since reset_peak(). Where the kernel does not let a process reset it, since
// its start.
void reset_peak();
int64_t peak_memory();
int64_t resident_memory();

}  // namespace npuless::bench
