// The checks of the unpermute with a routing map and of its gradient on their tensors, in the order
// the contract gives codes: pointers, types, formats, attributes, ranks, shapes.
#pragma once

#include "base/status.h"
#include "moe_token_permute/unpermute_with_routing_map.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// The parameters of phase 1 of aclnnMoeTokenUnpermuteWithRoutingMap.
struct MapUnpermuteTensors {
  const aclTensor* permuted;
  const aclTensor* sorted_indices;
  const aclTensor* map;
  const aclTensor* probs;  // null: neither map nor permute_probs is looked at
  bool padded_mode;
  const aclIntArray* restore_shape;
  const aclTensor* out;
  const aclTensor* out_index;
  const aclTensor* permute_token_id;
  const aclTensor* permute_probs;
};

Status check_map_unpermute(const MapUnpermuteTensors& tensors);
MapUnpermuteArgs unpack_map_unpermute(const MapUnpermuteTensors& tensors);

// The parameters of phase 1 of aclnnMoeTokenUnpermuteWithRoutingMapGrad.
struct MapUnpermuteGradTensors {
  const aclTensor* grad;
  const aclTensor* out_index;
  const aclTensor* permute_token_id;
  const aclTensor* map;
  const aclTensor* permuted;
  const aclTensor* probs;  // null: neither map, permuted nor probs_grad is looked at
  bool drop_and_pad;
  const aclIntArray* restore_shape;
  const aclTensor* permuted_grad;
  const aclTensor* probs_grad;
};

Status check_map_unpermute_grad(const MapUnpermuteGradTensors& tensors);
MapUnpermuteGradArgs unpack_map_unpermute_grad(const MapUnpermuteGradTensors& tensors);

// What both share.
inline constexpr DType kUnpermuteMapTypes[] = {DType::kBool, DType::kInt8, DType::kUint8};
// Of the padded mode, where it is given: the shape of the tokens.
Status check_restore_shape(const aclIntArray* shape, bool padded_mode);
Status check_restored(const aclIntArray* shape, bool padded_mode, const aclTensor* tokens,
                      const char* name);
// `rows` come in whole numbers for each token, at most kMaxTopk, or in padded mode with
// probabilities for each expert; all that INT32 can count.
Status check_row_count(int64_t rows, int64_t tokens, const aclTensor* probs, bool padded_mode);

}  // namespace npuless::moe_token_permute
