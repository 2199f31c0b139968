// acl_rt_device.h: devices and what can be asked about them.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "acl/acl_rt.h"
#include "base/parallel.h"
#include "runtime/current.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/synchronize.h"

namespace npuless::runtime {
namespace {

// What __NPU_ARCH__ is on the chips that aclrtGetSocName names.
constexpr int64_t kNpuArch = 2201;

int64_t l2_cache_size() {
  return std::max<int64_t>(0, sysconf(_SC_LEVEL2_CACHE_SIZE));
}

Status synchronize_current(Deadline deadline) {
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  return synchronize_device(context->device, deadline);
}

// A core of the device is a thread of the pool that operators run on.
Status device_attribute(int device, aclrtDevAttr attribute, int64_t* value) {
  switch (attribute) {
    case ACL_DEV_ATTR_AICPU_CORE_NUM:
    case ACL_DEV_ATTR_AICORE_CORE_NUM:
    case ACL_DEV_ATTR_CUBE_CORE_NUM:
    case ACL_DEV_ATTR_VECTOR_CORE_NUM:
      *value = num_threads();
      return {};
    case ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE:
      *value = static_cast<int64_t>(memory_use(device).limit);
      return {};
    case ACL_DEV_ATTR_L2_CACHE_SIZE:
      *value = l2_cache_size();
      return {};
    case ACL_DEV_ATTR_PHY_CHIP_ID:
      *value = physical_device(device);
      return {};
    case ACL_DEV_ATTR_IS_VIRTUAL:
      *value = 1;
      return {};
    case ACL_DEV_ATTR_NPU_ARCH:
      *value = kNpuArch;
      return {};
    default:
      return fail(code::kFeatureNotSupport, "attribute %d has no meaning on this device",
                  static_cast<int>(attribute));
  }
}

Status require_peer(int32_t peer) {
  NPULESS_TRY(require_device(peer));
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  if (context->device != peer) return {};
  return fail(code::kInvalidParam, "device %d is the current device, not a peer", peer);
}

int32_t percentage(const MemoryUse& use) {
  return static_cast<int32_t>(static_cast<double>(use.used) * 100 / static_cast<double>(use.limit));
}

// Whether an attribute is supported; all that exist are listed.
constexpr aclCannAttr kCannAttributes[] = {ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16,
                                           ACL_CANN_ATTR_JIT_COMPILE};

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclrtSetDevice(int32_t deviceId) {
  return api(__func__, [&] { return retain_device(deviceId, &this_thread().context); });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return api(__func__, [&] { return release_device(deviceId, false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return api(__func__, [&] { return release_device(deviceId, true); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(deviceId, "deviceId"));
    ContextPin context;
    NPULESS_TRY(current_context(&context));
    *deviceId = context->device;
    return {};
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(count, "count"));
    *count = static_cast<uint32_t>(device_count());
    return {};
  });
}

aclError aclrtSynchronizeDevice(void) {
  return api(__func__, [] { return synchronize_current(kForever); });
}

aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout) {
  return api(__func__, [&]() -> Status {
    Deadline deadline;
    NPULESS_TRY(deadline_from(timeout, &deadline));
    return synchronize_current(deadline);
  });
}

aclError aclrtSetTsDevice(aclrtTsId tsId) {
  return api(__func__, [&]() -> Status {
    if (tsId == ACL_TS_ID_AICORE || tsId == ACL_TS_ID_AIVECTOR) return {};
    return fail(code::kRtParamInvalid, "tsId %d is no task scheduler", static_cast<int>(tsId));
  });
}

aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId, int32_t peerDeviceId) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(canAccessPeer, "canAccessPeer"));
    if (deviceId == peerDeviceId) {
      return fail(code::kInvalidParam, "device %d is not a peer of itself", deviceId);
    }
    NPULESS_TRY(require_device(deviceId));
    NPULESS_TRY(require_device(peerDeviceId));
    *canAccessPeer = 1;
    return {};
  });
}

aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags) {
  return api(__func__, [&]() -> Status {
    if (flags != 0) return fail(code::kInvalidParam, "flags must be 0, got %u", flags);
    return require_peer(peerDeviceId);
  });
}

aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId) {
  return api(__func__, [&] { return require_peer(peerDeviceId); });
}

aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, int64_t* value) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(value, "value"));
    NPULESS_TRY(require_device(deviceId));
    return device_attribute(static_cast<int>(deviceId), attr, value);
  });
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(leastPriority, "leastPriority"));
    NPULESS_TRY(require(greatestPriority, "greatestPriority"));
    *leastPriority = static_cast<int32_t>(kLeastPriority);
    *greatestPriority = 0;
    return {};
  });
}

aclError aclrtGetDeviceUtilizationRate(int32_t deviceId, aclrtUtilizationInfo* utilizationInfo) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(utilizationInfo, "utilizationInfo"));
    NPULESS_TRY(require_device(deviceId));
    if (utilizationInfo->utilizationExtend != nullptr) {
      return fail(code::kInvalidParam, "utilizationExtend must be null");
    }
    const int32_t memory = percentage(memory_use(deviceId));
    *utilizationInfo = aclrtUtilizationInfo{-1, -1, -1, memory, nullptr};
    return {};
  });
}

aclError aclrtQueryDeviceStatus(int32_t deviceId, aclrtDeviceStatus* deviceStatus) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(deviceStatus, "deviceStatus"));
    NPULESS_TRY(require_device(deviceId));
    *deviceStatus = ACL_RT_DEVICE_STATUS_NORMAL;
    return {};
  });
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, int64_t* value) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(value, "value"));
    NPULESS_TRY(require_device(deviceId));
    switch (deviceInfo) {
      case ACL_DEVICE_INFO_AI_CORE_NUM:
      case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
        *value = num_threads();
        return {};
      case ACL_DEVICE_INFO_L2_SIZE:
        *value = l2_cache_size();
        return {};
      default:
        return fail(code::kInvalidParam, "deviceInfo %d is no capability",
                    static_cast<int>(deviceInfo));
    }
  });
}

aclError aclGetCannAttributeList(const aclCannAttr** attrList, size_t* num) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(attrList, "attrList"));
    NPULESS_TRY(require(num, "num"));
    *attrList = kCannAttributes;
    *num = std::size(kCannAttributes);
    return {};
  });
}

aclError aclGetCannAttribute(aclCannAttr attr, int32_t* value) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(value, "value"));
    if (attr < ACL_CANN_ATTR_INF_NAN || attr > ACL_CANN_ATTR_JIT_COMPILE) {
      return fail(code::kInvalidParam, "attr %d is no attribute", static_cast<int>(attr));
    }
    *value = attr == ACL_CANN_ATTR_JIT_COMPILE ? 0 : 1;
    return {};
  });
}

}  // extern "C"
