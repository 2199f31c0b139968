#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "aclnn/aclnn_base.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"

aclnnStatus run(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
  const aclnnStatus status = aclnnMoeTokenPermuteGrad(workspace, size, executor, stream);
  return status == ACLNN_SUCCESS ? OK : status;
}
