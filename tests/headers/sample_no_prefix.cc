#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnn_fused_linear_cross_entropy_loss_grad.h"

aclnnStatus run(void* workspace, uint64_t size, aclOpExecutor* executor, aclrtStream stream) {
  return aclnnFusedLinearCrossEntropyLossGrad(workspace, size, executor, stream);
}
