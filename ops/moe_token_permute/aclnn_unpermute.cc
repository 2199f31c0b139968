#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "base/guard.h"
#include "moe_token_permute/unpermute_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kUnpermuteApi[] = "aclnnMoeTokenUnpermute";
constexpr char kUnpermuteWithEpApi[] = "aclnnMoeTokenUnpermuteWithEp";

Status prepare(const char* api, const UnpermuteTensors& t, uint64_t* workspace_size,
               aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_unpermute(t));
  UnpermutePlan plan{};
  NPULESS_TRY(plan_unpermute(unpack_unpermute(t), plan));
  UnpermuteArgs& args = plan.args;
  return tensor::make_executor(api, plan, &run_unpermute, plan.workspace_bytes,
                               {{t.permuted, &args.permuted, "permutedTokens"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
                                {t.probs, &args.probs, "probsOptional"},
                                {t.out, &args.out, "out"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    bool paddedMode, const aclIntArray*, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::kUnpermuteApi,
        {permutedTokens, sortedIndices, probsOptional, 1, nullptr, paddedMode, out, false},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize,
                                              aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kUnpermuteApi, workspace, workspaceSize, executor,
                        stream);
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    int64_t numTopk, const aclIntArray* rangeOptional, bool paddedMode, const aclIntArray*,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(moe_token_permute::kUnpermuteWithEpApi,
                                      {permutedTokens, sortedIndices, probsOptional, numTopk,
                                       rangeOptional, paddedMode, out, true},
                                      workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithEp(void* workspace, uint64_t workspaceSize,
                                                    aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kUnpermuteWithEpApi, workspace, workspaceSize, executor,
                        stream);
}
