#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"

int plan(const std::vector<aclTensor*>& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  const aclnnStatus status = aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
      t[0], t[1], t[2], t[3], t[4], 0.0f, t[5], t[6], nullptr, t[7], t[8], workspace_size,
      executor);
  if (status != ACL_SUCCESS) std::cerr << aclGetRecentErrMsg() << "\n";
  return status;
}
