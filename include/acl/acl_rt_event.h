/* Part of acl_rt.h: events.
 *
 * Recording captures the work queued on a stream so far; waits and queries refer to what the last
 * record captured. A NULL event gives 100000, a NULL stream means the default stream. */
#ifndef NPULESS_ACL_ACL_RT_EVENT_H_
#define NPULESS_ACL_ACL_RT_EVENT_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an event can do, to be combined. ACL_EVENT_EXTERNAL and ACL_EVENT_IPC stand alone and are
 * not offered (207000). */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
#define ACL_EVENT_DEVICE_USE_ONLY 0x00000010U
#define ACL_EVENT_EXTERNAL 0x00000020U
#define ACL_EVENT_IPC 0x00000040U

#define ACL_EVENT_RECORD_DEFAULT 0x0U
#define ACL_EVENT_RECORD_EXTERNAL 0x1U
#define ACL_EVENT_WAIT_DEFAULT 0x0U
#define ACL_EVENT_WAIT_EXTERNAL 0x1U

typedef enum {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
  ACL_EVENT_STATUS_RESERVED = 2
} aclrtEventStatus;

/* Opposite to the other status types: complete is 1. */
typedef enum {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1
} aclrtEventRecordedStatus;

typedef enum {
  ACL_EVENT_WAIT_STATUS_COMPLETE = 0,
  ACL_EVENT_WAIT_STATUS_NOT_READY = 1,
  ACL_EVENT_WAIT_STATUS_RESERVED = 0xFFFF
} aclrtEventWaitStatus;

/* Synchronises and carries time stamps; cannot be reset. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEvent(aclrtEvent* event);
/* flag: ACL_EVENT_*. Waiting on the event and resetting it need ACL_EVENT_SYNC, elapsed time needs
 * ACL_EVENT_TIME_LINE. Flag 0 or unknown bits: 107000. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
/* An event that is reused by recording it again: reset, aclrtQueryEvent and
 * aclrtQueryEventWaitStatus give 207000. Flags as above. */
ACL_FUNC_VISIBILITY aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag);
/* Does not wait; an event that is still used disappears when its work is done. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyEvent(aclrtEvent event);

/* Queues the record. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
/* flag: ACL_EVENT_RECORD_DEFAULT; external: 207000. */
ACL_FUNC_VISIBILITY aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream,
                                                      uint32_t flag);
/* Queues the return to "never recorded". */
ACL_FUNC_VISIBILITY aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);

/* aclrtQueryEventStatus replaces this. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);
/* Whether the captured work is done. Never recorded: complete for an event of
 * aclrtCreateEventExWithFlag, not ready for others. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventStatus(aclrtEvent event,
                                                   aclrtEventRecordedStatus* status);
/* Whether every queued wait on the event is done. */
ACL_FUNC_VISIBILITY aclError aclrtQueryEventWaitStatus(aclrtEvent event,
                                                       aclrtEventWaitStatus* status);

/* Waits for the captured work. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEvent(aclrtEvent event);
/* timeout: -1 forever, or > 0; otherwise 107000. Expired: 507047. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout);

/* Milliseconds between two recorded events, negative when end came first. Never recorded: 507000.
 * Not reached yet, or an event without time stamps: 107006. */
ACL_FUNC_VISIBILITY aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent,
                                                   aclrtEvent endEvent);
/* Microseconds of a steady clock at which the record was reached. */
ACL_FUNC_VISIBILITY aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp);
/* A number that no other living event has. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventId(aclrtEvent event, uint32_t* eventId);
/* How many more events there can be. */
ACL_FUNC_VISIBILITY aclError aclrtGetEventAvailNum(uint32_t* eventCount);

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_ACL_ACL_RT_EVENT_H_ */
