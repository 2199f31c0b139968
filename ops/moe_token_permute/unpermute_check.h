// The checks of the unpermute operators on their tensors, in the order the contract gives codes:
// pointers, types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/unpermute.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of phase 1 of aclnnMoeTokenUnpermuteWithEp, and of aclnnMoeTokenUnpermute, which
// has neither numTopk nor a range. restoreShapeOptional belongs to the padded mode, which is
// refused, and is not read.
struct UnpermuteTensors {
  const aclTensor* permuted;
  const aclTensor* sorted_indices;
  const aclTensor* probs;  // null: weights of 1
  int64_t topk;            // of the expert-parallel form
  const aclIntArray* range;
  bool padded_mode;
  const aclTensor* out;
  bool expert_parallel;
};

Status check_unpermute(const UnpermuteTensors& tensors);
UnpermuteArgs unpack_unpermute(const UnpermuteTensors& tensors);

}  // namespace npuless::moe_token_permute
