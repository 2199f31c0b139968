// The gradients of aclnnMoeTokenUnpermute and its expert-parallel form.
//
// Source of the formulas: CANN's pages of aclnnMoeTokenUnpermuteGrad and
// aclnnMoeTokenUnpermuteWithEpGrad.
//
//   N, H, K, T, slots, positions i and ranges [r0, r1) as in unpermute.h; R = r1 − r0.
//
//   permuted_grad[i − r0, :] = probs[t, j] · grad[t, :]                  [≥ R,H]
//   probs_grad[t, j]         = Σ_h permuted[i − r0, h] · grad[t, h]      [N,K]
//                              or 0 outside the range
//
// Without probabilities permuted_grad[i − r0, :] = grad[t, :] and there is no probs_grad. A
// probability of 0 has a gradient like any other.
//
// Rows of permuted_grad that no slot names, those from R on included, are zero. Of several slots
// that name one row the last writes it.
//
// Numerics: all operands are widened to fp32. A scaled row is one product rounded to nearest even;
// a dot product is 32 interleaved sums, then a tree (kernels.h), rounded once to the type of the
// probabilities; without probabilities rows are copied bits. The bits depend on neither ISA level
// nor threads.
//
// Cost: one read of each token's row and of each selected row, one write of each row of
// permuted_grad; 3·T·H flops. Bound by memory. Workspace: 4 bytes per row for who writes it, and
// the fp32 probabilities and their gradients of the tokens that each worker has in hand.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "base/workspace.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/kernels.h"

namespace npuless::moe_token_permute {

struct UnpermuteGradArgs {
  Matrix permuted;        // FP32, FP16 or BF16 [≥ R,H]; with has_probs only
  Matrix grad;            // FP32, FP16 or BF16 [N,H]
  Vector sorted_indices;  // INT32 [T]
  Matrix probs;           // FP32, FP16 or BF16 [N,K], mapped: [N,E]; with has_probs only
  Matrix map;             // bytes [N,E]; mapped only: slot j is the j-th expert that t chose
  Matrix permuted_grad;   // as grad [≥ R,H]
  Matrix probs_grad;      // as probs; with has_probs only
  int64_t topk = 1;
  int64_t range_begin = 0;  // r0
  int64_t range_end = 0;    // r1
  bool has_probs = false;
  bool mapped = false;
};

struct UnpermuteGradPlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  UnpermuteGradArgs args;
  SpreadRowsFn spread_rows;
  CopyPlan copy;
  int threads;
  int64_t chunk_tokens;    // what one worker does at a time
  bool stream;             // the output is too large to stay in a cache
  Piece<int32_t> writers;  // [R]
  Piece<float> weights;    // [workers][chunk_tokens · topk]
  Piece<float> dots;       // likewise
  int64_t workspace_bytes;
};

// Chooses ISA level and chunks. Arguments must be valid, T at most kMaxSlots.
Status plan_unpermute_grad(const UnpermuteGradArgs& args, UnpermuteGradPlan& plan);
Status run_unpermute_grad(const UnpermuteGradPlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
