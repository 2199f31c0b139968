/* The runtime: lifecycle, devices and contexts, memory, streams, events.
 *
 * What holds for every function:
 *  - a required pointer that is NULL gives 100000 (ACL_ERROR_INVALID_PARAM);
 *  - a function that needs a current context gives 107002 in a thread that has none
 *    (aclrtSetDevice and aclrtSetCurrentContext make one current);
 *  - a NULL stream means the default stream of the current context, except in destroy functions;
 *  - a destroyed stream or event gives 107017, a stream of another context 107003;
 *  - sizes are bytes, timeouts milliseconds unless said otherwise;
 *  - an error of queued work is returned by the next call that synchronises with its stream. */
#ifndef NPULESS_ACL_ACL_RT_H_
#define NPULESS_ACL_ACL_RT_H_

#include "acl_base.h"
#include "acl_rt_allocator.h"
#include "acl_rt_device.h"
#include "acl_rt_event.h"
#include "acl_rt_lifecycle.h"
#include "acl_rt_memory.h"
#include "acl_rt_query.h"
#include "acl_rt_stream.h"

#endif /* NPULESS_ACL_ACL_RT_H_ */
