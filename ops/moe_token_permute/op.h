// Mixture-of-experts token permute: the gradients of aclnnMoeTokenPermute and its expert-parallel
// form.
//
// Source of the formulas: CANN's pages of aclnnMoeTokenPermuteGrad and
// aclnnMoeTokenPermuteWithEpGrad.
//
//   N tokens, H hidden, K topk, T = N·K slots, slot s = t·K + j; i = sorted_indices[s] is the
//   slot's position in the order sorted by expert.
//   A rank that holds the positions [r0, r1) has their rows in order: position i is row i − r0.
//
//   token_grad[t, :] = Σ_j permuted_grad[i − r0, :]   over slots with r0 ≤ i < r1     [N,H]
//   probs_grad[t, j] = permuted_probs_grad[i − r0]    or 0 outside the range          [N,K]
//
// The operator without a range holds all M rows there are: r0 = 0, r1 = M. A position outside the
// range, negative ones included, selects nothing and reads nothing.
//
// Numerics: rows are widened to fp32, added one at a time in slot order and rounded once to nearest
// even; probabilities are copied bit by bit. The bits depend on neither ISA level nor threads.
//
// Cost: one read of each selected row, one write of each output element, T index reads; T·H
// additions. Bound by memory. No workspace.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "moe_token_permute/kernels.h"

namespace npuless::moe_token_permute {

struct PermuteGradArgs {
  Matrix permuted_grad;        // FP32, FP16 or BF16 [≥ r1 − r0, H]
  Vector sorted_indices;       // INT32 [T]
  Vector permuted_probs_grad;  // as permuted_grad [≥ r1 − r0]; with has_probs only
  Matrix token_grad;           // as permuted_grad [N,H]
  Matrix probs_grad;           // as permuted_grad [N,K]; with has_probs only
  int64_t topk = 1;
  int64_t range_begin = 0;  // r0
  int64_t range_end = 0;    // r1
  bool has_probs = false;
};

struct PermuteGradPlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  PermuteGradArgs args;
  SumRowsFn sum_rows;
  PickScalarsFn pick_scalars;
  int threads;
  int64_t chunk_tokens;  // what one worker does at a time
  bool stream;           // the output is too large to stay in a cache
};

// Chooses ISA level and chunks. Arguments must be valid.
Status plan_permute_grad(const PermuteGradArgs& args, PermuteGradPlan& plan);
Status run_permute_grad(const PermuteGradPlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
