#include <cstdio>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"

int main() {
  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;
  const int status = aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
      nullptr, nullptr, nullptr, 1, nullptr, false, nullptr, nullptr, &workspace_size, &executor);
  std::printf("null tensors are refused with %d\n", status);
  return status == 161001 ? 0 : 1;
}
