#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "base/guard.h"
#include "linear_cross_entropy/forward_check.h"
#include "tensor/executor.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr char kOnlineMaxSumApi[] = "aclnnFusedLinearOnlineMaxSum";
constexpr char kCrossEntropyApi[] = "aclnnFusedCrossEntropyLossWithMaxSum";

Status prepare(const OnlineMaxSumTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_online_max_sum(t));
  if (t.input->view.dims[0] == 0) {  // H = 0 is no shortcut: its logits are 0
    return tensor::make_empty_executor(kOnlineMaxSumApi, workspace_size, executor);
  }
  OnlineMaxSumPlan plan{};
  NPULESS_TRY(plan_online_max_sum(unpack_online_max_sum(t), plan));
  OnlineMaxSumArgs& args = plan.args;
  return tensor::make_executor(kOnlineMaxSumApi, plan, &run_online_max_sum, plan.workspace_bytes,
                               {{t.input, &args.input, "input"},
                                {t.weight, &args.weight, "weight"},
                                {t.target, &args.target, "target"},
                                {t.logits_max, &args.logits_max, "logitsMaxLocalOut"},
                                {t.sum_exp, &args.sum_exp, "sumExpLogitsLocalOut"},
                                {t.predicted, &args.predicted, "predictedLogitsLocalOut"},
                                {t.target_mask, &args.target_mask, "targetMaskOut"},
                                {t.masked_target, &args.masked_target, "maskedTargetOut"},
                                {t.logits, &args.logits, "vocabParallelLogitsOutOptional"}},
                               workspace_size, executor);
}

Status prepare(const CrossEntropyTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_cross_entropy(t));
  CrossEntropyPlan plan{};
  NPULESS_TRY(plan_cross_entropy(unpack_cross_entropy(t), plan));
  CrossEntropyArgs& args = plan.args;
  // Without logits softMaxOutOptional may be given and is not touched.
  void* softmax = args.has_logits ? &args.softmax : nullptr;
  return tensor::make_executor(kCrossEntropyApi, plan, &run_cross_entropy, plan.workspace_bytes,
                               {{t.logits_max, &args.logits_max, "logitsMax"},
                                {t.sum_exp, &args.sum_exp, "sumExpLogits"},
                                {t.predicted, &args.predicted, "predictedLogits"},
                                {t.logits, &args.logits, "vocabParallelLogitsOptional"},
                                {t.loss, &args.loss, "lossOut"},
                                {t.softmax, softmax, "softMaxOutOptional"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy

using namespace npuless;

extern "C" aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* target,
    int64_t vocabStartIndex, int64_t vocabEndIndex, aclTensor* logitsMaxLocalOut,
    aclTensor* sumExpLogitsLocalOut, aclTensor* predictedLogitsLocalOut, aclTensor* targetMaskOut,
    aclTensor* maskedTargetOut, aclTensor* vocabParallelLogitsOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  return guarded("aclnnFusedLinearOnlineMaxSumGetWorkspaceSize", [&] {
    return linear_cross_entropy::prepare(
        linear_cross_entropy::OnlineMaxSumTensors{
            input, weight, target, vocabStartIndex, vocabEndIndex, logitsMaxLocalOut,
            sumExpLogitsLocalOut, predictedLogitsLocalOut, targetMaskOut, maskedTargetOut,
            vocabParallelLogitsOutOptional},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnFusedLinearOnlineMaxSum(void* workspace, uint64_t workspaceSize,
                                                    aclOpExecutor* executor, aclrtStream stream) {
  return tensor::launch(linear_cross_entropy::kOnlineMaxSumApi, workspace, workspaceSize, executor,
                        stream);
}

// inputOptional and weightOptional belong to the prototype and are not read.
extern "C" aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor* logitsMax, const aclTensor* sumExpLogits, const aclTensor* predictedLogits,
    float labelSmoothing, const aclTensor*, const aclTensor*,
    const aclTensor* vocabParallelLogitsOptional, aclTensor* lossOut, aclTensor* softMaxOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize", [&] {
    return linear_cross_entropy::prepare(
        linear_cross_entropy::CrossEntropyTensors{logitsMax, sumExpLogits, predictedLogits,
                                                  labelSmoothing, vocabParallelLogitsOptional,
                                                  lossOut, softMaxOutOptional},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnFusedCrossEntropyLossWithMaxSum(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor,
                                                            aclrtStream stream) {
  return tensor::launch(linear_cross_entropy::kCrossEntropyApi, workspace, workspaceSize, executor,
                        stream);
}
