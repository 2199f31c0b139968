#include "linear_cross_entropy/grad_tokens.h"

#include <cmath>
#include <limits>

namespace npuless::linear_cross_entropy {
namespace {

bool masked(const Vector& mask, int64_t token) {
  if (mask.dtype == DType::kBool) return at<uint8_t>(mask, token) != 0;
  return (at<uint8_t>(mask, token / 8) >> (token % 8) & 1) != 0;
}

int64_t target_of(const GradArgs& args, int64_t token) {
  if (masked(args.target_mask, token)) return kNoTarget;
  const bool wide = args.masked_target.dtype == DType::kInt64;
  const int64_t id =
      wide ? at<int64_t>(args.masked_target, token) : at<int32_t>(args.masked_target, token);
  return id >= 0 && id < args.weight.rows ? id : kNoTarget;
}

// The power of two of a finite non-zero grad; 1 for 0, infinities and NaN.
float power_of(float grad) {
  if (grad == 0.0f || !std::isfinite(grad)) return 1.0f;
  return std::ldexp(1.0f, std::ilogb(grad));
}

float significand_of(float grad) {
  if (grad == 0.0f || !std::isfinite(grad)) return grad;
  return std::ldexp(grad, -std::ilogb(grad));
}

// A power ratio too small for fp32 must not become 0, which would mask the token.
float ratio(float grad, float power, float largest) {
  if (grad == 0.0f) return 0.0f;
  const float quotient = power / largest;
  return quotient > 0.0f ? quotient : std::numeric_limits<float>::denorm_min();
}

TokenRow token_row(const GradArgs& args, int64_t token) {
  TokenRow row{};
  row.grad = significand_of(at<float>(args.grad, token));
  if (args.has_softmax) return row;
  row.max = at<float>(args.logits_max, token);
  row.sum = at<float>(args.sum_exp, token);
  row.inverse = 1.0f / row.sum;
  row.divide = !std::isnormal(row.sum) || !std::isnormal(row.inverse);
  return row;
}

}  // namespace

float fill_token_tables(const GradPlan& plan, void* workspace) {
  const GradArgs& args = plan.args;
  TokenRow* tokens = plan.tokens.in(workspace);
  int64_t* targets = plan.targets.in(workspace);
  float* power = plan.grad_power.in(workspace);
  float* scale = plan.input_scale.in(workspace);
  float largest = 0.0f;
  for (int64_t i = 0; i < args.grad.size; ++i) {
    const float grad = at<float>(args.grad, i);
    tokens[i] = token_row(args, i);
    targets[i] = target_of(args, i);
    power[i] = power_of(grad);
    if (grad != 0.0f && power[i] > largest) largest = power[i];
  }
  if (largest == 0.0f) largest = 1.0f;
  for (int64_t i = 0; i < args.grad.size; ++i) {
    scale[i] = ratio(at<float>(args.grad, i), power[i], largest);
  }
  return largest;
}

}  // namespace npuless::linear_cross_entropy
