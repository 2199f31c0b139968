// The result of every fallible function inside the library: a code, plus one sentence left in the
// calling thread's last-error slot for aclGetRecentErrMsg. No exception crosses a layer.
#pragma once

#include <cstdint>
#include <ctime>

namespace npuless {

// Codes are the public ones (acl/acl_base.h, acl/error_codes, aclnn/opdev/op_errno.h); those that
// the library itself returns are named here so that src/base needs no public header.
namespace code {
inline constexpr int32_t kOk = 0;
inline constexpr int32_t kInvalidParam = 100000;       // ACL_ERROR_INVALID_PARAM
inline constexpr int32_t kRepeatInitialize = 100002;   // ACL_ERROR_REPEAT_INITIALIZE
inline constexpr int32_t kInvalidFile = 100003;        // ACL_ERROR_INVALID_FILE
inline constexpr int32_t kParseFile = 100006;          // ACL_ERROR_PARSE_FILE
inline constexpr int32_t kRepeatFinalize = 100037;     // ACL_ERROR_REPEAT_FINALIZE
inline constexpr int32_t kRtParamInvalid = 107000;     // ACL_ERROR_RT_PARAM_INVALID
inline constexpr int32_t kRtInvalidDevice = 107001;    // ACL_ERROR_RT_INVALID_DEVICEID
inline constexpr int32_t kRtContextNull = 107002;      // ACL_ERROR_RT_CONTEXT_NULL
inline constexpr int32_t kRtStreamContext = 107003;    // ACL_ERROR_RT_STREAM_CONTEXT
inline constexpr int32_t kRtTimestamp = 107006;        // ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID
inline constexpr int32_t kRtInvalidHandle = 107017;    // ACL_ERROR_RT_INVALID_HANDLE
inline constexpr int32_t kRtWaitTimeout = 107019;      // ACL_ERROR_RT_WAIT_TIMEOUT
inline constexpr int32_t kRtSysParamNotSet = 107021;   // ACL_ERROR_RT_SYSPARAMOPT_NOT_SET
inline constexpr int32_t kRtStreamAbort = 107023;      // ACL_ERROR_RT_STREAM_ABORT
inline constexpr int32_t kParamNullptr = 161001;       // ACLNN_ERR_PARAM_NULLPTR
inline constexpr int32_t kParamInvalid = 161002;       // ACLNN_ERR_PARAM_INVALID
inline constexpr int32_t kFeatureNotSupport = 207000;  // ACL_ERROR_RT_FEATURE_NOT_SUPPORT
inline constexpr int32_t kMemoryAllocation = 207001;   // ACL_ERROR_RT_MEMORY_ALLOCATION
inline constexpr int32_t kNoStreamResource = 207008;   // ACL_ERROR_RT_NO_STREAM_RESOURCE
inline constexpr int32_t kRuntimeError = 361001;       // ACLNN_ERR_RUNTIME_ERROR
inline constexpr int32_t kRtInternal = 507000;         // ACL_ERROR_RT_INTERNAL_ERROR
inline constexpr int32_t kContextRelease = 507007;     // ACL_ERROR_RT_CONTEXT_RELEASE_ERROR
inline constexpr int32_t kStreamSyncTimeout = 507046;  // ACL_ERROR_RT_STREAM_SYNC_TIMEOUT
inline constexpr int32_t kEventSyncTimeout = 507047;   // ACL_ERROR_RT_EVENT_SYNC_TIMEOUT
inline constexpr int32_t kInner = 561000;              // ACLNN_ERR_INNER
inline constexpr int32_t kInnerNullptr = 561103;       // ACLNN_ERR_INNER_NULLPTR
}  // namespace code

class [[nodiscard]] Status {
 public:
  constexpr Status() = default;
  constexpr explicit Status(int32_t code) : code_(code) {}

  constexpr bool ok() const { return code_ == code::kOk; }
  constexpr int32_t code() const { return code_; }

 private:
  int32_t code_ = code::kOk;
};

// Writes the printf-style sentence and the time to this thread's last-error slot and returns
// `code`.
Status fail(int32_t code, const char* format, ...) __attribute__((format(printf, 2, 3), cold));

// The public function being executed on this thread, named in front of each sentence.
// Restores the outer name on destruction, so public functions may call each other.
class ApiScope {
 public:
  explicit ApiScope(const char* name);
  ~ApiScope();
  ApiScope(const ApiScope&) = delete;
  ApiScope& operator=(const ApiScope&) = delete;

 private:
  const char* outer_;
};

// The slot's text in upstream's form, "[PID: n] <time> AclNN_Parameter_Error(EZ1001): <sentence>"
// with the time of fail(), or null when there is none. Reading clears it; the pointer lives until
// this thread's next call.
const char* take_last_error();
void clear_last_error();

// A copy of the slot, to carry an error from a stream's worker to the thread that synchronises.
inline constexpr int kMaxSentence = 512;
struct LastError {
  int32_t code = code::kOk;  // kOk: there is none
  timespec time{};
  char sentence[kMaxSentence] = {};
};
LastError copy_last_error();
void restore_last_error(const LastError& error);

}  // namespace npuless

#define NPULESS_TRY(expression)                        \
  do {                                                 \
    const ::npuless::Status try_status = (expression); \
    if (!try_status.ok()) return try_status;           \
  } while (false)
