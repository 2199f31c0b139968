// The permutes the plain way: a pass that gathers rows into a buffer, a pass that sums them; each
// on all threads, its loops left to the compiler's vectoriser for the processor at hand.
// T: float or bf16; sums in fp32. Tensors are contiguous; rows[slot] is the permuted row of a
// token's slot.
#pragma once

#include <cstdint>
#include <vector>

namespace npuless::bench {

struct MoeShape {
  int64_t tokens;
  int64_t topk;
  int64_t hidden;
};

// Sorts the slots by expert, then copies their tokens' rows. rows[tokens · topk] is written.
template <class T>
void two_pass_permute(const MoeShape& shape, const T* tokens, const int32_t* experts, T* permuted,
                      int32_t* rows);

// out[t] = Σ over slots of probs[t][j] · permuted[rows[t][j]]; probs may be null. `gathered` is
// scratch for as many elements as `permuted` has.
template <class T>
void two_pass_unpermute(const MoeShape& shape, const T* permuted, const int32_t* rows,
                        const float* probs, T* gathered, T* out);

// permuted_grad[rows[t][j]] = probs[t][j] · grad[t]; probs_grad[t][j] = ⟨permuted row, grad[t]⟩.
template <class T>
void two_pass_unpermute_grad(const MoeShape& shape, const T* permuted, const T* grad,
                             const int32_t* rows, const float* probs, T* permuted_grad,
                             float* probs_grad);

}  // namespace npuless::bench
