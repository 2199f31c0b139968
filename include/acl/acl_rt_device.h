/* Part of acl_rt.h: devices and contexts.
 *
 * Devices are virtual: NPULESS_DEVICE_COUNT of them (default 1), numbered from 0. The current
 * context, and with it the current device, belongs to a thread. */
#ifndef NPULESS_ACL_ACL_RT_DEVICE_H_
#define NPULESS_ACL_ACL_RT_DEVICE_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum { ACL_TS_ID_AICORE = 0, ACL_TS_ID_AIVECTOR = 1, ACL_TS_ID_RESERVED = 2 } aclrtTsId;

/* Makes the device's primary context, created on first use with its default stream, current in this
 * thread and counts one reference. Unknown device: 107001. */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);
/* Drops one reference; the last one destroys the primary context and what it holds.
 * More often than set: 507007. Unknown device: 107001. */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);
/* Drops all references at once. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);
/* The device of the current context. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t* deviceId);
/* How many devices there are; needs no context. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t* count);
/* Waits for every stream of the current context's device; returns a pending error. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);
/* timeout: -1 forever, or > 0; otherwise 107000. Expired: 507046. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);
/* Chooses the device's task scheduler; one exists, so the call only checks its argument. */
ACL_FUNC_VISIBILITY aclError aclrtSetTsDevice(aclrtTsId tsId);

/* Creates a context with its own default stream and makes it current. */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);
/* For contexts of aclrtCreateContext; a primary context is refused with 107000. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);
/* Destroyed or never a context: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);
/* This thread's. */
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext* context);
/* What a NULL stream means; not to be destroyed. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);
/* *active: 1 when the device's primary context exists; *flags: 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags,
                                                     int32_t* active);

/* *canAccessPeer: 1 for two different devices. The same device twice: 100000. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                                      int32_t peerDeviceId);
/* Peers always reach each other's memory; the calls check their arguments. flags must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_ACL_ACL_RT_DEVICE_H_ */
