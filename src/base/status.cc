#include "base/status.h"

#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

#include "base/log.h"

namespace npuless {
namespace {

thread_local LastError last_error;
thread_local char last_text[kMaxSentence + 128];
thread_local const char* api_name = nullptr;

bool is_caller_error(int32_t code) {
  return code == code::kParamNullptr || code == code::kParamInvalid ||
         (code >= 100000 && code < 108000);
}

void format_time(const timespec& time, char* out, size_t size) {
  tm parts{};
  localtime_r(&time.tv_sec, &parts);
  const size_t length = strftime(out, size, "%Y-%m-%d-%H:%M:%S", &parts);
  std::snprintf(out + length, size - length, ".%03ld", time.tv_nsec / 1000000);
}

}  // namespace

Status fail(int32_t code, const char* format, ...) {
  last_error.code = code;
  clock_gettime(CLOCK_REALTIME, &last_error.time);
  int used = 0;
  if (api_name != nullptr) {
    used = std::snprintf(last_error.sentence, kMaxSentence, "%s: ", api_name);
  }
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error.sentence + used, static_cast<size_t>(kMaxSentence - used), format,
                 arguments);
  va_end(arguments);
  log(LogLevel::kError, "%s (code %d)", last_error.sentence, code);
  return Status(code);
}

ApiScope::ApiScope(const char* name) : outer_(api_name) {
  api_name = name;
}

ApiScope::~ApiScope() {
  api_name = outer_;
}

const char* take_last_error() {
  if (last_error.code == code::kOk) return nullptr;
  char time[48];
  format_time(last_error.time, time, sizeof(time));
  const bool caller = is_caller_error(last_error.code);
  std::snprintf(last_text, sizeof(last_text), "[PID: %d] %s %s: %s", static_cast<int>(getpid()),
                time, caller ? "AclNN_Parameter_Error(EZ1001)" : "AclNN_Inner_Error(EZ9999)",
                last_error.sentence);
  last_error.code = code::kOk;
  return last_text;
}

void clear_last_error() {
  last_error.code = code::kOk;
}

LastError copy_last_error() {
  return last_error;
}

void restore_last_error(const LastError& error) {
  last_error = error;
}

}  // namespace npuless
