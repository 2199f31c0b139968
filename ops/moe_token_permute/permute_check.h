// The checks of the permutes on their tensors, in the order the contract gives codes: pointers,
// types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/permute.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of phase 1 of aclnnMoeTokenPermuteWithEp, and of aclnnMoeTokenPermute, which has
// neither probabilities nor a range.
struct PermuteTensors {
  const aclTensor* tokens;
  const aclTensor* indices;
  const aclTensor* probs;  // null: permuted_probs is checked, and left untouched
  const aclIntArray* range;
  int64_t num_out_tokens;  // without a range only
  bool padded_mode;
  const aclTensor* permuted;
  const aclTensor* sorted_indices;
  const aclTensor* permuted_probs;
  bool expert_parallel;

  // Without a range the operators are one, and whatever is given for probabilities is ignored.
  bool has_range() const { return range != nullptr && range->size > 0; }
};

Status check_permute(const PermuteTensors& tensors);
PermuteArgs unpack_permute(const PermuteTensors& tensors);

}  // namespace npuless::moe_token_permute
