// Signals and the library's own threads.
#pragma once

#include <csignal>

namespace npuless {

// Blocks all signals in this thread except those that report a fault of the thread itself. Returns
// the mask from before.
sigset_t block_signals();

}  // namespace npuless
