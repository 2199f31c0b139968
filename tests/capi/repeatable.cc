// One executor, many launches: tensors planned without addresses, new ones before each launch, all
// queued before the first is waited for.
#include "permute_grad_problem.h"

namespace {

const size_t kLaunches = 5;
const size_t kRowBytes = 8 * sizeof(float), kGradBytes = 6 * sizeof(float);

aclTensor* without_address(const std::vector<int64_t>& dims) {
  return aclCreateTensor(dims.data(), dims.size(), ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND,
                         dims.data(), dims.size(), nullptr);
}

// Rows that are `scale` times those of the example.
void write_scaled_rows(void* device, float scale) {
  std::vector<float> rows{2, 2, 1, 1, 3, 3, 2, 2};
  for (float& x : rows) x *= scale;
  CHECK_OK(aclrtMemcpy(device, kRowBytes, rows.data(), kRowBytes, ACL_MEMCPY_HOST_TO_DEVICE));
}

void check_scaled_grad(const void* device, float scale) {
  std::vector<float> got(6), expected = client::PermuteGradProblem::expected_token_grad();
  for (float& x : expected) x *= scale;
  CHECK_OK(aclrtMemcpy(got.data(), kGradBytes, device, kGradBytes, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(got == expected);
}

void run(aclrtStream stream) {
  client::PermuteGradProblem problem;
  aclTensor* rows = without_address({4, 2});
  aclTensor* token_grad = without_address({3, 2});
  client::Planned planned;
  CHECK_OK(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
      rows, problem.sorted.get(), problem.probs.get(), 2, problem.range, false, token_grad,
      problem.probs_grad.get(), &planned.size, &planned.executor));
  CHECK_OK(aclSetAclOpExecutorRepeatable(planned.executor));

  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  const client::DeviceBytes all_rows(kLaunches * kRowBytes), all_grads(kLaunches * kGradBytes);
  char* row = static_cast<char*>(all_rows.get());
  char* grad = static_cast<char*>(all_grads.get());
  for (size_t i = 0; i < kLaunches; ++i) {
    write_scaled_rows(row + i * kRowBytes, static_cast<float>(i + 1));
  }
  for (size_t i = 0; i < kLaunches; ++i) {
    CHECK_OK(aclSetInputTensorAddr(planned.executor, 0, rows, row + i * kRowBytes));
    CHECK_OK(AclSetOutputTensorAddr(planned.executor, 0, token_grad, grad + i * kGradBytes));
    CHECK_OK(
        aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, stream));
  }
  CHECK_OK(aclrtSynchronizeStream(stream));
  for (size_t i = 0; i < kLaunches; ++i) {
    check_scaled_grad(grad + i * kGradBytes, static_cast<float>(i + 1));
  }
  CHECK(problem.probs_grad.read() == client::PermuteGradProblem::expected_probs_grad());
  CHECK_OK(aclDestroyAclOpExecutor(planned.executor));
  CHECK_OK(aclDestroyTensor(rows));
  CHECK_OK(aclDestroyTensor(token_grad));
}

}  // namespace

int main() {
  client::Session session;
  run(session.stream);
  return client::result();
}
