#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "base/guard.h"
#include "moe_token_permute/unpermute_with_routing_map_check.h"
#include "tensor/executor.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kMapUnpermuteApi[] = "aclnnMoeTokenUnpermuteWithRoutingMap";
constexpr char kMapUnpermuteGradApi[] = "aclnnMoeTokenUnpermuteWithRoutingMapGrad";

Status prepare(const MapUnpermuteTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_map_unpermute(t));
  MapUnpermutePlan plan{};
  NPULESS_TRY(plan_map_unpermute(unpack_map_unpermute(t), plan));
  UnpermuteArgs& args = plan.sums.args;
  void* const map = args.mapped ? &args.map : nullptr;
  void* const permute_probs = args.has_probs ? &plan.permute_probs : nullptr;
  return tensor::make_executor(kMapUnpermuteApi, plan, &run_map_unpermute, plan.workspace_bytes,
                               {{t.permuted, &args.permuted, "permutedTokens"},
                                {t.sorted_indices, &args.sorted_indices, "sortedIndices"},
                                {t.map, map, "routingMapOptional"},
                                {t.probs, &args.probs, "probsOptional"},
                                {t.out, &args.out, "unpermutedTokens"},
                                {t.out_index, &plan.out_index, "outIndex"},
                                {t.permute_token_id, &plan.permute_token_id, "permuteTokenId"},
                                {t.permute_probs, permute_probs, "permuteProbs"}},
                               workspace_size, executor);
}

Status prepare(const MapUnpermuteGradTensors& t, uint64_t* workspace_size,
               aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_map_unpermute_grad(t));
  MapUnpermuteGradPlan plan{};
  NPULESS_TRY(plan_map_unpermute_grad(unpack_map_unpermute_grad(t), plan));
  UnpermuteGradArgs& args = plan.sums.args;
  void* const token_id = plan.drop_and_pad ? &plan.permute_token_id : nullptr;
  void* const map = args.mapped ? &args.map : nullptr;
  void* const permuted = args.has_probs ? &args.permuted : nullptr;
  void* const probs_grad = args.has_probs ? &args.probs_grad : nullptr;
  return tensor::make_executor(kMapUnpermuteGradApi, plan, &run_map_unpermute_grad,
                               plan.workspace_bytes,
                               {{t.grad, &args.grad, "unpermutedTokensGrad"},
                                {t.out_index, &args.sorted_indices, "outIndex"},
                                {t.permute_token_id, token_id, "permuteTokenId"},
                                {t.map, map, "routingMapOptional"},
                                {t.permuted, permuted, "permutedTokensOptional"},
                                {t.probs, &args.probs, "probsOptional"},
                                {t.permuted_grad, &args.permuted_grad, "permutedTokensGradOut"},
                                {t.probs_grad, probs_grad, "probsGradOutOptional"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::moe_token_permute

using namespace npuless;

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices,
    const aclTensor* routingMapOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* unpermutedTokens, aclTensor* outIndex,
    aclTensor* permuteTokenId, aclTensor* permuteProbs, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::MapUnpermuteTensors{
            permutedTokens, sortedIndices, routingMapOptional, probsOptional, paddedMode,
            restoreShapeOptional, unpermutedTokens, outIndex, permuteTokenId, permuteProbs},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor,
                                                            const aclrtStream stream) {
  return tensor::launch(moe_token_permute::kMapUnpermuteApi, workspace, workspaceSize, executor,
                        stream);
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex,
    const aclTensor* permuteTokenId, const aclTensor* routingMapOptional,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool dropAndPad,
    const aclIntArray* restoreShapeOptional, const aclTensor* permutedTokensGradOut,
    const aclTensor* probsGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize", [&] {
    return moe_token_permute::prepare(
        moe_token_permute::MapUnpermuteGradTensors{unpermutedTokensGrad, outIndex, permuteTokenId,
                                                   routingMapOptional, permutedTokensOptional,
                                                   probsOptional, dropAndPad, restoreShapeOptional,
                                                   permutedTokensGradOut, probsGradOutOptional},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace,
                                                                uint64_t workspaceSize,
                                                                aclOpExecutor* executor,
                                                                aclrtStream stream) {
  return tensor::launch(moe_token_permute::kMapUnpermuteGradApi, workspace, workspaceSize, executor,
                        stream);
}
