// The checks of the permute with a routing map and of its gradient on their tensors, in the order
// the contract gives codes: pointers, types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/permute_with_routing_map.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of phase 1 of aclnnMoeTokenPermuteWithRoutingMap.
struct MapPermuteTensors {
  const aclTensor* tokens;
  const aclTensor* map;
  const aclTensor* probs;  // null: permuted_probs is not looked at
  int64_t num_out_tokens;
  bool drop_and_pad;
  const aclTensor* permuted;
  const aclTensor* permuted_probs;
  const aclTensor* sorted_indices;
};

Status check_map_permute(const MapPermuteTensors& tensors);
MapPermuteArgs unpack_map_permute(const MapPermuteTensors& tensors);

// The parameters of phase 1 of aclnnMoeTokenPermuteWithRoutingMapGrad.
struct MapPermuteGradTensors {
  const aclTensor* permuted_grad;
  const aclTensor* permuted_probs_grad;  // null: neither map nor probs_grad is looked at
  const aclTensor* sorted_indices;
  const aclTensor* map;
  int64_t experts;
  int64_t tokens;
  bool drop_and_pad;
  const aclTensor* token_grad;
  const aclTensor* probs_grad;
};

Status check_map_permute_grad(const MapPermuteGradTensors& tensors);
MapPermuteGradArgs unpack_map_permute_grad(const MapPermuteGradTensors& tensors);

// What both share: probabilities have the tokens' type, or FLOAT beside BFLOAT16.
Status check_probs_type(const aclTensor* probs, const char* name, const aclTensor* tokens,
                        const char* tokens_name);

}  // namespace npuless::moe_token_permute
