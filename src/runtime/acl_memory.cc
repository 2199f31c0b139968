// acl_rt_memory.h: allocation.
#include <cstring>

#include "acl/acl_rt.h"
#include "runtime/current.h"
#include "runtime/device.h"
#include "runtime/memory.h"
#include "runtime/storage.h"
#include "runtime/synchronize.h"

namespace npuless::runtime {
namespace {

Status allocate_here(MemoryKind kind, void** address, size_t size) {
  NPULESS_TRY(require(address, "the pointer to the result"));
  if (size == 0) return fail(code::kInvalidParam, "the size must not be 0");
  ContextPin context;
  NPULESS_TRY(current_context(&context));
  return allocate(kind, context->device, size, address);
}

// Attributes are hints, but an array that is announced must be there.
Status require_config(const aclrtMallocConfig* config) {
  if (config == nullptr || config->numAttrs == 0) return {};
  return require(config->attrs, "cfg->attrs");
}

Status free_block(MemoryKind kind, void* address) {
  NPULESS_TRY(require(address, "the pointer"));
  return release(kind, address);
}

// The block is freed even when the device reports an error of earlier work.
Status free_block_idle(MemoryKind kind, void* address) {
  NPULESS_TRY(require(address, "the pointer"));
  int device = 0;
  if (const BlockRef block = find_block(address)) device = block->device;
  const Status work = synchronize_device(device, kForever);
  NPULESS_TRY(release(kind, address));
  return work;
}

Status require_known(void* address, size_t size) {
  NPULESS_TRY(require(address, "devPtr"));
  if (size == 0) return fail(code::kInvalidParam, "the size must not be 0");
  return {};
}

Status register_range(void* address, uint64_t size) {
  NPULESS_TRY(require(address, "ptr"));
  if (size == 0) return fail(code::kInvalidParam, "the size must not be 0");
  if (size > UINTPTR_MAX - reinterpret_cast<uintptr_t>(address)) {
    return fail(code::kRtParamInvalid, "the range leaves the address space");
  }
  return register_host(address, size);
}

bool is_register_type(aclrtHostRegisterType type) {
  return type == ACL_HOST_REGISTER_MAPPED || type == ACL_HOST_REGISTER_IOMEMORY ||
         type == ACL_HOST_REGISTER_READONLY;
}

void describe(const void* address, aclrtPtrAttributes* attributes) {
  const BlockRef block = find_block(address);
  std::memset(attributes, 0, sizeof(*attributes));
  attributes->pageSize = static_cast<uint32_t>(page_size());
  attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  if (!block) return;
  attributes->location.type =
      block.is_device() ? ACL_MEM_LOCATION_TYPE_DEVICE : ACL_MEM_LOCATION_TYPE_HOST;
  if (block.is_device()) attributes->location.id = static_cast<uint32_t>(block->device);
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return api(__func__, [&] { return allocate_here(MemoryKind::kDevice, devPtr, size); });
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return api(__func__, [&] { return allocate_here(MemoryKind::kDevice, devPtr, size); });
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  return api(__func__, [&] { return allocate_here(MemoryKind::kDevice, devPtr, size); });
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy,
                            aclrtMallocConfig* cfg) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require_config(cfg));
    return allocate_here(MemoryKind::kDevice, devPtr, size);
  });
}

aclError aclrtFree(void* devPtr) {
  return api(__func__, [&] { return free_block(MemoryKind::kDevice, devPtr); });
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  return api(__func__, [&] { return free_block_idle(MemoryKind::kDevice, devPtr); });
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  return api(__func__, [&] { return allocate_here(MemoryKind::kPinned, hostPtr, size); });
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require_config(cfg));
    return allocate_here(MemoryKind::kPinned, ptr, size);
  });
}

aclError aclrtFreeHost(void* hostPtr) {
  return api(__func__, [&] { return free_block(MemoryKind::kPinned, hostPtr); });
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  return api(__func__, [&] { return free_block_idle(MemoryKind::kPinned, hostPtr); });
}

aclError aclrtMemFlush(void* devPtr, size_t size) {
  return api(__func__, [&] { return require_known(devPtr, size); });
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  return api(__func__, [&] { return require_known(devPtr, size); });
}

aclError aclrtGetMemInfo(aclrtMemAttr, size_t* free, size_t* total) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(free, "free"));
    NPULESS_TRY(require(total, "total"));
    ContextPin context;
    NPULESS_TRY(current_context(&context));
    const MemoryUse use = memory_use(context->device);
    *free = use.limit - use.used;
    *total = use.limit;
    return {};
  });
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(memUsageInfo, "memUsageInfo"));
    NPULESS_TRY(require(outputNum, "outputNum"));
    NPULESS_TRY(require_device(deviceId));
    *outputNum = 1;
    if (inputNum == 0) return {};
    const MemoryUse use = memory_use(deviceId);
    *memUsageInfo = aclrtMemUsageInfo{"npuless", use.used, use.peak, {}};
    return {};
  });
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(ptr, "ptr"));
    NPULESS_TRY(require(attributes, "attributes"));
    describe(ptr, attributes);
    return {};
  });
}

aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(ptr, "ptr"));
    const BlockRef block = find_block(ptr);
    if (!block) return fail(code::kRtParamInvalid, "%p is not memory of this library", ptr);
    if (pbase != nullptr) *pbase = reinterpret_cast<void*>(block->base);
    if (psize != nullptr) *psize = block->size;
    return {};
  });
}

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(devPtr, "devPtr"));
    if (!is_register_type(type)) {
      return fail(code::kInvalidParam, "type %d is no aclrtHostRegisterType",
                  static_cast<int>(type));
    }
    NPULESS_TRY(register_range(ptr, size));
    *devPtr = ptr;
    return {};
  });
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  return api(__func__, [&]() -> Status {
    constexpr uint64_t kKnown =
        ACL_HOST_REG_MAPPED | ACL_HOST_REG_IOMEMORY | ACL_HOST_REG_READONLY | ACL_HOST_REG_PINNED;
    if ((flag & ~kKnown) != 0) return fail(code::kRtParamInvalid, "unknown flag bits 0x%x", flag);
    return register_range(ptr, size);
  });
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(pHost, "pHost"));
    NPULESS_TRY(require(pDevice, "pDevice"));
    const BlockRef block = find_block(pHost);
    if (!block || block.is_device()) {
      return fail(code::kRtParamInvalid, "%p is not registered host memory", pHost);
    }
    *pDevice = pHost;
    return {};
  });
}

aclError aclrtHostUnregister(void* ptr) {
  return api(__func__, [&] { return free_block(MemoryKind::kRegistered, ptr); });
}

}  // extern "C"
