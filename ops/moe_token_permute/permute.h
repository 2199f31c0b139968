// Mixture-of-experts token permute: aclnnMoeTokenPermute and its expert-parallel form. Each token's
// row is copied to the places that its experts have in the order sorted by expert.
//
// Source of the formulas: CANN's pages of aclnnMoeTokenPermute and aclnnMoeTokenPermuteWithEp.
//
//   N tokens, H hidden (the product of all trailing dimensions), K topk, T = N·K slots, slot
//   s = t·K + j; rank = the slot's position after a stable ascending sort of the ids.
//
//   sorted_indices[s]          = rank                                             [T]
//   permuted[rank − r0, :]     = tokens[t, :]     over slots with r0 ≤ rank < r1  [≥ R,H]
//   permuted_probs[rank − r0]  = probs[t, j]      likewise                        [≥ R]
//
// with R = r1 − r0. Rows of the outputs beyond R are zeroed. The operator without a range keeps
// the first M rows: r0 = 0, r1 = M.
//
// Numerics: none, all outputs are copied bits. They depend on neither ISA level nor threads.
//
// Cost: one read of each token's row, one write of each output row, and the sort of T ids
// (index.h), whose workspace is the only one: 8 bytes per slot and 8 KiB per 65536 slots and once
// more.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/index.h"

namespace npuless::moe_token_permute {

struct PermuteArgs {
  RowsToRows rows;        // tokens [N, …] to permuted [≥ R, …], of 1, 2 or 4 bytes an element
  Matrix indices;         // INT32 or INT64 [N,K]
  Matrix probs;           // [N,K]; with has_probs only
  Vector sorted_indices;  // INT32 [T]
  Vector permuted_probs;  // as probs [≥ R]; with has_probs only
  int64_t range_begin = 0;  // r0
  int64_t range_end = 0;    // r1
  bool has_probs = false;
};

struct PermutePlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  PermuteArgs args;
  IndexPlan index;
  CopyPlan copy;
  int threads;
  int64_t chunk_tokens;  // what one worker does at a time
  int64_t workspace_bytes;
};

// Chooses ISA level and chunks, books workspace. Arguments must be valid.
Status plan_permute(const PermuteArgs& args, PermutePlan& plan);
Status run_permute(const PermutePlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
