// Vocabulary-parallel fused linear + cross-entropy: the gradient.
//
// Source of the formulas: CANN's page of aclnnFusedLinearCrossEntropyLossGrad.
//
//   N tokens, H hidden, V rows of this rank's weight shard; X = input [N,H], W = weight [V,H].
//   z = X · Wᵀ                                                  [N,V], never held
//   d = exp(z − max) / sum − onehot(target) where the token's mask bit is 0
//       (high-performance mode: d = softmax − onehot, softmax given)
//   inputGrad  = (d ⊙ grad) · W                                 [N,H]
//   weightGrad = (d ⊙ grad)ᵀ · X                                [V,H]
//   max and sum are per token and global: over all shards.
//
// How: V is cut into panels. Per panel W is packed for both products that read it; every token
// block computes its logits tile, turns it into d ⊙ grad in its epilogue and stores only that
// [N, panel] piece; then inputGrad accumulates in an fp32 [N,H] buffer while weightGrad's rows of
// this panel are summed over all tokens, rounded and written. No buffer grows with V. With few
// tokens the panels of W are packed in pieces where they are multiplied, and never stored.
//
// Numerics: fp32 up to the multiplication by grad. For bf16 inputs d ⊙ grad is rounded once to
// bf16; for fp16 inputs it stays fp32, since those products are computed in fp32 on every ISA
// level. Each token's grad is replaced by its significand in [1, 2) before that rounding and the
// power of two is applied afterwards in fp32, exactly, so a grad of 1/N or 2^-140 loses nothing.
// Products accumulate in fp32 in an order that depends on V, H, N and the ISA level only: the same
// bits for every thread count, and inputGrad of a token does not depend on the other tokens.
// A token whose grad is 0 contributes exactly 0, whatever its X row or logits hold.
//
// Cost: 6·N·H·V flops (4·N·H·V in high-performance mode); W is read twice, X once per panel.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/view.h"
#include "base/workspace.h"
#include "gemm/blocked.h"
#include "isa/level.h"
#include "linear_cross_entropy/kernels.h"

namespace npuless::linear_cross_entropy {

struct GradArgs {
  Vector grad;           // FP32 [N]
  Matrix input;          // BF16 or FP16 [N,H]
  Matrix weight;         // as input [V,H]
  Vector target_mask;    // UINT8 bits, least significant first, or BOOL [N]; 1 = not on this rank
  Vector masked_target;  // INT32 or INT64 [N]; read where the mask is 0
  Vector logits_max;     // FP32 [N]; memory-saving mode only
  Vector sum_exp;        // FP32 [N]; memory-saving mode only
  Matrix softmax;        // FP32 [N,V]; high-performance mode only
  Matrix input_grad;     // as input [N,H]
  Matrix weight_grad;    // as input [V,H]
  bool has_softmax = false;
};

struct GradPlan {
  GradArgs args;
  const gemm::Engine* engine;
  const Kernels* kernels;
  int threads;
  GradType grad_type;
  OperandType operand_type;

  int64_t panel;               // vocabulary rows handled at once
  bool few_rows;               // W is packed where it is multiplied: gemm::has_few_rows
  gemm::Blocking logits;       // N × panel
  gemm::Blocking input_grad;   // N × H
  gemm::Blocking weight_grad;  // panel × H

  Piece<TokenRow> tokens;               // [N]
  Piece<int64_t> targets;               // [N] local vocabulary row, or kNoTarget
  Piece<float> grad_power;              // [N] grad = significand · grad_power
  Piece<float> input_scale;             // [N] grad_power relative to the largest; 0 where grad is 0
  Piece<unsigned char> packed_input;    // X as B of the weight gradient
  Piece<unsigned char> packed_columns;  // W panel as B of the logits
  Piece<unsigned char> packed_rows;     // W panel as B of the input gradient
  Piece<unsigned char> packed_tokens;   // few rows: X as A of the logits
  Piece<unsigned char> packed_grad;     // few rows: d ⊙ grad as A of the input gradient
  Piece<unsigned char> grad_logits;     // [N, panel] of d ⊙ grad
  Piece<float> input_sum;               // [N, H] padded to whole tiles
  Piece<unsigned char> block;           // per worker: a packed block of A or B
  Piece<float> tile;                    // per worker: a block of C
  int64_t block_bytes;
  int64_t input_sum_stride;
  int64_t tile_floats;
  int64_t workspace_bytes;
};

// The kernels of a level; avx512_bf16 gains none of its own.
const Kernels& kernels_for(isa::Level level);

// 161002 where a workspace for such a call could not be counted in 64 bits. Strides of 0 allow
// tensors of any extent over little memory.
Status check_size(int64_t tokens, int64_t hidden, int64_t vocab);

// Rounds in[0, n) times `scale` into out[row, col…], whatever the strides of `out`.
void narrow_into(NarrowFn narrow, const Matrix& out, int64_t row, int64_t col, int64_t n,
                 float scale, const float* in);

// Chooses ISA level, blocks and workspace. Arguments must be valid and not empty.
Status plan_grad(const GradArgs& args, GradPlan& plan);
Status run_grad(const GradPlan& plan, void* workspace);

}  // namespace npuless::linear_cross_entropy
