#include "base/log.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace npuless {
namespace {

constexpr int kLevels = 4;

// The lowest level that is printed; kLevels prints nothing.
int read_threshold() {
  const char* print = std::getenv("ASCEND_SLOG_PRINT_TO_STDOUT");
  if (print == nullptr || std::strcmp(print, "1") != 0) return kLevels;
  const char* level = std::getenv("ASCEND_GLOBAL_LOG_LEVEL");
  const bool valid = level != nullptr && level[0] >= '0' && level[0] <= '4' && level[1] == '\0';
  return valid ? level[0] - '0' : static_cast<int>(LogLevel::kError);
}

}  // namespace

bool log_enabled(LogLevel level) {
  static const int threshold = read_threshold();
  return static_cast<int>(level) >= threshold;
}

void log_list(LogLevel level, const char* format, va_list arguments) {
  static constexpr const char* kNames[kLevels] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  if (!log_enabled(level)) return;
  char text[1024];
  std::vsnprintf(text, sizeof(text), format, arguments);
  // One call per line keeps lines of several threads apart.
  std::printf("[%s] npuless(%d): %s\n", kNames[static_cast<int>(level)], static_cast<int>(getpid()),
              text);
}

void log(LogLevel level, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  log_list(level, format, arguments);
  va_end(arguments);
}

}  // namespace npuless
