/* The ACL C API: runtime (acl_rt.h) and the headers that CANN programs expect behind it. */
#ifndef NPULESS_ACL_ACL_H_
#define NPULESS_ACL_ACL_H_

#include "acl_mdl.h"
#include "acl_op.h"
#include "acl_rt.h"

#endif /* NPULESS_ACL_ACL_H_ */
