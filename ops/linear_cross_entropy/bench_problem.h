// A loss problem in device memory for the benches: every tensor of the three operators, and what
// their results must be.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>

#include "aclnnop/aclnn_fused_cross_entropy_loss_with_max_sum.h"
#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "aclnnop/aclnn_fused_linear_online_max_sum.h"
#include "device.h"
#include "linear_cross_entropy/cases.h"

namespace npuless::linear_cross_entropy {

// T: bf16 or f16. Without `with_softmax` nothing is as large as tokens × vocab. All memory is
// touched, so that what a run adds is its own.
template <class T>
struct BenchProblem {
  using Floats = bench::DeviceTensor<float>;

  BenchProblem(const Case& shape, bool with_softmax)
      : c(shape),
        input({c.tokens, c.hidden}),
        weight({c.vocab, c.hidden}),
        target({c.tokens}),
        masked_target({c.tokens}),
        mask({(c.tokens + 7) / 8 * 8}),
        max({c.tokens}),
        sum({c.tokens}),
        predicted({c.tokens}),
        loss({c.tokens}),
        grad({c.tokens}),
        input_grad({c.tokens, c.hidden}),
        weight_grad({c.vocab, c.hidden}) {
    fill(input, 2.0f);
    fill(weight, 0.1f, 2);
    std::memset(input_grad.data(), 0xFF, static_cast<size_t>(input_grad.bytes()));
    std::memset(weight_grad.data(), 0xFF, static_cast<size_t>(weight_grad.bytes()));
    for (int64_t i = 0; i < c.tokens; ++i) {
      target.data()[i] = static_cast<int32_t>(i * 7919 % c.vocab);
      grad.data()[i] = 1.0f / static_cast<float>(c.tokens);
    }
    if (!with_softmax) return;
    logits.reset(new bench::DeviceTensor<T>({c.tokens, c.vocab}));
    softmax.reset(new Floats({c.tokens, c.vocab}));
    std::memset(logits->data(), 0xFF, static_cast<size_t>(logits->bytes()));
    std::memset(softmax->data(), 0xFF, static_cast<size_t>(softmax->bytes()));
  }

  void plan_max_sum(bench::Launcher& launcher) {
    bench::must(aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
        input.handle(), weight.handle(), target.handle(), 0, c.vocab, max.handle(), sum.handle(),
        predicted.handle(), mask_bits(), masked_target.handle(),
        logits == nullptr ? nullptr : logits->handle(), &launcher.workspace_size,
        &launcher.executor));
    launcher.prepare();
  }
  void plan_loss(bench::Launcher& launcher) {
    bench::must(aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
        max.handle(), sum.handle(), predicted.handle(), 0.0f, nullptr, nullptr,
        logits == nullptr ? nullptr : logits->handle(), loss.handle(),
        softmax == nullptr ? nullptr : softmax->handle(), &launcher.workspace_size,
        &launcher.executor));
    launcher.prepare();
  }
  void plan_grad(bench::Launcher& launcher) {
    bench::must(aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
        grad.handle(), input.handle(), weight.handle(), mask_bits(), masked_target.handle(), 0.0f,
        max.handle(), sum.handle(), softmax == nullptr ? nullptr : softmax->handle(),
        input_grad.handle(), weight_grad.handle(), &launcher.workspace_size, &launcher.executor));
    launcher.prepare();
  }

  aclTensor* mask_bits() {
    if (mask_handle == nullptr) {
      const int64_t bytes = (c.tokens + 7) / 8;
      mask_handle.reset(
          aclCreateTensor(&bytes, 1, ACL_UINT8, nullptr, 0, ACL_FORMAT_ND, &bytes, 1, mask.data()));
    }
    return mask_handle.get();
  }

  // --- what must come out, in double ------------------------------------------------------------

  double logit(int64_t token, int64_t v) const {
    double z = 0;
    for (int64_t h = 0; h < c.hidden; ++h) {
      z += static_cast<double>(widen(input.data()[token * c.hidden + h])) *
           static_cast<double>(widen(weight.data()[v * c.hidden + h]));
    }
    return z;
  }

  // One token's maximum and sum, to what fp32 sums of these lengths allow.
  bool max_sum_right() const {
    const int64_t token = c.tokens / 2;
    std::vector<double> z;
    double top = -1e300, total = 0;
    for (int64_t v = 0; v < c.vocab; ++v) {
      z.push_back(logit(token, v));
      top = std::fmax(top, z.back());
    }
    for (const double value : z) total += std::exp(value - top);
    const auto close = [](float got, double want) {
      return std::fabs(static_cast<double>(got) - want) <= 1e-4 * std::fmax(1, std::fabs(want));
    };
    return close(max.data()[token], top) && close(sum.data()[token], total) &&
           close(predicted.data()[token], z[static_cast<size_t>(target.data()[token])] - top);
  }

  bool loss_right() const {
    const int64_t i = c.tokens / 2;
    const double want =
        std::log(static_cast<double>(sum.data()[i])) - static_cast<double>(predicted.data()[i]);
    return std::fabs(static_cast<double>(loss.data()[i]) - want) < 1e-4;
  }

  double grad_logit(int64_t token, int64_t v) const {
    const double p = std::exp(logit(token, v) - static_cast<double>(max.data()[token])) /
                     static_cast<double>(sum.data()[token]);
    const double own = target.data()[token] == v ? 1.0 : 0.0;
    return (p - own) * static_cast<double>(grad.data()[token]);
  }

  // Eight columns of one token's inputGrad and of one row of weightGrad, to 2 % of the largest:
  // enough to tell a result from garbage; the tests hold the tight bounds.
  bool grad_right() const {
    const int64_t token = c.tokens / 2;
    const int64_t row = target.data()[token];
    double input_want[kColumns] = {}, weight_want[kColumns] = {};
    for (int64_t v = 0; v < c.vocab; ++v) {
      add_row(input_want, grad_logit(token, v), weight, v);
    }
    for (int64_t n = 0; n < c.tokens; ++n) add_row(weight_want, grad_logit(n, row), input, n);
    return close_row(input_grad, token, input_want) && close_row(weight_grad, row, weight_want);
  }

  static constexpr int kColumns = 8;

  void add_row(double* sums, double factor, const bench::DeviceTensor<T>& rows, int64_t row) const {
    for (int h = 0; h < kColumns; ++h) {
      sums[h] += factor * static_cast<double>(widen(rows.data()[row * c.hidden + h]));
    }
  }
  bool close_row(const bench::DeviceTensor<T>& rows, int64_t row, const double* want) const {
    double worst = 0, largest = 1e-30;
    for (int h = 0; h < kColumns; ++h) {
      const double got = static_cast<double>(widen(rows.data()[row * c.hidden + h]));
      worst = std::fmax(worst, std::fabs(got - want[h]));
      largest = std::fmax(largest, std::fabs(want[h]));
    }
    return worst < 0.02 * largest;  // false where there is a NaN
  }

  struct Destroy {
    void operator()(aclTensor* tensor) const { aclDestroyTensor(tensor); }
  };

  Case c;
  bench::DeviceTensor<T> input, weight;
  bench::DeviceTensor<int32_t> target, masked_target;
  bench::DeviceTensor<float> mask;  // its first bytes
  Floats max, sum, predicted, loss, grad;
  bench::DeviceTensor<T> input_grad, weight_grad;
  std::unique_ptr<bench::DeviceTensor<T>> logits;
  std::unique_ptr<Floats> softmax;
  std::unique_ptr<aclTensor, Destroy> mask_handle;
};

}  // namespace npuless::linear_cross_entropy
