// Nothing waits on the host until the end: one stream copies in and computes, another waits for its
// event and copies out; events time the computation.
#include "permute_grad_problem.h"

namespace {

const size_t kBytes = 6 * sizeof(float);

// Page-aligned host memory, which asynchronous copies may queue.
float* host_floats(size_t count) {
  void* memory = nullptr;
  CHECK_OK(aclrtMallocHost(&memory, count * sizeof(float)));
  return static_cast<float*>(memory);
}

struct Events {
  Events() : start(nullptr), end(nullptr) {
    CHECK_OK(aclrtCreateEventWithFlag(&start, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
    CHECK_OK(aclrtCreateEventWithFlag(&end, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE));
  }
  ~Events() {
    CHECK_OK(aclrtDestroyEvent(start));
    CHECK_OK(aclrtDestroyEvent(end));
  }
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;

  aclrtEvent start, end;
};

void run(aclrtStream compute, aclrtStream copy) {
  client::PermuteGradProblem problem;
  problem.rows.write(std::vector<float>(8, -1));
  const std::vector<float> rows{2, 2, 1, 1, 3, 3, 2, 2};
  float* in = host_floats(rows.size());
  float* out = host_floats(6);
  std::memcpy(in, rows.data(), rows.size() * sizeof(float));
  Events events;

  client::Planned planned;
  CHECK_OK(problem.plan(&planned));
  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  CHECK_OK(aclrtMemcpyAsync(problem.rows.address(), 8 * sizeof(float), in, 8 * sizeof(float),
                            ACL_MEMCPY_HOST_TO_DEVICE, compute));
  CHECK_OK(aclrtRecordEvent(events.start, compute));
  CHECK_OK(
      aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, compute));
  CHECK_OK(aclrtRecordEvent(events.end, compute));
  CHECK_OK(aclrtStreamWaitEvent(copy, events.end));
  CHECK_OK(aclrtMemcpyAsync(out, kBytes, problem.token_grad.address(), kBytes,
                            ACL_MEMCPY_DEVICE_TO_HOST, copy));
  CHECK_OK(aclrtSynchronizeStream(copy));

  CHECK(std::vector<float>(out, out + 6) == client::PermuteGradProblem::expected_token_grad());
  aclrtEventRecordedStatus status = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  CHECK_OK(aclrtQueryEventStatus(events.end, &status));
  CHECK(status == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  float milliseconds = -1;
  CHECK_OK(aclrtEventElapsedTime(&milliseconds, events.start, events.end));
  CHECK(milliseconds >= 0);
  CHECK_OK(aclrtSynchronizeStream(compute));
  problem.check_result();
  CHECK_OK(aclrtFreeHost(in));
  CHECK_OK(aclrtFreeHost(out));
}

// An operator that moves little has run when phase 2 returns, if the stream was idle.
void run_at_launch(aclrtStream stream) {
  client::PermuteGradProblem problem;
  client::Planned planned;
  CHECK_OK(problem.plan(&planned));
  const client::DeviceBytes workspace(static_cast<size_t>(planned.size));
  CHECK_OK(aclrtSynchronizeStream(stream));
  CHECK_OK(aclnnMoeTokenPermuteWithEpGrad(workspace.get(), planned.size, planned.executor, stream));
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  CHECK_OK(aclrtStreamQuery(stream, &status));
  CHECK(status == ACL_STREAM_STATUS_COMPLETE);
  problem.check_result();
}

}  // namespace

int main() {
  client::Session session;
  aclrtStream copy = nullptr;
  CHECK_OK(aclrtCreateStream(&copy));
  for (int i = 0; i < 20; ++i) run(session.stream, copy);
  for (int i = 0; i < 20; ++i) run_at_launch(session.stream);
  CHECK_OK(aclrtDestroyStream(copy));
  return client::result();
}
