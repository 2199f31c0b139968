/* Part of acl_rt.h: device and host memory, copies, fills.
 *
 * Device memory is ordinary memory whose extents the library knows. Copying more than a device
 * block holds out of it zero-fills the rest and logs a warning; writing past a block's end gives
 * 107000 and writes nothing. Host ranges are trusted. */
#ifndef NPULESS_ACL_ACL_RT_MEMORY_H_
#define NPULESS_ACL_ACL_RT_MEMORY_H_

#include "acl_rt_memory_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `size` bytes of uninitialised device memory. Size 0: 100000. Out of memory, or beyond
 * NPULESS_DEVICE_MEMORY: 207001. Needs a current context. The variants differ in hints only. */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void** devPtr, size_t size,
                                               aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy,
                                                aclrtMallocConfig* cfg);
/* Does not wait for queued work. NULL: 100000. Not an allocation, or freed before: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void* devPtr);
/* Waits for the device first. */
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void* devPtr);

/* Page-aligned host memory that asynchronous copies may queue. Errors as aclrtMalloc. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void** hostPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size,
                                                    aclrtMallocConfig* cfg);
/* As aclrtFree and aclrtFreeWithDevSync, for memory of aclrtMallocHost. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void* hostPtr);
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void* hostPtr);

/* Cache maintenance; memory is coherent here, so the calls check their arguments. */
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void* devPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void* devPtr, size_t size);

/* Sets `count` bytes to the low byte of `value`. count 0: success. count > maxCount: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value,
                                         size_t count);
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value,
                                              size_t count, aclrtStream stream);
/* Sets N 32-bit words. N 0: success. Not 4-byte aligned, or N * 4 > memSize: 100000. Memory that
 * is not the library's: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N);
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value,
                                                 size_t N, aclrtStream stream);

/* Copies at once, without waiting for queued work. Checked in this order: count 0 succeeds
 * whatever the rest is; a NULL pointer or a kind beyond 5: 100000; count > destMax: 107000;
 * dst == src succeeds. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                         aclrtMemcpyKind kind);
/* Queued when both ends are device memory or memory of aclrtMallocHost; otherwise the stream is
 * drained and the copy done before returning. Checks as aclrtMemcpy. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src,
                                              size_t count, aclrtMemcpyKind kind,
                                              aclrtStream stream);
/* The same. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax,
                                                           const void* src, size_t count,
                                                           aclrtMemcpyKind kind,
                                                           aclrtStream stream);
/* `height` rows of `width` bytes, `dpitch` and `spitch` bytes apart. width or height 0: success.
 * width beyond a pitch, or a kind other than HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE and
 * DEFAULT: 100000. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                                           size_t width, size_t height, aclrtMemcpyKind kind);
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src,
                                                size_t spitch, size_t width, size_t height,
                                                aclrtMemcpyKind kind, aclrtStream stream);

/* Bytes of the current device; every attribute asks the same pool. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);
/* Current and peak use in bytes by component, into an array of inputNum; *outputNum is how many
 * components there are. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                                                  size_t inputNum, size_t* outputNum);
/* Where ptr points: device memory, host memory that the library knows, or neither. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void* ptr,
                                                       aclrtPtrAttributes* attributes);
/* Start and size of the allocation that holds ptr; either output may be NULL. None holds it:
 * 107000. */
ACL_FUNC_VISIBILITY aclError aclrtMemGetAddressRange(void* ptr, void** pbase, size_t* psize);

/* Makes `size` bytes of host memory known, so that asynchronous copies may queue them; the device
 * address is the host address. Unknown flag bits: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                                               void** devPtr);
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag);
/* Not registered and not of aclrtMallocHost: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag);
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void* ptr);

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_ACL_ACL_RT_MEMORY_H_ */
