// Vocabulary-parallel fused linear + cross-entropy: the loss.
//
// Source of the formulas: CANN's page of aclnnFusedCrossEntropyLossWithMaxSum.
//
//   loss[n]       = log(sumExp[n]) − predicted[n]
//   softmax[n, v] = exp(logits[n, v] − max[n]) / sumExp[n], when logits are given
//
// Numerics: fp32; the logarithm is taken in double and rounded once. Non-finite values flow.
// Cost: the softmax reads N·V logits and writes N·V fp32: bound by memory.
#pragma once

#include "base/status.h"
#include "base/view.h"
#include "base/workspace.h"
#include "linear_cross_entropy/kernels.h"

namespace npuless::linear_cross_entropy {

struct CrossEntropyArgs {
  Vector logits_max;  // FP32 [N]
  Vector sum_exp;     // FP32 [N]
  Vector predicted;   // FP32 [N]
  Matrix logits;      // FP32, FP16 or BF16 [N,V]; optional
  Vector loss;        // FP32 [N]
  Matrix softmax;     // FP32 [N,V]; with logits
  bool has_logits;
};

struct CrossEntropyPlan {
  CrossEntropyArgs args;
  const Kernels* kernels;
  int threads;
  int logits_type;     // index of Kernels::softmax
  bool stream;         // the softmax is too large to stay in a cache
  Piece<float> chunk;  // per worker: a stretch of a row whose elements are not adjacent
  int64_t workspace_bytes;
};

// Arguments must be valid; zero tokens or columns are legal.
Status plan_cross_entropy(const CrossEntropyArgs& args, CrossEntropyPlan& plan);
Status run_cross_entropy(const CrossEntropyPlan& plan, void* workspace);

}  // namespace npuless::linear_cross_entropy
