// One call of the unpermute with a routing map and of its gradient, which takes the indices that
// the former put out.
#pragma once

#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map.h"
#include "aclnnop/aclnn_moe_token_unpermute_with_routing_map_grad.h"
#include "moe_token_permute/ref_unpermute_map.h"
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {

struct MapUnpermuteCall {
  int64_t tokens;
  int64_t experts;
  int64_t per_unit;  // rows for each token, padded: for each expert
  int64_t hidden;
  bool padded = false;
  bool probs = true;
  LayoutOf inputs = contiguous;
  LayoutOf outputs = contiguous;

  int64_t rows() const { return per_unit * (padded ? experts : tokens); }
};

inline std::string describe(const MapUnpermuteCall& c) {
  return std::to_string(c.tokens) + " tokens, " + std::to_string(c.experts) + " experts, " +
         std::to_string(c.rows()) + " rows, hidden " + std::to_string(c.hidden) +
         (c.padded ? ", padded" : "") + (c.probs ? ", probs" : "");
}

template <class T, class P>
class MapUnpermuteProblem {
 public:
  explicit MapUnpermuteProblem(const MapUnpermuteCall& call)
      : call_(call),
        permuted(kDType<T>, row_dims(), call.inputs(row_dims())),
        indices(DType::kInt32, {call.rows()}, call.inputs({call.rows()})),
        map(DType::kBool, map_dims(), call.inputs(map_dims())),
        probs(kDType<P>, map_dims(), call.inputs(map_dims())),
        grad(kDType<T>, token_dims(), call.inputs(token_dims())),
        out(kDType<T>, token_dims(), call.outputs(token_dims())),
        out_index(DType::kInt32, {call.rows()}, call.outputs({call.rows()})),
        token_id(DType::kInt32, {call.rows()}, call.outputs({call.rows()})),
        permute_probs(kDType<P>, {call.rows()}, call.outputs({call.rows()})),
        permuted_grad(kDType<T>, row_dims(), call.outputs(row_dims())),
        probs_grad(kDType<P>, map_dims(), call.outputs(map_dims())) {
    std::mt19937 random(777);
    for (int64_t i = 0; i < permuted.count(); ++i) permuted.at<T>(i) = any_number<T>(random);
    for (int64_t i = 0; i < grad.count(); ++i) grad.at<T>(i) = any_number<T>(random);
    for (int64_t i = 0; i < probs.count(); ++i) {
      probs.at<P>(i) = random() % 8 == 0 ? P{} : any_number<P>(random);
    }
    for (int64_t i = 0; i < map.count(); ++i) {
      map.at<unsigned char>(i) = random() % 3 == 0 ? static_cast<unsigned char>(random() % 7) : 0;
    }
    write_indices(random);
    compute_model();
  }

  const MapUnpermuteCall& call() const { return call_; }
  RefMapUnpermute ref() const {
    std::vector<bool> chosen;
    for (const unsigned char byte : map.read<unsigned char>()) chosen.push_back(byte != 0);
    return {call_.tokens, call_.experts, call_.hidden, call_.rows(),
            call_.padded, call_.probs,   chosen,       indices.read<int32_t>()};
  }

  // After inputs were changed.
  void compute_model() {
    const auto x = permuted.read<T>();
    const auto g = grad.read<T>();
    const auto p = probs.read<P>();
    model_out_ = model_map_unpermute(ref(), x, p);
    model_permuted_grad_ = model_map_permuted_grad(ref(), g, p);
    model_probs_grad_.clear();
    model_permute_probs_.clear();
    if (!call_.probs) return;
    model_probs_grad_ = model_map_probs_grad<T, P>(ref(), x, g);
    for (const int64_t prob : ref().prob_of_each()) {
      model_permute_probs_.push_back(prob < 0 ? P{} : p[static_cast<size_t>(prob)]);
    }
  }

  void poison_outputs() const {
    for (const TestTensor* tensor :
         {&out, &out_index, &token_id, &permute_probs, &permuted_grad, &probs_grad}) {
      tensor->poison();
    }
  }

  void run() const {
    const int64_t shape[] = {call_.tokens, call_.hidden};
    const aclIntArray* restore = aclCreateIntArray(shape, 2);
    Planned planned;
    launch(aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
               permuted.handle(), indices.handle(), given(map), given(probs), call_.padded, restore,
               out.handle(), out_index.handle(), token_id.handle(), given(permute_probs),
               &planned.workspace_size, &planned.executor),
           planned, &aclnnMoeTokenUnpermuteWithRoutingMap);
    aclDestroyIntArray(restore);
  }

  // After run(), whose indices it takes.
  void run_grad() const {
    Planned planned;
    launch(aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
               grad.handle(), out_index.handle(), token_id.handle(), given(map), given(permuted),
               given(probs), call_.padded, nullptr, permuted_grad.handle(), given(probs_grad),
               &planned.workspace_size, &planned.executor),
           planned, &aclnnMoeTokenUnpermuteWithRoutingMapGrad);
  }

  void expect_model(const std::string& what) const {
    EXPECT_TRUE(matches(out, model_out_, true)) << what << ": out";
    EXPECT_TRUE(matches(permute_probs, model_permute_probs_, false)) << what << ": probs";
    EXPECT_TRUE(matches(permuted_grad, model_permuted_grad_, call_.probs))
        << what << ": permuted grad";
    EXPECT_TRUE(matches(probs_grad, model_probs_grad_, true)) << what << ": probs grad";
    expect_indices(what);
  }

 private:
  // Index mode: rows in any order. Padded mode: tokens. Both with some that select nothing.
  void write_indices(std::mt19937& random) const {
    auto values = any_indices(call_.rows(), random);
    for (int32_t& value : values) {
      if (call_.padded && value >= 0 && random() % 8 != 0) {
        value = static_cast<int32_t>(value % call_.tokens);
      }
    }
    indices.write(values);
  }

  // Padded mode: the stable order of the tokens, and the tokens in it.
  void expect_indices(const std::string& what) const {
    const auto values = indices.read<int32_t>();
    std::vector<int32_t> order(values.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return call_.padded && values[static_cast<size_t>(a)] < values[static_cast<size_t>(b)];
    });
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t sorted = values[static_cast<size_t>(order[i])];
      const auto at = static_cast<int64_t>(i);
      ASSERT_EQ(out_index.at<int32_t>(at), call_.padded ? order[i] : sorted) << what;
      ASSERT_EQ(token_id.at<int32_t>(at), call_.padded ? sorted : at / call_.per_unit) << what;
    }
  }

  std::vector<int64_t> row_dims() const { return {call_.rows(), call_.hidden}; }
  std::vector<int64_t> token_dims() const { return {call_.tokens, call_.hidden}; }
  std::vector<int64_t> map_dims() const { return {call_.tokens, call_.experts}; }
  aclTensor* given(const TestTensor& tensor) const {
    return call_.probs ? tensor.handle() : nullptr;
  }

  MapUnpermuteCall call_;
  std::vector<T> model_out_;
  std::vector<T> model_permuted_grad_;
  std::vector<P> model_probs_grad_;
  std::vector<P> model_permute_probs_;

 public:
  TestTensor permuted;
  TestTensor indices;
  TestTensor map;
  TestTensor probs;
  TestTensor grad;
  TestTensor out;
  TestTensor out_index;
  TestTensor token_id;
  TestTensor permute_probs;
  TestTensor permuted_grad;
  TestTensor probs_grad;
};

// The pairs that the pages allow.
template <class Body>
void for_each_map_types(Body body) {
  body(float{}, float{});
  body(f16{}, f16{});
  body(bf16{}, bf16{});
  body(bf16{}, float{});
}

}  // namespace npuless::moe_token_permute
