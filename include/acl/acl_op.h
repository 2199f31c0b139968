/* Part of the CANN header tree, empty: execution of operators by name are not offered. */
#ifndef NPULESS_ACL_ACL_OP_H_
#define NPULESS_ACL_ACL_OP_H_

#include "acl_base.h"

#endif /* NPULESS_ACL_ACL_OP_H_ */
