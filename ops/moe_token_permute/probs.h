// Probabilities between the caller's type and the fp32 that kernels weigh with: those of one token
// after another, topk each. Widening is exact; narrowing rounds to nearest even.
#pragma once

#include <cstdint>

#include "base/view.h"

namespace npuless::moe_token_permute {

// Rows [begin, end) of a [N,K] matrix.
void read_probs(const Matrix& probs, int64_t begin, int64_t end, float* out);
void write_probs(const Matrix& probs, int64_t begin, int64_t end, const float* in);

// Rows [begin, end) of a [N,E] matrix beside a map of bytes: slot j of a token is its j-th chosen
// expert, ascending. Slots beyond those that the token chose have probability 0, chosen experts
// beyond topk have no slot; whatever has no slot is written as 0.
void read_mapped_probs(const Matrix& probs, const Matrix& map, int64_t topk, int64_t begin,
                       int64_t end, float* out);
void write_mapped_probs(const Matrix& probs, const Matrix& map, int64_t topk, int64_t begin,
                        int64_t end, const float* in);

// One probability.
float read_prob(const Matrix& probs, int64_t row, int64_t col);
void write_prob(const Matrix& probs, int64_t row, int64_t col, float value);

}  // namespace npuless::moe_token_permute
