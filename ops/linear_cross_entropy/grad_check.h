// The checks of aclnnFusedLinearCrossEntropyLossGrad on its tensors, in the order the contract
// gives codes: pointers, types, formats, attributes, ranks, shapes, addresses.
#pragma once

#include "base/status.h"
#include "linear_cross_entropy/op.h"
#include "tensor/tensor.h"

namespace npuless::linear_cross_entropy {

// The parameters of phase 1, under its names.
struct GradTensors {
  const aclTensor* grad;
  const aclTensor* input;
  const aclTensor* weight;
  const aclTensor* target_mask;
  const aclTensor* masked_target;
  float label_smoothing;
  const aclTensor* logits_max;
  const aclTensor* sum_exp;
  const aclTensor* softmax;
  const aclTensor* input_grad;
  const aclTensor* weight_grad;
};

Status check_grad(const GradTensors& tensors);
// 361001 unless the emulated device is of a family that has the operator. Comes after the shortcut
// for empty tensors.
Status check_grad_platform();
GradArgs unpack_grad(const GradTensors& tensors);

}  // namespace npuless::linear_cross_entropy
