// Base of every operator header.
#ifndef NPULESS_ACLNN_ACLNN_BASE_H_
#define NPULESS_ACLNN_ACLNN_BASE_H_

#include "aclnn/acl_meta.h"

extern "C" {

// Not needed after aclInit. Succeeds for NULL and for any path, whether or not a file is there.
ACL_FUNC_VISIBILITY aclnnStatus aclnnInit(const char* configPath);
ACL_FUNC_VISIBILITY aclnnStatus aclnnFinalize();

}  // extern "C"

#endif  // NPULESS_ACLNN_ACLNN_BASE_H_
