// acl_base.h: element sizes, fp16 helpers, data buffers, the application's log.
#include "acl/acl_base.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <new>

#include "base/dtype.h"
#include "base/half.h"
#include "base/log.h"
#include "runtime/current.h"

struct aclDataBuffer {
  void* data;
  size_t size;
};

namespace {

constexpr float kMaxHalf = 65504.0f;
constexpr uint32_t kHalfExponent = 0x7C00;

}  // namespace

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

size_t aclDataTypeSize(aclDataType dataType) {
  return static_cast<size_t>(dtype_size(static_cast<DType>(dataType)));
}

// Exponent 31 is one more power of two here, not infinity and NaN.
float aclFloat16ToFloat(aclFloat16 value) {
  if ((value & kHalfExponent) != kHalfExponent) return widen(f16{value});
  const float magnitude = std::ldexp(static_cast<float>(1024 + (value & 0x3FF)), 6);
  return (value & 0x8000) != 0 ? -magnitude : magnitude;
}

aclFloat16 aclFloatToFloat16(float value) {
  if (std::isnan(value)) value = std::copysign(kMaxHalf, value);
  return narrow<f16>(std::clamp(value, -kMaxHalf, kMaxHalf)).bits;
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  return new (std::nothrow) aclDataBuffer{data, size};
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(dataBuffer, "dataBuffer"));
    delete dataBuffer;
    return {};
  });
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(dataBuffer, "dataBuffer"));
    *dataBuffer = aclDataBuffer{data, size};
    return {};
  });
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? nullptr : dataBuffer->data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? 0 : dataBuffer->size;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  return static_cast<uint32_t>(aclGetDataBufferSizeV2(dataBuffer));
}

void aclAppLog(aclLogLevel level, const char* func, const char* file, uint32_t line,
               const char* fmt, ...) {
  const auto severity = static_cast<LogLevel>(std::clamp(
      static_cast<int>(level), static_cast<int>(ACL_DEBUG), static_cast<int>(ACL_ERROR)));
  if (fmt == nullptr || !log_enabled(severity)) return;
  char message[768];
  va_list arguments;
  va_start(arguments, fmt);
  std::vsnprintf(message, sizeof(message), fmt, arguments);
  va_end(arguments);
  log(severity, "%s:%u %s: %s", file == nullptr ? "?" : file, line, func == nullptr ? "?" : func,
      message);
}

}  // extern "C"
