// Points in time until which a caller is willing to block.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace npuless::runtime {

using Clock = std::chrono::steady_clock;
using Deadline = Clock::time_point;

inline constexpr Deadline kForever = Deadline::max();

inline Deadline deadline_after(std::chrono::milliseconds time) {
  return Clock::now() + time;
}

// One wait, possibly spurious. False once the deadline passed.
inline bool wait_once(std::condition_variable& ready, std::unique_lock<std::mutex>& lock,
                      Deadline deadline) {
  if (deadline == kForever) {
    ready.wait(lock);
    return true;
  }
  return ready.wait_until(lock, deadline) == std::cv_status::no_timeout;
}

}  // namespace npuless::runtime
