// aclnnMoeTokenPermuteWithRoutingMap and its gradient: a permute whose routing is a map of tokens
// by experts.
//
// Source of the formulas: CANN's pages of the two operators.
//
//   N tokens, H hidden, E experts, map[t, e] true where token t goes to expert e. `rows` rows, in
//   the order expert, then token.
//
// Index mode: K = rows / N. Row r of the order is permuted[r] = tokens[t], permuted_probs[r] =
// probs[t, e]; those from `rows` on are dropped, and where there are fewer the rest is zeroed.
// sorted_indices[t·K + j] is the row of the j-th expert that t chose, ascending; −1 where there is
// none or it was dropped. A token that chose more than K has all its rows, but K of their indices.
//
// Drop-and-pad mode: c = rows / E rows for each expert: the tokens that chose it, ascending, then
// those that did not, ascending. Row e·c + i is token sorted_indices[e·c + i], with its own
// probability.
//
// Gradient, index mode: token_grad[t] = Σ_j permuted_grad[sorted_indices[t·K + j]] and
// probs_grad[t, e] = permuted_probs_grad[row of t for e]. Drop-and-pad mode: token_grad[t] = Σ
// permuted_grad[r] over the rows r with sorted_indices[r] = t, ascending, and
// probs_grad[sorted_indices[r], r / c] = permuted_probs_grad[r]. Everything else is 0. An index
// outside its range selects nothing.
//
// Numerics: copies are bits; sums as those of the other gradients (op.h), the first row of a token
// in drop-and-pad mode taking the place of slot 0.
//
// Cost: two reads of the map; a read of each token's row and a write of each output row. Gradient:
// a read of each selected row, a write of each output; two reads of the map where probabilities are
// given (index mode), a sort of the rows by token (drop-and-pad mode). Workspace: routing_map.h,
// index.h.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/index.h"
#include "moe_token_permute/kernels.h"
#include "moe_token_permute/routing_map.h"

namespace npuless::moe_token_permute {

struct MapPermuteArgs {
  RowsToRows rows;        // tokens [N,H] to permuted [rows,H]
  Matrix map;             // bytes [N,E]
  Matrix probs;           // of 2 or 4 bytes [N,E]; with has_probs only
  Vector permuted_probs;  // as probs [rows]; with has_probs only
  Vector sorted_indices;  // INT32 [rows]
  bool drop_and_pad = false;
  bool has_probs = false;
};

struct MapPermutePlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  MapPermuteArgs args;
  MapPlan map;
  CopyPlan copy;
  int64_t workspace_bytes;
};

Status plan_map_permute(const MapPermuteArgs& args, MapPermutePlan& plan);
Status run_map_permute(const MapPermutePlan& plan, void* workspace);

struct MapPermuteGradArgs {
  Matrix permuted_grad;        // FP32, FP16 or BF16 [rows,H]
  Vector permuted_probs_grad;  // of 2 or 4 bytes [rows]; with has_probs only
  Vector sorted_indices;       // INT32 [rows]
  Matrix map;                  // bytes [N,E]; with has_probs only
  Matrix token_grad;           // as permuted_grad [N,H]
  Matrix probs_grad;           // as permuted_probs_grad [N,E]; with has_probs only
  int64_t experts = 1;
  bool drop_and_pad = false;
  bool has_probs = false;
};

struct MapPermuteGradPlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  MapPermuteGradArgs args;
  MapPlan map;      // index mode with probabilities
  ListsPlan lists;  // drop-and-pad mode
  SumRowsFn sum_rows;
  int threads;
  int64_t chunk_tokens;
  bool stream;
  int64_t workspace_bytes;
};

Status plan_map_permute_grad(const MapPermuteGradArgs& args, MapPermuteGradPlan& plan);
Status run_map_permute_grad(const MapPermuteGradPlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
