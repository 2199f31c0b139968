#include "aclnnop/aclnn_moe_token_permute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_permute_with_routing_map_grad.h"
#include "base/guard.h"
#include "moe_token_permute/permute_with_routing_map_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kMapPermuteApi[] = "aclnnMoeTokenPermuteWithRoutingMap";
constexpr char kMapPermuteGradApi[] = "aclnnMoeTokenPermuteWithRoutingMapGrad";

Status prepare(const MapPermuteTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_map_permute(t));
  MapPermutePlan plan{};
  NPULESS_TRY(plan_map_permute(unpack_map_permute(t), plan));
  MapPermuteArgs& args = plan.args;
  void* probs_in = args.has_probs ? &args.probs : nullptr;
  void* probs_out = args.has_probs ? &args.permuted_probs : nullptr;
  return tensor::make_executor(kMapPermuteApi, plan, &run_map_permute, plan.workspace_bytes,
                               {{t.tokens, &args.rows.from, "tokens"},
                                {t.map, &args.map, "routingMap"},
                                {t.probs, probs_in, "probsOptional"},
                                {t.permuted, &args.rows.to, "permuteTokensOut"},
                                {t.permuted_probs, probs_out, "permuteProbsOutOptional"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndicesOut"}},
                               workspace_size, executor);
}

Status prepare(const MapPermuteGradTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_map_permute_grad(t));
  MapPermuteGradPlan plan{};
  NPULESS_TRY(plan_map_permute_grad(unpack_map_permute_grad(t), plan));
  MapPermuteGradArgs& args = plan.args;
  const bool probs = args.has_probs;
  return tensor::make_executor(
      kMapPermuteGradApi, plan, &run_map_permute_grad, plan.workspace_bytes,
      {{t.permuted_grad, &args.permuted_grad, "permutedTokensOutputGrad"},
       {t.permuted_probs_grad, probs ? &args.permuted_probs_grad : nullptr,
        "permutedProbsOutputGradOptional"},
       {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
       {t.map, probs && !args.drop_and_pad ? &args.map : nullptr, "routingMapOptional"},
       {t.token_grad, &args.token_grad, "tokenGradOut"},
       {t.probs_grad, probs ? &args.probs_grad : nullptr, "probsGradOutOptional"}},
      workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut,
    aclTensor* permuteProbsOutOptional, aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::MapPermuteTensors{tokens, routingMap, probsOptional, numOutTokens,
                                             dropAndPad, permuteTokensOut, permuteProbsOutOptional,
                                             sortedIndicesOut},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                          aclOpExecutor* executor,
                                                          aclrtStream stream) {
  return tensor::launch(moe_token_permute::kMapPermuteApi, workspace, workspaceSize, executor,
                        stream);
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t numExperts,
    int64_t tokensNum, bool dropAndPad, aclTensor* tokenGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::MapPermuteGradTensors{permutedTokensOutputGrad,
                                                 permutedProbsOutputGradOptional, sortedIndices,
                                                 routingMapOptional, numExperts, tokensNum,
                                                 dropAndPad, tokenGradOut, probsGradOutOptional},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace,
                                                              uint64_t workspaceSize,
                                                              aclOpExecutor* executor,
                                                              aclrtStream stream) {
  return tensor::launch(moe_token_permute::kMapPermuteGradApi, workspace, workspaceSize, executor,
                        stream);
}
