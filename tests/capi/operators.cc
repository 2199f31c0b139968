// Both operators from aclInit to aclFinalize, and twice, as a program that is called twice would.
#include "loss_grad_problem.h"
#include "permute_grad_problem.h"

namespace {

void loss_grad(aclrtStream stream) {
  const client::Half formats[] = {client::kBfloat16, client::kFloat16};
  for (const client::Half& format : formats) {
    for (int with_softmax = 0; with_softmax < 2; ++with_softmax) {
      client::LossGradProblem problem(format);
      client::Planned planned;
      CHECK_OK(problem.plan(&planned, with_softmax != 0));
      client::run_and_wait(aclnnFusedLinearCrossEntropyLossGrad, planned, stream);
      problem.check_result();
    }
  }
}

void permute_grad(aclrtStream stream) {
  client::PermuteGradProblem problem;
  client::Planned planned;
  CHECK_OK(problem.plan(&planned));
  client::run_and_wait(aclnnMoeTokenPermuteWithEpGrad, planned, stream);
  problem.check_result();
}

}  // namespace

int main() {
  for (int i = 0; i < 2; ++i) {
    client::Session session;
    loss_grad(session.stream);
    permute_grad(session.stream);
    CHECK(aclGetRecentErrMsg() == nullptr);
  }
  return client::result();
}
