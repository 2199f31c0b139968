// The checks of aclnnFusedLinearOnlineMaxSum and aclnnFusedCrossEntropyLossWithMaxSum on their
// tensors, in the order the contract gives codes: pointers, types, formats, attributes, ranks,
// shapes, values.
#pragma once

#include "base/status.h"
#include "linear_cross_entropy/cross_entropy.h"
#include "linear_cross_entropy/online_max_sum.h"
#include "tensor/tensor.h"

namespace npuless::linear_cross_entropy {

// The parameters of phase 1, under their names.
struct OnlineMaxSumTensors {
  const aclTensor* input;
  const aclTensor* weight;
  const aclTensor* target;
  int64_t vocab_start;
  int64_t vocab_end;
  const aclTensor* logits_max;
  const aclTensor* sum_exp;
  const aclTensor* predicted;
  const aclTensor* target_mask;
  const aclTensor* masked_target;
  const aclTensor* logits;
};

struct CrossEntropyTensors {
  const aclTensor* logits_max;
  const aclTensor* sum_exp;
  const aclTensor* predicted;
  float label_smoothing;
  const aclTensor* logits;
  const aclTensor* loss;
  const aclTensor* softmax;
};

Status check_online_max_sum(const OnlineMaxSumTensors& tensors);
OnlineMaxSumArgs unpack_online_max_sum(const OnlineMaxSumTensors& tensors);

Status check_cross_entropy(const CrossEntropyTensors& tensors);
CrossEntropyArgs unpack_cross_entropy(const CrossEntropyTensors& tensors);

}  // namespace npuless::linear_cross_entropy
