// One call of an unpermute and of its gradient with their data, and the ways to run and judge them.
#pragma once

#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_ep_grad.h"
#include "moe_token_permute/ref_unpermute.h"
#include "moe_token_permute/test_session.h"
#include "moe_token_permute/unpermute_check.h"
#include "moe_token_permute/unpermute_grad_check.h"

namespace npuless::moe_token_permute {

struct UnpermuteCall {
  explicit UnpermuteCall(const Case& c) : shape(c) {}

  Case shape;
  bool expert_parallel = false;
  std::optional<Range> range;  // of the expert-parallel form
  bool probs = true;           // without: topk 1, or the expert-parallel form
  int64_t dropped_rows = 0;    // of the last ones, without a range
  int64_t extra_rows = 0;      // beyond those the range selects
  LayoutOf inputs = contiguous;
  LayoutOf outputs = contiguous;

  int64_t slots() const { return shape.tokens * shape.topk; }
  int64_t rows() const {
    return (range ? range->end - range->begin : slots() - dropped_rows) + extra_rows;
  }
};

inline std::string describe(const UnpermuteCall& call) {
  const Case& c = call.shape;
  return std::to_string(c.tokens) + " tokens, topk " + std::to_string(c.topk) + ", hidden " +
         std::to_string(c.hidden) + (call.range ? ", range" : "") + (call.probs ? ", probs" : "");
}

// Memory of exactly the size that phase 1 asked for, poisoned.
class Workspace {
 public:
  explicit Workspace(uint64_t bytes) : memory_(DType::kInt8, {static_cast<int64_t>(bytes)}) {}
  void* data() const { return memory_.count() == 0 ? nullptr : &memory_.at<unsigned char>(0); }

 private:
  TestTensor memory_;
};

using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

inline void launch(aclnnStatus phase1, const Planned& planned, Phase2 phase2) {
  ASSERT_EQ(phase1, ACL_SUCCESS) << aclGetRecentErrMsg();
  const Workspace workspace(planned.workspace_size);
  ASSERT_EQ(phase2(workspace.data(), planned.workspace_size, planned.executor, Session::stream()),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
}

// T the tokens, P the probabilities.
template <class T, class P>
class UnpermuteProblem {
 public:
  explicit UnpermuteProblem(const UnpermuteCall& call)
      : call_(call),
        permuted(kDType<T>, row_dims(), call.inputs(row_dims())),
        grad(kDType<T>, token_dims(), call.inputs(token_dims())),
        indices(DType::kInt32, {call.slots()}, call.inputs({call.slots()})),
        probs(kDType<P>, slot_dims(), call.inputs(slot_dims())),
        out(kDType<T>, token_dims(), call.outputs(token_dims())),
        permuted_grad(kDType<T>, row_dims(), call.outputs(row_dims())),
        probs_grad(kDType<P>, slot_dims(), call.outputs(slot_dims())) {
    std::mt19937 random(54321);
    for (int64_t i = 0; i < permuted.count(); ++i) permuted.at<T>(i) = any_number<T>(random);
    for (int64_t i = 0; i < grad.count(); ++i) grad.at<T>(i) = any_number<T>(random);
    for (int64_t i = 0; i < probs.count(); ++i) {
      probs.at<P>(i) = random() % 8 == 0 ? P{} : any_number<P>(random);
    }
    indices.write(any_indices(call.slots(), random));
    if (call.range) {
      const int64_t ends[] = {call.range->begin, call.range->end};
      range_.reset(aclCreateIntArray(ends, 2));
    }
    compute_model();
  }

  const UnpermuteCall& call() const { return call_; }
  const aclIntArray* range() const { return range_.get(); }
  RefShape ref_shape() const {
    const Range range = call_.range.value_or(Range{0, call_.rows()});
    return {call_.shape.tokens, call_.shape.topk, call_.shape.hidden, range.begin, range.end};
  }

  // After inputs were changed.
  void compute_model() {
    const auto x = permuted.read<T>();
    const auto g = grad.read<T>();
    const auto slots = indices.read<int32_t>();
    const auto weights = call_.probs ? probs.read<P>() : std::vector<P>();
    model_out_ = model_unpermute(ref_shape(), x, weights, slots);
    model_permuted_grad_ = model_permuted_grad(ref_shape(), call_.rows(), g, weights, slots);
    model_probs_grad_.clear();
    if (call_.probs) {
      model_probs_grad_ = model_unpermute_probs_grad<T, P>(ref_shape(), x, g, slots);
    }
    inputs_before_ = inputs();
  }

  UnpermuteTensors tensors() const {
    return {
        permuted.handle(), indices.handle(),     given_probs(), call_.shape.topk, range(), false,
        out.handle(),      call_.expert_parallel};
  }
  UnpermuteGradTensors grad_tensors() const {
    return {call_.probs ? permuted.handle() : nullptr,
            grad.handle(),
            indices.handle(),
            given_probs(),
            call_.shape.topk,
            range(),
            false,
            permuted_grad.handle(),
            probs_grad.handle(),
            call_.expert_parallel};
  }

  void poison_outputs() const {
    out.poison();
    permuted_grad.poison();
    probs_grad.poison();
  }

  void run() const {
    Planned planned;
    if (call_.expert_parallel) {
      launch(aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
                 permuted.handle(), indices.handle(), given_probs(), call_.shape.topk, range(),
                 false, nullptr, out.handle(), &planned.workspace_size, &planned.executor),
             planned, &aclnnMoeTokenUnpermuteWithEp);
    } else {
      launch(aclnnMoeTokenUnpermuteGetWorkspaceSize(permuted.handle(), indices.handle(),
                                                    given_probs(), false, nullptr, out.handle(),
                                                    &planned.workspace_size, &planned.executor),
             planned, &aclnnMoeTokenUnpermute);
    }
  }

  void run_grad() const {
    Planned planned;
    const UnpermuteGradTensors t = grad_tensors();
    if (call_.expert_parallel) {
      launch(aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
                 t.grad, t.sorted_indices, t.permuted, t.probs, false, nullptr, range(), t.topk,
                 t.permuted_grad, t.probs_grad, &planned.workspace_size, &planned.executor),
             planned, &aclnnMoeTokenUnpermuteWithEpGrad);
    } else {
      launch(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(t.permuted, t.grad, t.sorted_indices,
                                                        t.probs, false, nullptr,
                                                        permuted_grad.handle(), probs_grad.handle(),
                                                        &planned.workspace_size, &planned.executor),
             planned, &aclnnMoeTokenUnpermuteGrad);
    }
  }

  // Every output element has the model's bits, no other byte changed, nor did an input. Without
  // probabilities the gradient is moved bits, NaN included.
  void expect_model(const std::string& what) const {
    EXPECT_TRUE(matches(out, model_out_, true)) << what << ": out";
    EXPECT_TRUE(inputs() == inputs_before_) << what << ": an input changed";
  }
  void expect_grad_model(const std::string& what) const {
    EXPECT_TRUE(matches(permuted_grad, model_permuted_grad_, call_.probs))
        << what << ": permuted grad";
    EXPECT_TRUE(matches(probs_grad, model_probs_grad_, true)) << what << ": probs grad";
    EXPECT_TRUE(inputs() == inputs_before_) << what << ": an input changed";
  }

 private:
  struct DestroyRange {
    void operator()(const aclIntArray* range) const { aclDestroyIntArray(range); }
  };

  std::vector<int64_t> row_dims() const { return {call_.rows(), call_.shape.hidden}; }
  std::vector<int64_t> token_dims() const { return {call_.shape.tokens, call_.shape.hidden}; }
  std::vector<int64_t> slot_dims() const { return {call_.shape.tokens, call_.shape.topk}; }
  const aclTensor* given_probs() const { return call_.probs ? probs.handle() : nullptr; }

  std::vector<std::vector<unsigned char>> inputs() const {
    return {permuted.bytes(), grad.bytes(), indices.bytes(), probs.bytes()};
  }

  UnpermuteCall call_;
  std::unique_ptr<const aclIntArray, DestroyRange> range_;
  std::vector<T> model_out_;
  std::vector<T> model_permuted_grad_;
  std::vector<P> model_probs_grad_;
  std::vector<std::vector<unsigned char>> inputs_before_;

 public:
  TestTensor permuted;
  TestTensor grad;
  TestTensor indices;
  TestTensor probs;
  TestTensor out;
  TestTensor permuted_grad;
  TestTensor probs_grad;
};

// Case L3: all nine.
template <class Body>
void for_each_pair_of_types(Body body) {
  for_each_type(
      [&]<class T>(T token) { for_each_type([&]<class P>(P prob) { body(token, prob); }); });
}

}  // namespace npuless::moe_token_permute
