#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "base/guard.h"
#include "linear_cross_entropy/grad_check.h"
#include "tensor/executor.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr char kGradApi[] = "aclnnFusedLinearCrossEntropyLossGrad";

Status prepare_grad(const GradTensors& t, uint64_t* workspace_size, aclOpExecutor** executor) {
  NPULESS_TRY(tensor::require_phase1_outputs(workspace_size, executor));
  NPULESS_TRY(check_grad(t));
  if (tensor::is_empty(*t.input)) {  // and weight, if V ≥ 128 rows are empty
    return tensor::make_empty_executor(kGradApi, workspace_size, executor);
  }
  NPULESS_TRY(check_grad_platform());
  GradPlan plan{};
  NPULESS_TRY(plan_grad(unpack_grad(t), plan));
  GradArgs& args = plan.args;
  // In high-performance mode max and sum may be given and are not read.
  void* max = args.has_softmax ? nullptr : &args.logits_max;
  void* sum = args.has_softmax ? nullptr : &args.sum_exp;
  return tensor::make_executor(kGradApi, plan, &run_grad, plan.workspace_bytes,
                               {{t.grad, &args.grad, "grad"},
                                {t.input, &args.input, "input"},
                                {t.weight, &args.weight, "weight"},
                                {t.target_mask, &args.target_mask, "targetMask"},
                                {t.masked_target, &args.masked_target, "maskedTarget"},
                                {t.logits_max, max, "logitsMaxOptional"},
                                {t.sum_exp, sum, "sumExpLogitsOptional"},
                                {t.softmax, &args.softmax, "softmaxOptional"},
                                {t.input_grad, &args.input_grad, "inputGradOut"},
                                {t.weight_grad, &args.weight_grad, "weightGradOut"}},
                               workspace_size, executor);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy

using namespace npuless;

extern "C" aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* input, const aclTensor* weight,
    const aclTensor* targetMask, const aclTensor* maskedTarget, float labelSmoothing,
    const aclTensor* logitsMaxOptional, const aclTensor* sumExpLogitsOptional,
    const aclTensor* softmaxOptional, aclTensor* inputGradOut, aclTensor* weightGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  return guarded("aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize", [&] {
    return linear_cross_entropy::prepare_grad(
        {grad, input, weight, targetMask, maskedTarget, labelSmoothing, logitsMaxOptional,
         sumExpLogitsOptional, softmaxOptional, inputGradOut, weightGradOut},
        workspaceSize, executor);
  });
}

extern "C" aclnnStatus aclnnFusedLinearCrossEntropyLossGrad(void* workspace, uint64_t workspaceSize,
                                                            aclOpExecutor* executor,
                                                            aclrtStream stream) {
  return tensor::launch(linear_cross_entropy::kGradApi, workspace, workspaceSize, executor, stream);
}
