// acl_rt_stream.h: streams.
#include <algorithm>

#include "acl/acl_rt.h"
#include "runtime/current.h"
#include "runtime/synchronize.h"

namespace npuless::runtime {
namespace {

constexpr size_t kKnownFlags = ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC |
                               ACL_STREAM_PERSISTENT | ACL_STREAM_HUGE | ACL_STREAM_CPU_SCHEDULE |
                               ACL_STREAM_DEVICE_USE_ONLY;

Status create(aclrtStream* handle, uint32_t priority, size_t flags) {
  NPULESS_TRY(require(handle, "stream"));
  if ((flags & ~kKnownFlags) != 0) {
    return fail(code::kRtParamInvalid, "unknown bits in stream flag 0x%zx", flags);
  }
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  return create_stream(context, std::min(priority, kLeastPriority), static_cast<uint32_t>(flags),
                       handle);
}

Status destroy(aclrtStream handle, bool discard) {
  NPULESS_TRY(require(handle, "stream"));
  const StreamPin stream = streams().find(handle);
  if (stream && stream->options().is_default) {
    return fail(code::kRtParamInvalid, "a default stream goes with its context");
  }
  if (stream) NPULESS_TRY(stream->refuse_orphan());
  if (stream && destroy_stream(handle, discard)) return {};
  return fail(code::kRtInvalidHandle, "%p is not a stream, or no longer", handle);
}

// Looks the stream up and hands it to `use`.
template <class Use>
Status with_stream(aclrtStream handle, Use&& use) {
  StreamPin stream;
  NPULESS_TRY(find_stream(handle, &stream));
  return use(*stream);
}

template <class Value>
Status copy_option(const void* value, size_t size, Value* field) {
  if (size != sizeof(Value)) {
    return fail(code::kInvalidParam, "the value must have %zu bytes, got %zu", sizeof(Value), size);
  }
  *field = *static_cast<const Value*>(value);
  return {};
}

Status set_option(aclrtStreamConfigHandle* config, aclrtStreamConfigAttr attribute,
                  const void* value, size_t size) {
  switch (attribute) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
      return copy_option(value, size, &config->workptr);
    case ACL_RT_STREAM_WORK_SIZE:
      return copy_option(value, size, &config->workSize);
    case ACL_RT_STREAM_FLAG:
      return copy_option(value, size, &config->flag);
    case ACL_RT_STREAM_PRIORITY:
      return copy_option(value, size, &config->priority);
    default:
      return fail(code::kInvalidParam, "attr %d is no aclrtStreamConfigAttr",
                  static_cast<int>(attribute));
  }
}

Status abort_work(Stream& stream) {
  stream.abort();
  return {};
}

Status set_failure_mode(Stream& stream, uint64_t mode) {
  if (mode > ACL_STOP_ON_FAILURE) {
    return fail(code::kRtParamInvalid, "failure mode must be 0 or 1, got %llu",
                static_cast<unsigned long long>(mode));
  }
  stream.set_attribute(StreamAttribute::kFailureMode, mode);
  return {};
}

Status require_attribute(aclrtStreamAttr attribute) {
  if (attribute >= ACL_STREAM_ATTR_FAILURE_MODE && attribute <= ACL_STREAM_ATTR_PRIORITY) return {};
  return fail(code::kRtParamInvalid, "attribute %d is no aclrtStreamAttr",
              static_cast<int>(attribute));
}

// Every member of the union but failureMode is 32 bits wide.
Status set_attribute(Stream& stream, aclrtStreamAttr attribute, const aclrtStreamAttrValue& value) {
  NPULESS_TRY(require_attribute(attribute));
  if (attribute == ACL_STREAM_ATTR_FAILURE_MODE) return set_failure_mode(stream, value.failureMode);
  uint32_t narrow = value.overflowSwitch;
  if (attribute == ACL_STREAM_ATTR_PRIORITY) narrow = std::min(narrow, kLeastPriority);
  stream.set_attribute(static_cast<StreamAttribute>(attribute), narrow);
  return {};
}

Status get_attribute(const Stream& stream, aclrtStreamAttr attribute, aclrtStreamAttrValue* value) {
  NPULESS_TRY(require_attribute(attribute));
  *value = aclrtStreamAttrValue{};
  const uint64_t stored = stream.attribute(static_cast<StreamAttribute>(attribute));
  if (attribute == ACL_STREAM_ATTR_FAILURE_MODE) {
    value->failureMode = stored;
  } else {
    value->overflowSwitch = static_cast<uint32_t>(stored);
  }
  return {};
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclrtCreateStream(aclrtStream* stream) {
  return api(__func__, [&] { return create(stream, 0, 0); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  return api(__func__, [&] { return create(stream, priority, flag); });
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  return api(__func__, [&] {
    const aclrtStreamConfigHandle config = handle == nullptr ? aclrtStreamConfigHandle{} : *handle;
    return create(stream, config.priority, config.flag);
  });
}

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void) {
  return new (std::nothrow) aclrtStreamConfigHandle{};
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(handle, "handle"));
    delete handle;
    return {};
  });
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(handle, "handle"));
    NPULESS_TRY(require(attrValue, "attrValue"));
    return set_option(handle, attr, attrValue, valueSize);
  });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return api(__func__, [&] { return destroy(stream, false); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return api(__func__, [&] { return destroy(stream, true); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return api(__func__, [&] {
    return with_stream(stream, [](Stream& found) { return found.synchronize(kForever); });
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return api(__func__, [&]() -> Status {
    Deadline deadline;
    NPULESS_TRY(deadline_from(timeout, &deadline));
    return with_stream(stream, [&](Stream& found) { return found.synchronize(deadline); });
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(status, "status"));
    return with_stream(stream, [&](Stream& found) {
      *status = found.idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
      return Status();
    });
  });
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(streamId, "streamId"));
    return with_stream(stream, [&](Stream& found) {
      *streamId = found.id();
      return Status();
    });
  });
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(priority, "priority"));
    return with_stream(stream, [&](Stream& found) {
      *priority = static_cast<uint32_t>(found.attribute(StreamAttribute::kPriority));
      return Status();
    });
  });
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(flags, "flags"));
    return with_stream(stream, [&](Stream& found) {
      *flags = found.options().flags;
      return Status();
    });
  });
}

aclError aclrtStreamAbort(aclrtStream stream) {
  return api(__func__, [&] { return with_stream(stream, abort_work); });
}

aclError aclrtStreamStop(aclrtStream stream) {
  return api(__func__, [&] { return with_stream(stream, abort_work); });
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  return api(__func__, [&] {
    return with_stream(stream, [&](Stream& found) { return set_failure_mode(found, mode); });
  });
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(value, "value"));
    return with_stream(stream,
                       [&](Stream& found) { return set_attribute(found, stmAttrType, *value); });
  });
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(value, "value"));
    return with_stream(stream,
                       [&](Stream& found) { return get_attribute(found, stmAttrType, value); });
  });
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(streamCount, "streamCount"));
    ContextPin context;
    NPULESS_TRY(current_context(&context));
    *streamCount = available_streams(context->device);
    return {};
  });
}

aclError aclrtSetOpWaitTimeout(uint32_t timeout) {
  return api(__func__, [&]() -> Status {
    ContextPin context;
    NPULESS_TRY(current_context(&context));
    context->op_wait_seconds.store(timeout, std::memory_order_relaxed);
    return {};
  });
}

// A running operator is never interrupted, so its time limit is accepted and has no effect.
aclError aclrtSetOpExecuteTimeOut(uint32_t) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t) {
  return ACL_SUCCESS;
}

aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(actualTimeout, "actualTimeout"));
    *actualTimeout = timeout;
    return {};
  });
}

}  // extern "C"
