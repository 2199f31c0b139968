/* Base types, constants and error codes of the ACL C API. */
#ifndef NPULESS_ACL_ACL_BASE_H_
#define NPULESS_ACL_ACL_BASE_H_

#include "acl_base_mdl.h"
#include "acl_base_rt.h"
#include "error_codes/acl_error_codes.h"
#include "error_codes/ge_error_codes.h"
#include "error_codes/rt_error_codes.h"

#endif /* NPULESS_ACL_ACL_BASE_H_ */
