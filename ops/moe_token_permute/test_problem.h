// One call of a permute gradient with its data, and the ways to run and judge it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "base/parallel.h"
#include "isa/level.h"
#include "moe_token_permute/cases.h"
#include "moe_token_permute/permute_grad_check.h"
#include "moe_token_permute/ref.h"
#include "moe_token_permute/test_tensor.h"

namespace npuless::moe_token_permute {

struct Range {
  int64_t begin;
  int64_t end;
};

// Names a layout for one tensor of a problem, given its dims.
using LayoutOf = Layout (*)(const std::vector<int64_t>& dims);

struct Call {
  explicit Call(const Case& c) : shape(c) {}

  Case shape;
  std::optional<Range> range;  // given: aclnnMoeTokenPermuteWithEpGrad
  bool probs = false;
  int64_t extra_rows = 0;  // beyond those the range selects
  LayoutOf inputs = contiguous;
  LayoutOf outputs = contiguous;
};

// Bits of every kind: ordinary numbers, zeros of both signs, subnormals, the largest ones,
// infinities, NaN. One element in eight is special.
template <class T>
T any_number(std::mt19937& random) {
  static constexpr float kSpecial[] = {-0.0f,    0.0f,      1e-40f,   -1e-42f,   6e-8f,   3e38f,
                                       -3.3e38f, 65504.f,   -65504.f, 65520.f,   1.f,     0x1p-9f,
                                       INFINITY, -INFINITY, NAN,      0x1p-126f, 6.1e-5f, -1.f};
  const uint32_t bits = static_cast<uint32_t>(random());
  const float ordinary = (static_cast<float>(bits >> 8) - 0x1p23f) * 0x1p-21f;
  return narrow<T>(bits % 8 == 0 ? kSpecial[bits / 8 % std::size(kSpecial)] : ordinary);
}

// A permutation of the slots in which some slots are negative, huge, repeated or a float's bits.
inline std::vector<int32_t> any_indices(int64_t slots, std::mt19937& random) {
  std::vector<int32_t> indices(static_cast<size_t>(slots));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  std::shuffle(indices.begin(), indices.end(), random);
  const int32_t wrong[] = {-1, INT32_MIN, INT32_MAX, 1065353216, static_cast<int32_t>(slots), 0};
  for (int32_t& index : indices) {
    if (random() % 5 == 0) index = wrong[random() % std::size(wrong)];
  }
  return indices;
}

// Compares and then rubs the elements out: what remains must be poison. No values: untouched.
template <class T>
testing::AssertionResult matches(const TestTensor& tensor, const std::vector<T>& expected,
                                 bool any_nan) {
  for (size_t i = 0; i < expected.size(); ++i) {
    T& got = tensor.at<T>(static_cast<int64_t>(i));
    const bool both_nan = any_nan && std::isnan(widen(got)) && std::isnan(widen(expected[i]));
    if (!both_nan && std::memcmp(&got, &expected[i], sizeof(T)) != 0) {
      return testing::AssertionFailure()
             << "element " << i << " is " << widen(got) << ", not " << widen(expected[i]);
    }
    std::memset(&got, 0xFF, sizeof(T));
  }
  for (const unsigned char byte : tensor.bytes()) {
    if (byte != 0xFF) return testing::AssertionFailure() << "a byte between elements changed";
  }
  return testing::AssertionSuccess();
}

template <class T>
class Problem {
 public:
  explicit Problem(const Call& call)
      : call_(call),
        grad(kDType<T>, {rows(), call.shape.hidden}, call.inputs({rows(), call.shape.hidden})),
        indices(DType::kInt32, {slots()}, call.inputs({slots()})),
        probs_grad(kDType<T>, {rows()}, call.inputs({rows()})),
        token_grad(kDType<T>, {call.shape.tokens, call.shape.hidden},
                   call.outputs({call.shape.tokens, call.shape.hidden})),
        probs_out(kDType<T>, {call.shape.tokens, call.shape.topk},
                  call.outputs({call.shape.tokens, call.shape.topk})) {
    std::mt19937 random(12345);
    for (int64_t i = 0; i < grad.count(); ++i) grad.at<T>(i) = any_number<T>(random);
    for (int64_t i = 0; i < probs_grad.count(); ++i) probs_grad.at<T>(i) = any_number<T>(random);
    indices.write(any_indices(slots(), random));
    if (call.range) {
      const int64_t ends[] = {call.range->begin, call.range->end};
      range_.reset(aclCreateIntArray(ends, 2));
    }
    compute_model();
    inputs_before_ = inputs();
  }

  RefShape ref_shape() const {
    const Range range = call_.range.value_or(Range{0, rows()});
    return {call_.shape.tokens, call_.shape.topk, call_.shape.hidden, range.begin, range.end};
  }
  int64_t slots() const { return call_.shape.tokens * call_.shape.topk; }
  int64_t rows() const {
    const int64_t selected = call_.range ? call_.range->end - call_.range->begin : slots();
    return selected + call_.extra_rows;
  }
  const Call& call() const { return call_; }
  const aclIntArray* range() const { return range_.get(); }
  const aclTensor* given_probs() const { return call_.probs ? probs_grad.handle() : nullptr; }

  // Checks and plans with the current ISA level and threads, without the tensor runtime.
  PermuteGradPlan plan() const {
    PermuteGradPlan plan{};
    const Status status = call_.range ? plan_ep(plan) : plan_base(plan);
    EXPECT_EQ(status.code(), 0);
    return plan;
  }

  void poison_outputs() const {
    token_grad.poison();
    probs_out.poison();
  }

  // Every output element has the model's bits, no other byte changed, nor did an input.
  void expect_model(const std::string& what) const {
    EXPECT_TRUE(matches(token_grad, model_tokens_, true)) << what << ": token gradient";
    EXPECT_TRUE(matches(probs_out, model_probs_, false)) << what << ": probs gradient";
    EXPECT_TRUE(inputs() == inputs_before_) << what << ": an input changed";
  }

 private:
  struct DestroyRange {
    void operator()(const aclIntArray* range) const { aclDestroyIntArray(range); }
  };

  void compute_model() {
    const auto slots = indices.template read<int32_t>();
    model_tokens_ = model_token_grad(ref_shape(), grad.template read<T>(), slots);
    if (!call_.probs) return;
    model_probs_ = model_probs_grad(ref_shape(), probs_grad.template read<T>(), slots);
  }

  std::vector<std::vector<unsigned char>> inputs() const {
    return {grad.bytes(), indices.bytes(), probs_grad.bytes()};
  }

  Status plan_base(PermuteGradPlan& plan) const {
    const PermuteGradTensors tensors{grad.handle(), indices.handle(), call_.shape.topk, false,
                                     token_grad.handle()};
    NPULESS_TRY(check_permute_grad(tensors));
    return plan_permute_grad(unpack_permute_grad(tensors), plan);
  }

  Status plan_ep(PermuteGradPlan& plan) const {
    const PermuteWithEpGradTensors tensors{grad.handle(),       indices.handle(),  given_probs(),
                                           call_.shape.topk,    range(),           false,
                                           token_grad.handle(), probs_out.handle()};
    NPULESS_TRY(check_permute_with_ep_grad(tensors));
    return plan_permute_grad(unpack_permute_with_ep_grad(tensors), plan);
  }

  Call call_;
  std::unique_ptr<const aclIntArray, DestroyRange> range_;
  std::vector<T> model_tokens_;
  std::vector<T> model_probs_;
  std::vector<std::vector<unsigned char>> inputs_before_;

 public:
  TestTensor grad;
  TestTensor indices;
  TestTensor probs_grad;
  TestTensor token_grad;
  TestTensor probs_out;
};

template <class Body>
void for_each_type(Body body) {
  body(float{});
  body(f16{});
  body(bf16{});
}

template <class Body>
void for_each_level(Body body) {
  isa::Level before{};
  ASSERT_TRUE(isa::active_level(before).ok());
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    ASSERT_TRUE(isa::set_level(level).ok());
    body(isa::level_name(level));
  }
  ASSERT_TRUE(isa::set_level(before).ok());
}

}  // namespace npuless::moe_token_permute
