// Probabilities between the caller's type and the fp32 that kernels weigh with: those of one token
// after another, topk each. Widening is exact; narrowing rounds to nearest even.
#pragma once

#include <cstdint>

#include "base/view.h"

namespace npuless::moe_token_permute {

// Rows [begin, end) of a [N,K] matrix.
void read_probs(const Matrix& probs, int64_t begin, int64_t end, float* out);
void write_probs(const Matrix& probs, int64_t begin, int64_t end, const float* in);

}  // namespace npuless::moe_token_permute
