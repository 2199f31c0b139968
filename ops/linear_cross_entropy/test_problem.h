// One gradient call: tensors with adversarial data, the same numbers in double for the reference,
// and a run through the public two-phase API.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "linear_cross_entropy/cases.h"
#include "linear_cross_entropy/ref.h"
#include "linear_cross_entropy/test_tensor.h"

namespace npuless::linear_cross_entropy {

using npuless::testing::TestTensor;

struct Options {
  DType dtype = DType::kBfloat16;
  bool softmax_mode = false;
  bool bool_mask = false;
  bool wide_index = false;
  bool spread = false;  // strides and offsets on every tensor
};

class Problem {
 public:
  Problem(const Case& c, const Options& o)
      : shape(c),
        options(o),
        grad(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        input(TestTensor::make(o.dtype, {c.tokens, c.hidden}, o.spread)),
        weight(TestTensor::make(o.dtype, {c.vocab, c.hidden}, o.spread)),
        mask(o.bool_mask ? TestTensor::make(DType::kBool, {c.tokens}, o.spread)
                         : TestTensor::make(DType::kUint8, {(c.tokens + 7) / 8}, o.spread)),
        target(
            TestTensor::make(o.wide_index ? DType::kInt64 : DType::kInt32, {c.tokens}, o.spread)),
        max(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        sum(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        softmax(
            TestTensor::make(DType::kFloat32, {o.softmax_mode ? c.tokens : 1, c.vocab}, o.spread)),
        input_grad(TestTensor::make(o.dtype, {c.tokens, c.hidden}, o.spread)),
        weight_grad(TestTensor::make(o.dtype, {c.vocab, c.hidden}, o.spread)) {
    fill_operands();
    fill_tokens();
    derive();
  }

  // max, sum and softmax from the operands as they are now. The other shards hold a larger logit
  // and some more of the sum, so local maxima are not the global ones.
  void derive() {
    for (int64_t n = 0; n < shape.tokens; ++n) {
      std::vector<double> z(static_cast<size_t>(shape.vocab));
      double top = -INFINITY;
      for (int64_t v = 0; v < shape.vocab; ++v) {
        for (int64_t h = 0; h < shape.hidden; ++h) {
          z[static_cast<size_t>(v)] += input.get(n, h) * weight.get(v, h);
        }
        top = std::max(top, z[static_cast<size_t>(v)]);
      }
      const double stored_max = max.put(n, 0, top + (n % 3 == 0 ? 0.25 : 0.0));
      double total = n % 3 == 0 ? 1.5 : 0.0;
      for (const double value : z) total += std::exp(value - stored_max);
      const double stored_sum = sum.put(n, 0, total);
      if (!options.softmax_mode) continue;
      for (int64_t v = 0; v < shape.vocab; ++v) {
        softmax.put(n, v, std::exp(z[static_cast<size_t>(v)] - stored_max) / stored_sum);
      }
    }
  }

  ref::GradInputs reference_inputs() {
    ref::GradInputs in{shape.tokens, shape.hidden, shape.vocab, {}, {}, {}, {}, {}, {}, {}};
    for (int64_t n = 0; n < shape.tokens; ++n) {
      in.grad.push_back(grad.get(n));
      in.target.push_back(is_masked(n) ? -1 : static_cast<int64_t>(target.get(n)));
      in.max.push_back(max.get(n));
      in.sum.push_back(sum.get(n));
      for (int64_t h = 0; h < shape.hidden; ++h) in.input.push_back(input.get(n, h));
      for (int64_t v = 0; options.softmax_mode && v < shape.vocab; ++v) {
        in.softmax.push_back(softmax.get(n, v));
      }
    }
    for (int64_t v = 0; v < shape.vocab; ++v) {
      for (int64_t h = 0; h < shape.hidden; ++h) in.weight.push_back(weight.get(v, h));
    }
    return in;
  }

  ref::Precision precision() const {
    if (options.dtype == DType::kBfloat16) {
      return {std::ldexp(1.0, -24), std::ldexp(1.0, -8), std::ldexp(1.0, -8), 1e-37};
    }
    return {std::ldexp(1.0, -24), std::ldexp(1.0, -24), std::ldexp(1.0, -11), std::ldexp(1.0, -25)};
  }

  bool is_masked(int64_t n) {
    if (options.bool_mask) return mask.at<uint8_t>(n) != 0;
    return (mask.at<uint8_t>(n / 8) >> (n % 8) & 1) != 0;
  }
  void set_masked(int64_t n, bool on) {
    if (options.bool_mask) {
      mask.at<uint8_t>(n) = on ? 1 : 0;
      return;
    }
    uint8_t& byte = mask.at<uint8_t>(n / 8);
    byte = static_cast<uint8_t>((byte & ~(1u << (n % 8))) | (on ? 1u << (n % 8) : 0u));
  }

  // Phase 1 and 2 on a fresh stream, outputs and an exactly sized workspace full of NaN first.
  void run() {
    input_grad.poison();
    weight_grad.poison();
    const std::vector<std::vector<unsigned char>> before = inputs();
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    Handles handles(*this);
    ASSERT_EQ(handles.phase1(&bytes, &executor), 0) << aclGetRecentErrMsg();
    workspace_bytes = bytes;
    std::unique_ptr<unsigned char[]> workspace(new unsigned char[bytes]);
    std::memset(workspace.get(), 0xFF, bytes);
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtSetDevice(0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
    ASSERT_EQ(aclnnFusedLinearCrossEntropyLossGrad(workspace.get(), bytes, executor, stream), 0);
    ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
    ASSERT_EQ(aclrtDestroyStream(stream), 0);
    ASSERT_EQ(aclrtResetDevice(0), 0);
    ASSERT_EQ(inputs(), before) << "an input was written";
  }

  void expect_close() {
    const ref::GradOutputs want = ref::grad(reference_inputs(), precision());
    expect_close("inputGradOut", input_grad, want.input_grad, want.input_bound);
    expect_close("weightGradOut", weight_grad, want.weight_grad, want.weight_bound);
  }

  static void expect_close(const char* name, TestTensor& got, const std::vector<double>& want,
                           const std::vector<double>& bound) {
    const int64_t cols = got.dim(1);
    for (int64_t i = 0; i < got.dim(0) * cols; ++i) {
      const auto at = static_cast<size_t>(i);
      const double value = got.get(i / cols, i % cols);
      ASSERT_LE(std::fabs(value - want[at]), bound[at])
          << name << "[" << i / cols << ", " << i % cols << "] is " << value << ", should be "
          << want[at];
    }
  }

  // The aclTensors of the call, destroyed with it.
  struct Handles {
    explicit Handles(Problem& p) {
      for (TestTensor* tensor : {&p.grad, &p.input, &p.weight, &p.mask, &p.target, &p.max, &p.sum,
                                 &p.softmax, &p.input_grad, &p.weight_grad}) {
        all.push_back(tensor->create());
      }
      given = all;
      if (!p.options.softmax_mode) given[7] = nullptr;
    }
    ~Handles() {
      for (aclTensor* tensor : all) aclDestroyTensor(tensor);
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    aclnnStatus phase1(uint64_t* bytes, aclOpExecutor** executor) const {
      return aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
          given[0], given[1], given[2], given[3], given[4], label_smoothing, given[5], given[6],
          given[7], given[8], given[9], bytes, executor);
    }

    std::vector<aclTensor*> all, given;  // given: what the call passes, in prototype order
    float label_smoothing = 0;
  };

  Case shape;
  Options options;
  TestTensor grad, input, weight, mask, target, max, sum, softmax, input_grad, weight_grad;
  uint64_t workspace_bytes = 0;

 private:
  std::vector<std::vector<unsigned char>> inputs() const {
    return {grad.bytes(),   input.bytes(), weight.bytes(), mask.bytes(),
            target.bytes(), max.bytes(),   sum.bytes(),    softmax.bytes()};
  }

  // Logits of a few units, with every fifth vocabulary row spiked so that some probabilities are
  // near 1 and most near 0.
  void fill_operands() {
    std::mt19937 random(static_cast<unsigned>(shape.tokens * 31 + shape.hidden * 7 + shape.vocab));
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    const double scale = 2.0 / std::sqrt(static_cast<double>(shape.hidden));
    for (int64_t n = 0; n < shape.tokens; ++n) {
      for (int64_t h = 0; h < shape.hidden; ++h) input.put(n, h, uniform(random));
    }
    for (int64_t v = 0; v < shape.vocab; ++v) {
      const double row = scale * (v % 5 == 0 ? 6.0 : 1.0);
      for (int64_t h = 0; h < shape.hidden; ++h) weight.put(v, h, row * uniform(random));
    }
  }

  // Grads of both signs, some 0, from 1/N up; a third of the targets are elsewhere; the bits past
  // the last token are ones.
  void fill_tokens() {
    mask.poison();
    for (int64_t n = 0; n < shape.tokens; ++n) {
      const double sign = n % 2 == 0 ? 1.0 : -1.0;
      grad.put(n, 0, n % 7 == 3 ? 0.0 : sign * (1.0 + static_cast<double>(n % 5)) / 37.0);
      target.put(
          n, 0,
          static_cast<double>((n * 61 + shape.vocab - 1) % std::max<int64_t>(shape.vocab, 1)));
      set_masked(n, n % 3 == 2);
    }
  }
};

}  // namespace npuless::linear_cross_entropy
