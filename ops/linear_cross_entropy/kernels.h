// Kernel contract of the family. Kernels see rows of numbers: no tensors, threads or status.
// Included by the per-ISA files: plain types only.
#pragma once

#include <cstdint>

namespace npuless::linear_cross_entropy {

// What one token contributes to a row of d ⊙ grad.
struct TokenRow {
  float max;      // of its logits, over the whole vocabulary
  float sum;      // of exp(logit − max), over the whole vocabulary
  float inverse;  // 1 / sum
  bool divide;    // sum or 1 / sum is subnormal or not finite: divide instead of multiplying
  float grad;
};

// `target` is the column, inside [0, n), from which 1 is subtracted; kNoTarget when none is.
inline constexpr int64_t kNoTarget = -1;

// out[j] = (exp(logits[j] − max) / sum − [j = target]) · grad, rounded once to the output type.
// At the target it is (exp(…) − sum) / sum · grad, exact where the probability is close to 1,
// unless `divide` is set.
using FromLogitsFn = void (*)(const float* logits, int64_t n, const TokenRow& row, int64_t target,
                              void* out);
// out[j] = (softmax[j] − [j = target]) · grad, rounded once to the output type.
using FromSoftmaxFn = void (*)(const float* softmax, int64_t n, float grad, int64_t target,
                               void* out);
// out[j] = in[j] · scale, rounded to the output type.
using NarrowFn = void (*)(const float* in, int64_t n, float scale, void* out);

// max = the largest of n ≥ 1 logits, NaN when one is NaN; sum = Σ exp(logit − max), 0 when all are
// −infinity.
using MaxSumFn = void (*)(const float* logits, int64_t n, float* max, float* sum);
// out[j] = exp(in[j] − max) / sum in fp32; `divide` as in TokenRow. `in` is of an InputType.
// `stream`: write past the caches.
using SoftmaxFn = void (*)(const void* in, int64_t n, const TokenRow& row, bool stream, float* out);

// d ⊙ grad is kept as bf16 for bf16 inputs and as fp32 for fp16 ones.
enum GradType : int { kGradBfloat16, kGradFloat32 };
// The operand types.
enum OperandType : int { kBfloat16, kFloat16 };
// The types of given logits: the operand types and fp32.
inline constexpr int kLogitsFloat32 = 2;

struct Kernels {
  FromLogitsFn grad_from_logits[2];    // by GradType
  FromSoftmaxFn grad_from_softmax[2];  // by GradType
  NarrowFn narrow[2];                  // by OperandType
  void (*exp)(const float* in, int64_t n, float* out);
  MaxSumFn max_sum;
  SoftmaxFn softmax[3];  // by OperandType, kLogitsFloat32
};

}  // namespace npuless::linear_cross_entropy

namespace npuless::portable {
extern const linear_cross_entropy::Kernels linear_cross_entropy_kernels;
}
namespace npuless::avx2 {
extern const linear_cross_entropy::Kernels linear_cross_entropy_kernels;
}
namespace npuless::avx512 {
extern const linear_cross_entropy::Kernels linear_cross_entropy_kernels;
}
