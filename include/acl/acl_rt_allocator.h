/* Part of the CANN header tree, empty: external allocators are not offered. */
#ifndef NPULESS_ACL_ACL_RT_ALLOCATOR_H_
#define NPULESS_ACL_ACL_RT_ALLOCATOR_H_

#include "acl_base.h"

#endif /* NPULESS_ACL_ACL_RT_ALLOCATOR_H_ */
