// Per-token tables of the gradient: the strided, optional and bit-packed arguments brought into
// contiguous arrays once, so that no inner loop meets them.
#pragma once

#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {

// Fills plan.tokens, targets, grad_power and input_scale; returns the largest grad_power, by which
// the weight gradient is scaled at the end.
float fill_token_tables(const GradPlan& plan, void* workspace);

}  // namespace npuless::linear_cross_entropy
