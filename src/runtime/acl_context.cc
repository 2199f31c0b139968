// acl_rt_device.h: contexts and options.
#include "acl/acl_rt.h"
#include "runtime/current.h"
#include "runtime/device.h"

namespace npuless::runtime {
namespace {

Status not_a_context(const void* handle) {
  return fail(code::kRtParamInvalid, "%p is not a context, or no longer", handle);
}

SysParams& process_params() {
  static constinit SysParams params;
  return params;
}

Status set_param(SysParams& params, aclSysParamOpt option, int64_t value) {
  if (!SysParams::known(option)) {
    return fail(code::kRtParamInvalid, "opt %d is no aclSysParamOpt", static_cast<int>(option));
  }
  const int64_t highest = option == ACL_OPT_DETERMINISTIC ? 3 : 1;
  if (value < 0 || value > highest) {
    return fail(code::kRtParamInvalid, "the value of opt %d must be in [0, %lld], got %lld",
                static_cast<int>(option), static_cast<long long>(highest),
                static_cast<long long>(value));
  }
  params.set(option, value);
  return {};
}

Status get_param(const SysParams& params, aclSysParamOpt option, int64_t* value) {
  NPULESS_TRY(require(value, "value"));
  if (!SysParams::known(option)) {
    return fail(code::kRtParamInvalid, "opt %d is no aclSysParamOpt", static_cast<int>(option));
  }
  const auto found = params.get(option);
  if (!found) {
    return fail(code::kRtSysParamNotSet, "opt %d was never set", static_cast<int>(option));
  }
  *value = *found;
  return {};
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(context, "context"));
    NPULESS_TRY(require_device(deviceId));
    NPULESS_TRY(create_context(deviceId, false, context));
    this_thread().context = *context;
    return {};
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(context, "context"));
    const ContextPin found = contexts().find(context);
    if (!found) return not_a_context(context);
    if (found->primary) {
      return fail(code::kRtParamInvalid,
                  "the primary context of device %d goes with aclrtResetDevice", found->device);
    }
    return destroy_context(context, false) ? Status() : not_a_context(context);
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(context, "context"));
    if (!contexts().find(context)) return not_a_context(context);
    this_thread().context = context;
    return {};
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(context, "context"));
    ContextPin current;
    NPULESS_TRY(current_context(&current));
    *context = current.handle();
    return {};
  });
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(stream, "stream"));
    ContextPin current;
    NPULESS_TRY(current_context(&current));
    *stream = current->default_stream;
    return {};
  });
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(flags, "flags"));
    NPULESS_TRY(require(active, "active"));
    NPULESS_TRY(require_device(deviceId));
    *flags = 0;
    *active = has_primary_context(deviceId) ? 1 : 0;
    return {};
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return api(__func__, [&] { return set_param(process_params(), opt, value); });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return api(__func__, [&] { return get_param(process_params(), opt, value); });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return api(__func__, [&]() -> Status {
    ContextPin current;
    NPULESS_TRY(current_context(&current));
    return set_param(current->params, opt, value);
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return api(__func__, [&]() -> Status {
    ContextPin current;
    NPULESS_TRY(current_context(&current));
    return get_param(current->params, opt, value);
  });
}

}  // extern "C"
