#include <cstdio>
#include <iostream>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

aclTensor* bf16_tensor(const std::vector<int64_t>& shape, void* address) {
  return aclCreateTensor(shape.data(), shape.size(), aclDataType::ACL_BF16, nullptr, 0,
                         aclFormat::ACL_FORMAT_ND, shape.data(), shape.size(), address);
}

int plan(aclTensor* tokens, aclTensor* indices, aclIntArray* range, aclTensor* out,
         aclTensor* probs_out, aclOpExecutor** executor) {
  uint64_t workspace_size = 0;
  auto ret = aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
      tokens, indices, nullptr, 2, range, false, out, probs_out, &workspace_size, executor);
  if (ret != ACL_SUCCESS) {
    printf("failed. ERROR: %d\n", ret);
    return ret;
  }
  return aclnnMoeTokenPermuteGradGetWorkspaceSize(tokens, indices, 2, false, out, &workspace_size,
                                                  executor);
}
