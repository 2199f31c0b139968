// The example of aclnnMoeTokenPermuteWithEpGrad's page: three tokens with two experts each, of
// which this rank holds the sorted positions 1 to 4. Token 0's slots are at 2 and 0, so it gets row
// 1; token 1's at 4 and 1, so rows 3 and 0; token 2's at 5 and 3, so row 2.
#ifndef NPULESS_TESTS_CAPI_PERMUTE_GRAD_PROBLEM_H_
#define NPULESS_TESTS_CAPI_PERMUTE_GRAD_PROBLEM_H_

#include <vector>

#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "client.h"

namespace client {

struct PermuteGradProblem {
  PermuteGradProblem()
      : rows({4, 2}, ACL_FLOAT, std::vector<float>{2, 2, 1, 1, 3, 3, 2, 2}),
        sorted({6}, ACL_INT32, std::vector<int32_t>{2, 0, 4, 1, 5, 3}),
        probs({4}, ACL_FLOAT, std::vector<float>{.2f, .5f, .4f, .4f}),
        token_grad({3, 2}, ACL_FLOAT, std::vector<float>(6, -1)),
        probs_grad({3, 2}, ACL_FLOAT, std::vector<float>(6, -1)) {
    const int64_t bounds[2] = {1, 5};
    range = aclCreateIntArray(bounds, 2);
    CHECK(range != nullptr);
  }
  ~PermuteGradProblem() { CHECK_OK(aclDestroyIntArray(range)); }
  PermuteGradProblem(const PermuteGradProblem&) = delete;
  PermuteGradProblem& operator=(const PermuteGradProblem&) = delete;

  aclnnStatus plan(Planned* planned) {
    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        rows.get(), sorted.get(), probs.get(), 2, range, false, token_grad.get(), probs_grad.get(),
        &planned->size, &planned->executor);
  }

  static std::vector<float> expected_token_grad() { return {1, 1, 4, 4, 3, 3}; }
  static std::vector<float> expected_probs_grad() { return {.5f, 0, .4f, .2f, 0, .4f}; }

  void check_result() {
    CHECK(token_grad.read() == expected_token_grad());
    CHECK(probs_grad.read() == expected_probs_grad());
  }

  Tensor<float> rows;
  Tensor<int32_t> sorted;
  Tensor<float> probs, token_grad, probs_grad;
  aclIntArray* range;
};

}  // namespace client

#endif  // NPULESS_TESTS_CAPI_PERMUTE_GRAD_PROBLEM_H_
