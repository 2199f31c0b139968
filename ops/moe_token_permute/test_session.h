// The runtime with one stream, and problems run through the public functions.
#pragma once

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_grad.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "moe_token_permute/test_problem.h"

namespace npuless::moe_token_permute {

// One per process, as clients have it.
class Session {
 public:
  static aclrtStream stream() {
    static Session session;
    return session.stream_;
  }

 private:
  Session() {
    EXPECT_EQ(aclInit(nullptr), ACL_SUCCESS);
    EXPECT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
    EXPECT_EQ(aclrtCreateStream(&stream_), ACL_SUCCESS);
  }
  ~Session() {
    aclrtDestroyStream(stream_);
    aclrtResetDevice(0);
    aclFinalize();
  }

  aclrtStream stream_ = nullptr;
};

struct Planned {
  uint64_t workspace_size = UINT64_MAX;
  aclOpExecutor* executor = nullptr;
};

template <class T>
void run_base(const Problem<T>& problem) {
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(
                problem.grad.handle(), problem.indices.handle(), problem.call().shape.topk, false,
                problem.token_grad.handle(), &planned.workspace_size, &planned.executor),
            ACL_SUCCESS)
      << aclGetRecentErrMsg();
  EXPECT_EQ(planned.workspace_size, 0u);
  ASSERT_EQ(aclnnMoeTokenPermuteGrad(nullptr, 0, planned.executor, Session::stream()), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
}

// `range` and `probs_out` may differ from the problem's own.
template <class T>
void run_ep(const Problem<T>& problem, const aclIntArray* range, const aclTensor* probs_out) {
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                problem.grad.handle(), problem.indices.handle(), problem.given_probs(),
                problem.call().shape.topk, range, false, problem.token_grad.handle(), probs_out,
                &planned.workspace_size, &planned.executor),
            ACL_SUCCESS)
      << aclGetRecentErrMsg();
  EXPECT_EQ(planned.workspace_size, 0u);
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, planned.executor, Session::stream()),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
}

template <class T>
void run(const Problem<T>& problem) {
  if (problem.call().range) {
    run_ep(problem, problem.range(), problem.probs_out.handle());
  } else {
    run_base(problem);
  }
}

}  // namespace npuless::moe_token_permute
