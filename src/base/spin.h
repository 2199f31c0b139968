// A short busy wait before blocking: waking a sleeping thread costs tens of microseconds, most
// hand-overs between a stream and its client take less.
#pragma once

#include <chrono>

namespace npuless {

// About one wake-up of a sleeping thread, the most that spinning can save.
inline constexpr std::chrono::microseconds kSpinTime{20};

// kSpinTime, or zero on a machine with one processor, where the awaited thread needs ours.
std::chrono::microseconds spin_time();

inline void relax_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Whether `ready()` became true within spin_time().
template <class Ready>
bool spin_until(Ready&& ready) {
  if (ready()) return true;
  const auto end = std::chrono::steady_clock::now() + spin_time();
  do {
    // Reading the clock costs about as much as a few pauses; polling stays far below 1 µs.
    for (int i = 0; i < 8; ++i) {
      if (ready()) return true;
      relax_cpu();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

}  // namespace npuless
