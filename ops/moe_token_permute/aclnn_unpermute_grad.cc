#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "base/guard.h"
#include "moe_token_permute/unpermute_grad_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kUnpermuteGradApi[] = "aclnnMoeTokenUnpermuteGrad";
constexpr char kUnpermuteWithEpGradApi[] = "aclnnMoeTokenUnpermuteWithEpGrad";

Status prepare(const char* api, const UnpermuteGradTensors& t, uint64_t* workspace_size,
               aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_unpermute_grad(t));
  UnpermuteGradPlan plan{};
  NPULESS_TRY(plan_unpermute_grad(unpack_unpermute_grad(t), plan));
  UnpermuteGradArgs& args = plan.args;
  void* permuted = args.has_probs ? &args.permuted : nullptr;
  void* probs_grad = args.has_probs ? &args.probs_grad : nullptr;
  return tensor::make_executor(api, plan, &run_unpermute_grad, plan.workspace_bytes,
                               {{t.permuted, permuted, "permutedTokensOptional"},
                                {t.grad, &args.grad, "unpermutedTokensGrad"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
                                {t.probs, &args.probs, "probsOptional"},
                                {t.permuted_grad, &args.permuted_grad, "permutedTokensGradOut"},
                                {t.probs_grad, probs_grad, "probsGradOut"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor* permutedTokensOptional, const aclTensor* unpermutedTokensGrad,
    const aclTensor* sortedIndices, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray*, aclTensor* permutedTokensGradOut, aclTensor* probsGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::kUnpermuteGradApi,
        {permutedTokensOptional, unpermutedTokensGrad, sortedIndices, probsOptional, 1, nullptr,
         paddedMode, permutedTokensGradOut, probsGradOut, false},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteGrad(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kUnpermuteGradApi, workspace, workspaceSize, executor,
                        stream);
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray*, const aclIntArray* rangeOptional, int64_t topkNum,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::kUnpermuteWithEpGradApi,
        {permutedTokensOptional, unpermutedTokensGrad, sortedIndices, probsOptional, topkNum,
         rangeOptional, paddedMode, permutedTokensGradOut, probsGradOut, true},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                                        aclOpExecutor* executor,
                                                        aclrtStream stream) {
  return tensor::launch(moe_token_permute::kUnpermuteWithEpGradApi, workspace, workspaceSize,
                        executor, stream);
}
