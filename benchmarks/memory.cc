#include "memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace npuless::bench {
namespace {

// "Name:   123 kB" in a file of such lines; -1 if it is not there.
int64_t field(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (word != name + ":") continue;
    int64_t kib = 0;
    file >> kib;
    return kib * 1024;
  }
  return -1;
}

// The whole of a file that holds one number; -1 if it does not.
int64_t number(const char* path) {
  std::ifstream file(path);
  int64_t value = -1;
  return file >> value ? value : -1;
}

}  // namespace

int64_t available_memory() {
  int64_t available = field("/proc/meminfo", "MemAvailable");
  if (available < 0) available = std::numeric_limits<int64_t>::max();
  const int64_t limit = number("/sys/fs/cgroup/memory.max");
  const int64_t used = number("/sys/fs/cgroup/memory.current");
  if (limit >= 0 && used >= 0) available = std::min(available, limit - used);
  return available;
}

void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

int64_t peak_memory() {
  return field("/proc/self/status", "VmHWM");
}

int64_t resident_memory() {
  return field("/proc/self/status", "VmRSS");
}

}  // namespace npuless::bench
