// Every way to get it wrong that a user meets: each call says so, and the next right one works.
#include "aclnn/opdev/op_errno.h"
#include "loss_grad_problem.h"
#include "permute_grad_problem.h"

namespace {

using client::Planned;

void wrong_arguments_of_permute_grad() {
  client::PermuteGradProblem problem;
  Planned planned;
  CHECK_REFUSED(
      aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
          nullptr, problem.sorted.get(), problem.probs.get(), 2, problem.range, false,
          problem.token_grad.get(), problem.probs_grad.get(), &planned.size, &planned.executor),
      ACLNN_ERR_PARAM_NULLPTR, "permutedTokensOutputGrad");
  // Indices where the gradient belongs.
  CHECK_REFUSED(
      aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
          problem.sorted.get(), problem.sorted.get(), problem.probs.get(), 2, problem.range, false,
          problem.token_grad.get(), problem.probs_grad.get(), &planned.size, &planned.executor),
      ACLNN_ERR_PARAM_INVALID, "INT32");
  CHECK(planned.executor == nullptr);
}

void wrong_arguments_of_loss_grad() {
  client::LossGradProblem problem(client::kBfloat16);
  Planned planned;
  CHECK_REFUSED(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
                    problem.grad.get(), problem.input.get(), nullptr, problem.mask.get(),
                    problem.target.get(), 0.0f, problem.logits_max.get(),
                    problem.sum_exp_logits.get(), nullptr, problem.input_grad.get(),
                    problem.weight_grad.get(), &planned.size, &planned.executor),
                ACLNN_ERR_PARAM_NULLPTR, "weight");
  CHECK_REFUSED(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
                    problem.grad.get(), problem.grad.get(), problem.weight.get(),
                    problem.mask.get(), problem.target.get(), 0.0f, problem.logits_max.get(),
                    problem.sum_exp_logits.get(), nullptr, problem.input_grad.get(),
                    problem.weight_grad.get(), &planned.size, &planned.executor),
                ACLNN_ERR_PARAM_INVALID, "FLOAT32");
  CHECK_REFUSED(
      aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
          problem.grad.get(), problem.input.get(), problem.weight.get(), problem.mask.get(),
          problem.target.get(), 0.0f, problem.logits_max.get(), problem.sum_exp_logits.get(),
          nullptr, problem.input_grad.get(), problem.weight_grad.get(), nullptr, &planned.executor),
      ACLNN_ERR_PARAM_NULLPTR, "workspaceSize");
  CHECK(planned.executor == nullptr);
}

void wrong_executors(aclrtStream stream) {
  client::PermuteGradProblem problem;
  Planned planned, other;
  CHECK_REFUSED(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, nullptr, stream),
                ACLNN_ERR_PARAM_NULLPTR, "executor");

  CHECK_OK(problem.plan(&planned));
  client::run_and_wait(aclnnMoeTokenPermuteWithEpGrad, planned, stream);
  problem.check_result();
  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  CHECK_REFUSED(
      aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, stream),
      ACLNN_ERR_INNER_NULLPTR, "executor");
  CHECK_REFUSED(aclDestroyAclOpExecutor(planned.executor), ACLNN_ERR_INNER_NULLPTR, "executor");

  CHECK_OK(problem.plan(&planned));
  CHECK_OK(aclDestroyAclOpExecutor(planned.executor));
  CHECK_REFUSED(
      aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, stream),
      ACLNN_ERR_INNER_NULLPTR, "executor");
  CHECK_REFUSED(aclSetAclOpExecutorRepeatable(nullptr), ACLNN_ERR_INNER_NULLPTR, "executor");

  // The executor of one operator in phase 2 of the other; then where it belongs.
  CHECK_OK(problem.plan(&other));
  const client::DeviceBytes plenty(1 << 20);
  CHECK_REFUSED(
      aclnnFusedLinearCrossEntropyLossGrad(plenty.get(), plenty.size(), other.executor, stream),
      ACLNN_ERR_PARAM_INVALID, "aclnnMoeTokenPermuteWithEpGrad");
  client::run_and_wait(aclnnMoeTokenPermuteWithEpGrad, other, stream);
  problem.check_result();
}

void wrong_workspaces(aclrtStream stream) {
  client::LossGradProblem problem(client::kBfloat16);
  Planned planned;
  CHECK_OK(problem.plan(&planned));
  CHECK(planned.size > 0);
  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  CHECK_REFUSED(
      aclnnFusedLinearCrossEntropyLossGrad(nullptr, planned.size, planned.executor, stream),
      ACLNN_ERR_PARAM_NULLPTR, "workspace");
  CHECK_REFUSED(aclnnFusedLinearCrossEntropyLossGrad(workspace.get(), planned.size - 1,
                                                     planned.executor, stream),
                ACLNN_ERR_PARAM_INVALID, "workspaceSize");
  client::run_and_wait(aclnnFusedLinearCrossEntropyLossGrad, planned, stream);
  problem.check_result();
}

void wrong_streams() {
  client::PermuteGradProblem problem;
  Planned planned;
  CHECK_OK(problem.plan(&planned));
  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCreateStream(&stream));
  CHECK_OK(aclrtDestroyStream(stream));
  CHECK_REFUSED(
      aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, stream),
      ACL_ERROR_RT_INVALID_HANDLE, "stream");
  client::run_and_wait(aclnnMoeTokenPermuteWithEpGrad, planned, nullptr);
  problem.check_result();
}

void no_memory(aclrtStream stream) {
  void* memory = nullptr;
  CHECK_REFUSED(aclrtMalloc(&memory, size_t(1) << 60, ACL_MEM_MALLOC_HUGE_FIRST),
                ACL_ERROR_RT_MEMORY_ALLOCATION, "aclrtMalloc");
  CHECK(memory == nullptr);
  client::LossGradProblem problem(client::kFloat16);
  Planned planned;
  CHECK_OK(problem.plan(&planned));
  client::run_and_wait(aclnnFusedLinearCrossEntropyLossGrad, planned, stream);
  problem.check_result();
}

void null_objects() {
  CHECK_OK(aclDestroyTensor(nullptr));
  CHECK_OK(aclDestroyIntArray(nullptr));
  CHECK_OK(aclDestroyTensorList(nullptr));
  CHECK(aclCreateTensor(nullptr, 2, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, nullptr, 0, nullptr) ==
        nullptr);
  CHECK(aclGetRecentErrMsg() != nullptr);
}

}  // namespace

int main() {
  client::Session session;
  CHECK(aclGetRecentErrMsg() == nullptr);
  wrong_arguments_of_permute_grad();
  wrong_arguments_of_loss_grad();
  wrong_executors(session.stream);
  wrong_workspaces(session.stream);
  wrong_streams();
  no_memory(session.stream);
  null_objects();
  return client::result();
}
