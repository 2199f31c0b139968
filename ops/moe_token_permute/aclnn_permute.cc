#include "aclnnop/aclnn_moe_token_permute.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep.h"
#include "base/guard.h"
#include "moe_token_permute/permute_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kPermuteApi[] = "aclnnMoeTokenPermute";
constexpr char kPermuteWithEpApi[] = "aclnnMoeTokenPermuteWithEp";

Status prepare(const char* api, const PermuteTensors& t, uint64_t* workspace_size,
               aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_permute(t));
  PermutePlan plan{};
  NPULESS_TRY(plan_permute(unpack_permute(t), plan));
  PermuteArgs& args = plan.args;
  void* probs_in = args.has_probs ? &args.probs : nullptr;
  void* probs_out = args.has_probs ? &args.permuted_probs : nullptr;
  return tensor::make_executor(api, plan, &run_permute, plan.workspace_bytes,
                               {{t.tokens, &args.rows.from, "tokens"},
                                {t.indices, &args.indices, "indices"},
                                {t.probs, probs_in, "probsOptional"},
                                {t.permuted, &args.rows.to, "permuteTokensOut"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndicesOut"},
                                {t.permuted_probs, probs_out, "permuteProbsOut"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(moe_token_permute::kPermuteApi,
                                      {tokens, indices, nullptr, nullptr, numOutTokens, paddedMode,
                                       permuteTokensOut, sortedIndicesOut, nullptr, false},
                                      workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize,
                                            aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kPermuteApi, workspace, workspaceSize, executor, stream);
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, const aclTensor* probsOptional,
    const aclIntArray* rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut,
    const aclTensor* permuteProbsOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteWithEpGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::kPermuteWithEpApi,
        {tokens, indices, probsOptional, rangeOptional, numOutTokens, paddedMode, permuteTokensOut,
         sortedIndicesOut, permuteProbsOut, true},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize,
                                                  aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(moe_token_permute::kPermuteWithEpApi, workspace, workspaceSize, executor,
                        stream);
}
