#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "base/guard.h"
#include "moe_token_permute/permute_grad_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kPermuteGradApi[] = "aclnnMoeTokenPermuteGrad";
constexpr char kPermuteWithEpGradApi[] = "aclnnMoeTokenPermuteWithEpGrad";

// Nothing is booked: sums live in registers.
constexpr int64_t kNoWorkspace = 0;

Status prepare(const PermuteGradTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_permute_grad(t));
  PermuteGradPlan plan{};
  NPULESS_TRY(plan_permute_grad(unpack_permute_grad(t), plan));
  PermuteGradArgs& args = plan.args;
  return tensor::make_executor(kPermuteGradApi, plan, &run_permute_grad, kNoWorkspace,
                               {{t.permuted_grad, &args.permuted_grad, "permutedOutputGrad"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
                                {t.token_grad, &args.token_grad, "out"}},
                               workspace_size, executor);
}

Status prepare(const PermuteWithEpGradTensors& t, uint64_t* workspace_size,
               aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_permute_with_ep_grad(t));
  PermuteGradPlan plan{};
  NPULESS_TRY(plan_permute_grad(unpack_permute_with_ep_grad(t), plan));
  PermuteGradArgs& args = plan.args;
  void* probs_in = args.has_probs ? &args.permuted_probs_grad : nullptr;
  void* probs_out = args.has_probs ? &args.probs_grad : nullptr;
  return tensor::make_executor(
      kPermuteWithEpGradApi, plan, &run_permute_grad, kNoWorkspace,
      {{t.permuted_grad, &args.permuted_grad, "permutedTokensOutputGrad"},
       {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
       {t.permuted_probs_grad, probs_in, "permutedProbsOutputGradOptional"},
       {t.token_grad, &args.token_grad, "tokenGradOut"},
       {t.probs_grad, probs_out, "probsGradOut"}},
      workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(
    const aclTensor* permutedOutputGrad, const aclTensor* sortedIndices, int64_t numTopk,
    bool paddedMode, aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::PermuteGradTensors{permutedOutputGrad, sortedIndices, numTopk,
                                              paddedMode, out},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize,
                                                aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kPermuteGradApi, workspace, workspaceSize, executor,
                        stream);
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedProbsOutputGradOptional, int64_t numTopk,
    const aclIntArray* rangeOptional, bool paddedMode, const aclTensor* tokenGradOut,
    const aclTensor* probsGradOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::PermuteWithEpGradTensors{
            permutedTokensOutputGrad, sortedIndices, permutedProbsOutputGradOptional, numTopk,
            rangeOptional, paddedMode, tokenGradOut, probsGradOut},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                                      aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kPermuteWithEpGradApi, workspace, workspaceSize,
                        executor, stream);
}
