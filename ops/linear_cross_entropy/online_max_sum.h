// Vocabulary-parallel fused linear + cross-entropy: the forward pass over this rank's shard.
//
// Source of the formulas: CANN's page of aclnnFusedLinearOnlineMaxSum.
//
//   z = X · Wᵀ                                       [N,V] in fp32, held only when asked for
//   logitsMax[n]    = max over v of z[n,v]
//   sumExp[n]       = Σ over v of exp(z[n,v] − logitsMax[n])
//   predicted[n]    = z[n, id − start] − logitsMax[n] where start ≤ id < end, else 0; −infinity
//                     where an owned id has no row, since the range may exceed V
//   mask bit of n   = 0 where start ≤ id < end, else 1; bits past N are 1
//   maskedTarget[n] = id − start where start ≤ id < end, else 0
//
// How: V is cut into panels, each packed once; every token block computes its logits tile and
// reduces it, in segments of fixed length, to a maximum and a sum that are merged segment by
// segment, in order, into the token's running pair. Logits, when asked for, are rounded from the
// same tile.
//
// Numerics: fp32. A NaN logit makes the token's maximum and sum NaN; −infinity logits add 0, and a
// token with nothing else has sum 0. Ids compare as 64-bit integers. The bits depend on V, H and
// the ISA level only: any thread count, any batch around a token, any position in it.
//
// Cost: 2·N·H·V flops; W is read once, X once per panel.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "base/workspace.h"
#include "gemm/blocked.h"
#include "linear_cross_entropy/kernels.h"

namespace npuless::linear_cross_entropy {

struct OnlineMaxSumArgs {
  Matrix input;         // BF16 or FP16 [N,H]
  Matrix weight;        // as input [V,H]
  Vector target;        // INT32 or INT64 [N], ids of the whole vocabulary
  int64_t vocab_start;  // this rank owns ids in [start, end)
  int64_t vocab_end;
  Vector logits_max;     // FP32 [N]
  Vector sum_exp;        // FP32 [N]
  Vector predicted;      // FP32 [N]
  Vector target_mask;    // UINT8 [(N+7)/8], bit p%8 of byte p/8
  Vector masked_target;  // as target [N]
  Matrix logits;         // as input [N,V]; optional
  bool has_logits;
};

struct OnlineMaxSumPlan {
  OnlineMaxSumArgs args;
  const gemm::Engine* engine;
  const Kernels* kernels;
  int threads;
  OperandType operand_type;
  int64_t panel;                        // vocabulary rows handled at once
  bool few_rows;                        // W is packed where it is multiplied: gemm::has_few_rows
  gemm::Blocking blocking;              // N × panel
  Piece<unsigned char> packed_columns;  // W panel as B
  Piece<unsigned char> packed_tokens;   // few rows: X as A
  Piece<float> segment_max;             // [segments of a panel, N]
  Piece<float> segment_sum;
  Piece<float> max;  // [N] running
  Piece<float> sum;
  Piece<float> target_logit;   // [N]
  Piece<int64_t> targets;      // [N] row of W, or kNoTarget
  Piece<unsigned char> block;  // per worker: a packed block of A or B
  Piece<float> tile;           // per worker: a block of logits
  int64_t block_bytes;
  int64_t tile_floats;
  int64_t workspace_bytes;
};

// Arguments must be valid and not empty.
Status plan_online_max_sum(const OnlineMaxSumArgs& args, OnlineMaxSumPlan& plan);
Status run_online_max_sum(const OnlineMaxSumPlan& plan, void* workspace);

}  // namespace npuless::linear_cross_entropy
