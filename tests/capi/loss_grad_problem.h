// A loss gradient small enough to be worked out by hand: N = 2 tokens, H = 1, V = 128 rows of the
// vocabulary on this rank. W is 0 except W[5] = 1, X = [1, 1], grad = [1, 1]; token 0 has target 5,
// token 1 a target elsewhere. With s = 1 + 127/e:
//   d[0][5] = 1/s - 1, d[1][5] = 1/s, d[n][v] = 1/(e s) for the other v
//   inputGrad[n] = d[n][5], weightGrad[v] = d[0][v] + d[1][v]
#ifndef NPULESS_TESTS_CAPI_LOSS_GRAD_PROBLEM_H_
#define NPULESS_TESTS_CAPI_LOSS_GRAD_PROBLEM_H_

#include <cmath>
#include <vector>

#include "aclnnop/aclnn_fused_linear_cross_entropy_loss_grad.h"
#include "client.h"

namespace client {

// One of the two 16-bit formats.
struct Half {
  aclDataType dtype;
  uint16_t one;     // bits of 1
  double roundoff;  // half the distance from 1 to the next number

  double value(uint16_t bits) const {
    if (dtype == ACL_FLOAT16) return static_cast<double>(aclFloat16ToFloat(bits));
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float number;
    std::memcpy(&number, &wide, sizeof(number));
    return static_cast<double>(number);
  }
};

const Half kBfloat16 = {ACL_BF16, 0x3F80, 1.0 / 256};
const Half kFloat16 = {ACL_FLOAT16, 0x3C00, 1.0 / 2048};

struct LossGradProblem {
  static const int64_t kTokens = 2, kVocab = 128, kTarget = 5;

  explicit LossGradProblem(const Half& half)
      : format(half),
        sum_exp(1.0 + 127.0 / std::exp(1.0)),
        grad({kTokens}, ACL_FLOAT, std::vector<float>(2, 1.0f)),
        input({kTokens, 1}, half.dtype, std::vector<uint16_t>(2, half.one)),
        weight({kVocab, 1}, half.dtype, weight_values()),
        mask({1}, ACL_UINT8, std::vector<uint8_t>(1, 0xFE)),
        target({kTokens}, ACL_INT64, std::vector<int64_t>{kTarget, 0}),
        logits_max({kTokens}, ACL_FLOAT, std::vector<float>(2, 1.0f)),
        sum_exp_logits({kTokens}, ACL_FLOAT, std::vector<float>(2, static_cast<float>(sum_exp))),
        softmax({kTokens, kVocab}, ACL_FLOAT, softmax_values()),
        input_grad({kTokens, 1}, half.dtype, std::vector<uint16_t>(2, 0xFFFF)),
        weight_grad({kVocab, 1}, half.dtype, std::vector<uint16_t>(128, 0xFFFF)) {}

  aclnnStatus plan(Planned* planned, bool with_softmax = false) {
    return aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
        grad.get(), input.get(), weight.get(), mask.get(), target.get(), 0.0f,
        with_softmax ? nullptr : logits_max.get(), with_softmax ? nullptr : sum_exp_logits.get(),
        with_softmax ? softmax.get() : nullptr, input_grad.get(), weight_grad.get(), &planned->size,
        &planned->executor);
  }

  // Two roundings to 16 bit, of each d and of the result; fp32 in between is exact beside them.
  void check_result() {
    const std::vector<uint16_t> dx = input_grad.read(), dw = weight_grad.read();
    const double hit = 1 / sum_exp, miss = 1 / (std::exp(1.0) * sum_exp);
    check_near(dx[0], hit - 1, 1 - hit);
    check_near(dx[1], hit, hit);
    for (int64_t v = 0; v < kVocab; ++v) {
      const uint16_t got = dw[static_cast<size_t>(v)];
      if (v == kTarget) {
        check_near(got, 2 * hit - 1, 1);
      } else {
        check_near(got, 2 * miss, 2 * miss);
      }
    }
  }

  Half format;
  double sum_exp;
  Tensor<float> grad;
  Tensor<uint16_t> input, weight;
  Tensor<uint8_t> mask;
  Tensor<int64_t> target;
  Tensor<float> logits_max, sum_exp_logits, softmax;
  Tensor<uint16_t> input_grad, weight_grad;

 private:
  void check_near(uint16_t bits, double expected, double magnitude) const {
    const double tolerance = format.roundoff * (magnitude + std::fabs(expected)) * 1.001;
    const double got = format.value(bits);
    if (std::fabs(got - expected) > tolerance) {
      std::printf("got %.9g, expected %.9g within %.3g\n", got, expected, tolerance);
    }
    CHECK(std::fabs(got - expected) <= tolerance);
  }

  std::vector<uint16_t> weight_values() const {
    std::vector<uint16_t> values(kVocab, 0);
    values[kTarget] = format.one;
    return values;
  }
  std::vector<float> softmax_values() const {
    const float miss = static_cast<float>(1 / (std::exp(1.0) * sum_exp));
    std::vector<float> values(kTokens * kVocab, miss);
    values[kTarget] = values[kVocab + kTarget] = static_cast<float>(1 / sum_exp);
    return values;
  }
};

}  // namespace client

#endif  // NPULESS_TESTS_CAPI_LOSS_GRAD_PROBLEM_H_
