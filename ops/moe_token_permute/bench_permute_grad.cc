#include <cstring>

#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/ref.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
class GradProblem {
 public:
  GradProblem(const Case& c, aclrtStream stream)
      : case_(c),
        stream_(stream),
        grad_({c.tokens * c.topk, c.hidden}),
        indices_({c.tokens * c.topk}),
        probs_grad_({c.tokens * c.topk}),
        token_grad_({c.tokens, c.hidden}),
        probs_out_({c.tokens, c.topk}) {
    fill(grad_);
    fill(probs_grad_);
    const auto positions = positions_of(draw_experts(indices_.count()));
    std::copy(positions.begin(), positions.end(), indices_.data());
    const int64_t ends[] = {0, c.tokens * c.topk};
    const aclIntArray* range = aclCreateIntArray(ends, 2);
    uint64_t workspace_size = 0;
    must(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        grad_.handle(), indices_.handle(), probs_grad_.handle(), c.topk, range, false,
        token_grad_.handle(), probs_out_.handle(), &workspace_size, &executor_));
    must(aclSetAclOpExecutorRepeatable(executor_));
    aclDestroyIntArray(range);
  }
  ~GradProblem() { aclDestroyAclOpExecutor(executor_); }
  GradProblem(const GradProblem&) = delete;
  GradProblem& operator=(const GradProblem&) = delete;

  void run() const {
    must(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor_, stream_));
    must(aclrtSynchronizeStream(stream_));
  }

  double bytes() const {
    return static_cast<double>(grad_.bytes() + token_grad_.bytes() + 2 * probs_grad_.bytes() +
                               indices_.bytes());
  }

  // About a hundred tokens against the scalar model.
  bool right() const {
    const int64_t step = std::max<int64_t>(1, case_.tokens / 97);
    for (int64_t token = 0; token < case_.tokens; token += step) {
      if (!right(token)) return false;
    }
    return true;
  }

 private:
  bool right(int64_t token) const {
    const RefShape shape{1, case_.topk, case_.hidden, 0, case_.topk};
    std::vector<T> rows;
    std::vector<int32_t> slots;
    for (int64_t j = 0; j < case_.topk; ++j) {
      const T* row = grad_.data() + indices_.data()[token * case_.topk + j] * case_.hidden;
      rows.insert(rows.end(), row, row + case_.hidden);
      slots.push_back(static_cast<int32_t>(j));
    }
    const auto expected = model_token_grad(shape, rows, slots);
    return std::memcmp(expected.data(), token_grad_.data() + token * case_.hidden,
                       expected.size() * sizeof(T)) == 0;
  }

  Case case_;
  aclrtStream stream_;
  DeviceTensor<T> grad_;
  DeviceTensor<int32_t> indices_;
  DeviceTensor<T> probs_grad_;
  DeviceTensor<T> token_grad_;
  DeviceTensor<T> probs_out_;
  aclOpExecutor* executor_ = nullptr;
};

}  // namespace

void add_permute_grad_benches(aclrtStream stream) {
  add_benches<GradProblem>("permute_with_ep_grad", stream);
}

}  // namespace npuless::moe_token_permute
