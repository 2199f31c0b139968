// Mixture-of-experts token unpermute: aclnnMoeTokenUnpermute and its expert-parallel form.
//
// Source of the formulas: CANN's pages of the two operators.
//
//   N tokens, H hidden, K topk, T = N·K slots, slot s = t·K + j; i = sorted_indices[s] is the
//   slot's position in the order sorted by expert.
//   A rank that holds the positions [r0, r1) has their rows in order: position i is row i − r0.
//
//   out[t, :] = Σ_j probs[t, j] · permuted[i − r0, :]   over slots with r0 ≤ i < r1     [N,H]
//
// Without probabilities each weight is 1. The operator without a range holds all M rows there are:
// r0 = 0, r1 = M. A position outside the range, negative ones included, selects nothing; a slot of
// probability 0 adds nothing, whatever its row holds.
//
// Numerics: rows and probabilities are widened to fp32, multiplied with one rounding, added one at
// a time in slot order and rounded once to nearest even. The bits depend on neither ISA level nor
// threads.
//
// Cost: one read of each selected row, one write of each output element, T reads of indices and
// probabilities; 2·T·H flops. Bound by memory. Workspace: the fp32 probabilities of the tokens that
// each worker has in hand, none without probabilities.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "base/workspace.h"
#include "moe_token_permute/kernels.h"

namespace npuless::moe_token_permute {

struct UnpermuteArgs {
  Matrix permuted;        // FP32, FP16 or BF16 [≥ r1 − r0, H]
  Vector sorted_indices;  // INT32 [T]
  Matrix probs;           // FP32, FP16 or BF16 [N,K], mapped: [N,E]; with has_probs only
  Matrix map;             // bytes [N,E]; mapped only: slot j is the j-th expert that t chose
  Matrix out;             // as permuted [N,H]
  int64_t topk = 1;
  int64_t range_begin = 0;  // r0
  int64_t range_end = 0;    // r1
  bool has_probs = false;
  bool mapped = false;
};

struct UnpermutePlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  UnpermuteArgs args;
  SumRowsFn sum_rows;
  int threads;
  int64_t chunk_tokens;  // what one worker does at a time
  bool stream;           // the output is too large to stay in a cache
  Piece<float> weights;  // [workers][chunk_tokens · topk]
  int64_t workspace_bytes;
};

// Chooses ISA level and chunks. Arguments must be valid.
Status plan_unpermute(const UnpermuteArgs& args, UnpermutePlan& plan);
Status run_unpermute(const UnpermutePlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
