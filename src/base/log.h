// The library's log. Nothing is printed unless ASCEND_SLOG_PRINT_TO_STDOUT=1, then lines at or
// above ASCEND_GLOBAL_LOG_LEVEL (0 debug, 1 info, 2 warning, 3 error; default 3) go to stdout.
#pragma once

#include <cstdarg>

namespace npuless {

enum class LogLevel { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

bool log_enabled(LogLevel level);
void log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));
void log_list(LogLevel level, const char* format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

}  // namespace npuless
