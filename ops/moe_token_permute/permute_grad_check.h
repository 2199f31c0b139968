// The checks of the permute gradients on their tensors, in the order the contract gives codes:
// pointers, types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/op.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of aclnnMoeTokenPermuteGrad's phase 1.
struct PermuteGradTensors {
  const aclTensor* permuted_grad;
  const aclTensor* sorted_indices;
  int64_t topk;
  bool padded_mode;
  const aclTensor* token_grad;
};

Status check_permute_grad(const PermuteGradTensors& tensors);
PermuteGradArgs unpack_permute_grad(const PermuteGradTensors& tensors);

// The parameters of aclnnMoeTokenPermuteWithEpGrad's phase 1.
struct PermuteWithEpGradTensors {
  const aclTensor* permuted_grad;
  const aclTensor* sorted_indices;
  const aclTensor* permuted_probs_grad;
  int64_t topk;
  const aclIntArray* range;
  bool padded_mode;
  const aclTensor* token_grad;
  const aclTensor* probs_grad;

  // Without a range the operator is the one above, and whatever is given for probabilities is
  // ignored.
  bool has_range() const { return range != nullptr && range->size > 0; }
  // "If empty, probsGradOut is not output": null or without elements.
  bool has_probs() const {
    return has_range() && permuted_probs_grad != nullptr && !tensor::is_empty(*permuted_probs_grad);
  }
};

Status check_permute_with_ep_grad(const PermuteWithEpGradTensors& tensors);
PermuteGradArgs unpack_permute_with_ep_grad(const PermuteWithEpGradTensors& tensors);

}  // namespace npuless::moe_token_permute
