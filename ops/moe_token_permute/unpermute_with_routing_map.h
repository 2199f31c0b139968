// aclnnMoeTokenUnpermuteWithRoutingMap and its gradient: an unpermute whose routing is a map of
// tokens by experts.
//
// Source of the formulas: CANN's pages of the two operators.
//
//   N tokens, H hidden, E experts, map[t, e] true where token t goes to expert e. `rows` permuted
//   rows, in the order expert, then token.
//
// Index mode: K = rows / N. The unpermute of unpermute.h with i = sorted_indices[t·K + j] and, as
// the probability of slot j, that of the j-th expert that t chose, ascending; 0 for slots beyond
// those it chose. permute_probs are these probabilities, out_index is sorted_indices and
// permute_token_id[t·K + j] = t, so that out[permute_token_id[i]] sums permuted[out_index[i]].
//
// Padded mode: c = rows / E rows for each expert; row r is token sorted_indices[r] with probability
// permute_probs[r] = probs[sorted_indices[r], r / c].
//   out[t] = Σ permute_probs[r] · permuted[r]   over the rows r of t, ascending
// out_index is the order of sorted_indices, stable and ascending, permute_token_id the sorted ids.
//
// Gradient, index mode: that of unpermute_grad.h, with out_index for sorted_indices; the j-th
// chosen expert takes the dot product of slot j, all others have 0. Padded mode: row out_index[i]
// is token permute_token_id[i], of several i for one row the last.
//   permuted_grad[r]  = probs[t, r / c] · grad[t]
//   probs_grad[t, e]  = Σ_h permuted[r, h] · grad[t, h]   over the rows of t and e, ascending
// An id outside [0, N) selects nothing; rows of no token are zero.
//
// Numerics: those of unpermute.h and unpermute_grad.h, the first row of a token in padded mode
// taking the place of slot 0.
//
// Cost: as unpermute.h; index mode reads the map once more, padded mode sorts the rows by token.
// Workspace: index mode as unpermute.h and unpermute_grad.h; padded mode the sort's (index.h) and
// kMaxTopk probabilities, in the gradient twice and 4 bytes per row, per worker.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "moe_token_permute/index.h"
#include "moe_token_permute/unpermute.h"
#include "moe_token_permute/unpermute_grad.h"

namespace npuless::moe_token_permute {

struct MapUnpermuteArgs {
  UnpermuteArgs sums;       // padded mode: sorted_indices are tokens of rows
  Vector out_index;         // INT32 [rows]
  Vector permute_token_id;  // INT32 [rows]
  Vector permute_probs;     // as sums.probs [rows]; with probabilities only
  bool padded_mode = false;
};

struct MapUnpermutePlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  UnpermutePlan sums;
  Vector out_index;
  Vector permute_token_id;
  Vector permute_probs;
  bool padded_mode;
  ListsPlan lists;  // padded mode
  int64_t workspace_bytes;
};

Status plan_map_unpermute(const MapUnpermuteArgs& args, MapUnpermutePlan& plan);
Status run_map_unpermute(const MapUnpermutePlan& plan, void* workspace);

struct MapUnpermuteGradArgs {
  UnpermuteGradArgs sums;   // out_index stands for sorted_indices
  Vector permute_token_id;  // INT32 [rows]; padded mode only
  bool drop_and_pad = false;
};

struct MapUnpermuteGradPlan {
  static constexpr bool kMovesBytes = true;  // tensor/executor.h

  UnpermuteGradPlan sums;
  Vector permute_token_id;
  bool drop_and_pad;
  ListsPlan lists;  // padded mode; its rows' tokens are in sums.writers
  int64_t workspace_bytes;
};

Status plan_map_unpermute_grad(const MapUnpermuteGradArgs& args, MapUnpermuteGradPlan& plan);
Status run_map_unpermute_grad(const MapUnpermuteGradPlan& plan, void* workspace);

}  // namespace npuless::moe_token_permute
