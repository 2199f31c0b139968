#include "base/spin.h"

#include <thread>

namespace npuless {

std::chrono::microseconds spin_time() {
  static const auto time =
      std::thread::hardware_concurrency() > 1 ? kSpinTime : std::chrono::microseconds{0};
  return time;
}

}  // namespace npuless
