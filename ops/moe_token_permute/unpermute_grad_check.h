// The checks of the unpermute's gradients on their tensors, in the order the contract gives codes:
// pointers, types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/unpermute_grad.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of phase 1 of aclnnMoeTokenUnpermuteWithEpGrad, and of aclnnMoeTokenUnpermuteGrad,
// which has neither topkNum nor a range. restoreShapeOptional belongs to the padded mode, which is
// refused, and is not read.
struct UnpermuteGradTensors {
  const aclTensor* permuted;  // may be null without probabilities, and is not read then
  const aclTensor* grad;
  const aclTensor* sorted_indices;
  const aclTensor* probs;  // null: weights of 1, and probs_grad stays untouched
  int64_t topk;            // of the expert-parallel form
  const aclIntArray* range;
  bool padded_mode;
  const aclTensor* permuted_grad;
  const aclTensor* probs_grad;
  bool expert_parallel;
};

Status check_unpermute_grad(const UnpermuteGradTensors& tensors);
UnpermuteGradArgs unpack_unpermute_grad(const UnpermuteGradTensors& tensors);

}  // namespace npuless::moe_token_permute
