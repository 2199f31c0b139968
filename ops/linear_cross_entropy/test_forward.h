// One forward call over a shard and the numbers behind it: tensors, the double-precision reference
// with its bounds, and a run through the public API.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "linear_cross_entropy/cases.h"
#include "linear_cross_entropy/test_tensor.h"

namespace npuless::linear_cross_entropy {

using npuless::testing::TestTensor;

// Phase 2 on a fresh stream with an exactly sized workspace full of NaN.
using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);
inline void run_to_the_end(Phase2 phase2, uint64_t bytes, aclOpExecutor* executor) {
  std::unique_ptr<unsigned char[]> workspace(new unsigned char[bytes + 1]);
  std::memset(workspace.get(), 0xFF, bytes);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtSetDevice(0), 0);
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  ASSERT_EQ(phase2(bytes == 0 ? nullptr : workspace.get(), bytes, executor, stream), 0)
      << aclGetRecentErrMsg();
  ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
  ASSERT_EQ(aclrtDestroyStream(stream), 0);
  ASSERT_EQ(aclrtResetDevice(0), 0);
}

struct ForwardOptions {
  DType dtype = DType::kBfloat16;
  bool wide_index = false;
  bool spread = false;  // strides and offsets on every tensor
  bool with_logits = false;
};

// Ids of the whole vocabulary; this shard owns [start, start + V).
class ForwardProblem {
 public:
  ForwardProblem(const Case& c, const ForwardOptions& o, int64_t first_id = 1000)
      : shape(c),
        options(o),
        start(first_id),
        end(first_id + c.vocab),
        input(TestTensor::make(o.dtype, {c.tokens, c.hidden}, o.spread)),
        weight(TestTensor::make(o.dtype, {c.vocab, c.hidden}, o.spread)),
        target(TestTensor::make(index_type(o), {c.tokens}, o.spread)),
        max(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        sum(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        predicted(TestTensor::make(DType::kFloat32, {c.tokens}, o.spread)),
        mask(TestTensor::make(DType::kUint8, {(c.tokens + 7) / 8}, o.spread)),
        masked_target(TestTensor::make(index_type(o), {c.tokens}, o.spread)),
        logits(TestTensor::make(o.dtype, {o.with_logits ? c.tokens : 0, c.vocab}, o.spread)) {
    fill();
  }

  static DType index_type(const ForwardOptions& o) {
    return o.wide_index ? DType::kInt64 : DType::kInt32;
  }

  bool owned(int64_t n) {
    return target.get(n) >= static_cast<double>(start) && target.get(n) < static_cast<double>(end);
  }
  bool mask_bit(int64_t n) { return (mask.at<uint8_t>(n / 8) >> (n % 8) & 1) != 0; }

  struct Handles {
    explicit Handles(ForwardProblem& p) : problem(p) {
      for (TestTensor* tensor : {&p.input, &p.weight, &p.target, &p.max, &p.sum, &p.predicted,
                                 &p.mask, &p.masked_target, &p.logits}) {
        all.push_back(tensor->create());
      }
      given = all;
      if (!p.options.with_logits) given[8] = nullptr;
    }
    ~Handles() {
      for (aclTensor* tensor : all) aclDestroyTensor(tensor);
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;

    aclnnStatus phase1(uint64_t* bytes, aclOpExecutor** executor) const {
      return aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
          given[0], given[1], given[2], problem.start, problem.end, given[3], given[4], given[5],
          given[6], given[7], given[8], bytes, executor);
    }

    ForwardProblem& problem;
    std::vector<aclTensor*> all, given;
  };

  void run() {
    for (TestTensor* out : outputs()) out->poison();
    const auto before = std::vector{input.bytes(), weight.bytes(), target.bytes()};
    const Handles handles(*this);
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(handles.phase1(&workspace_bytes, &executor), 0) << aclGetRecentErrMsg();
    run_to_the_end(&aclnnFusedLinearOnlineMaxSum, workspace_bytes, executor);
    ASSERT_EQ((std::vector{input.bytes(), weight.bytes(), target.bytes()}), before);
  }

  std::vector<TestTensor*> outputs() {
    return {&max, &sum, &predicted, &mask, &masked_target, &logits};
  }

  void expect_close() {
    for (int64_t n = 0; n < shape.tokens; ++n) expect_token(n);
    for (int64_t n = shape.tokens; n < 8 * mask.dim(0); ++n) ASSERT_TRUE(mask_bit(n));
  }

  struct Logit {
    double value, bound;
  };
  // z and a bound on an fp32 sum's error: H products and additions, each half a unit.
  Logit logit(int64_t n, int64_t v) {
    Logit z{0, 0};
    for (int64_t h = 0; h < shape.hidden; ++h) {
      const double term = input.get(n, h) * weight.get(v, h);
      z.value += term;
      z.bound += std::fabs(term);
    }
    z.bound *= static_cast<double>(shape.hidden) * 0x1p-24;
    return z;
  }

  Case shape;
  ForwardOptions options;
  int64_t start, end;
  TestTensor input, weight, target, max, sum, predicted, mask, masked_target, logits;
  uint64_t workspace_bytes = 0;

 private:
  void expect_token(int64_t n) {
    std::vector<Logit> z;
    double top = -INFINITY;
    double error = 0;
    for (int64_t v = 0; v < shape.vocab; ++v) {
      z.push_back(logit(n, v));
      top = std::fmax(top, z.back().value);
      error = std::fmax(error, z.back().bound);
      if (options.with_logits) expect_logit(n, v, z.back());
    }
    double total = 0;
    for (const Logit& l : z) total += std::exp(l.value - top);
    ASSERT_LE(std::fabs(max.get(n) - top), error) << "max of token " << n;
    // Each exponent is off by two logits' errors and one rounding; a sum of V terms by V units.
    const double relative =
        2 * error + 0x1p-24 * (std::fabs(top) + static_cast<double>(shape.vocab)) + 0x1p-20;
    ASSERT_LE(std::fabs(sum.get(n) - total), total * std::expm1(relative)) << "sum of token " << n;
    ASSERT_EQ(mask_bit(n), !owned(n)) << n;
    const double row = target.get(n) - static_cast<double>(start);
    ASSERT_EQ(masked_target.get(n), owned(n) ? row : 0.0);
    const double want = owned(n) ? z[static_cast<size_t>(row)].value - top : 0.0;
    ASSERT_LE(std::fabs(predicted.get(n) - want), 2 * error + 0x1p-23 * std::fabs(want));
  }

  void expect_logit(int64_t n, int64_t v, const Logit& z) {
    const bool bfloat16 = options.dtype == DType::kBfloat16;
    const double rounding = (bfloat16 ? 0x1p-8 : 0x1p-11) * std::fabs(z.value);
    ASSERT_LE(std::fabs(logits.get(n, v) - z.value),
              2 * z.bound + rounding + (bfloat16 ? 1e-37 : 0x1p-25))
        << "logit " << n << ", " << v;
  }

  // Every fifth row of W is spiked. Targets: both ends of the range, just outside, far away.
  void fill() {
    std::mt19937 random(static_cast<unsigned>(shape.tokens * 31 + shape.hidden * 7 + shape.vocab));
    std::uniform_real_distribution<double> uniform(-1.0, 1.0);
    const double scale = 2.0 / std::sqrt(static_cast<double>(std::max<int64_t>(shape.hidden, 1)));
    for (int64_t n = 0; n < shape.tokens; ++n) {
      for (int64_t h = 0; h < shape.hidden; ++h) input.put(n, h, uniform(random));
      const int64_t ids[] = {start, end - 1, end, start - 1, start + n * 61 % shape.vocab,
                             -100,  1 << 30};
      target.put(n, 0, static_cast<double>(ids[n % 7]));
    }
    for (int64_t v = 0; v < shape.vocab; ++v) {
      const double row = scale * (v % 5 == 0 ? 6.0 : 1.0);
      for (int64_t h = 0; h < shape.hidden; ++h) weight.put(v, h, row * uniform(random));
    }
  }
};

}  // namespace npuless::linear_cross_entropy
