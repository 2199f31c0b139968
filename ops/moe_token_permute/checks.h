// Checks that several operators of the family share. Each failure leaves one sentence.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "moe_token_permute/kernels.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

inline constexpr DType kFloatTypes[] = {DType::kBfloat16, DType::kFloat16, DType::kFloat32};
inline constexpr DType kIndexTypes[] = {DType::kInt32};

// 1 … kMaxTopk; `name` is what the operator calls it.
Status check_topk(int64_t topk, const char* name);
// The operators that have no padded mode.
Status check_padded_mode(bool padded_mode);

// Without a range an operator is its form without expert parallelism.
inline bool is_given(const aclIntArray* range) {
  return range != nullptr && range->size > 0;
}
// Two ends, 0 ≤ r0 ≤ r1.
Status check_range(const aclIntArray& range);
// r1 against the slots there are.
Status check_range_end(const aclIntArray& range, int64_t slots);
// Dimension 0 of a buffer that holds the range's rows.
Status check_rows(const aclTensor* tensor, const char* name, int64_t rows);

// INT32 indices must be able to count what `what` names.
Status check_countable(int64_t count, const char* what);
// sortedIndices must divide into tokens; `topk_name` as above.
Status check_slots(const aclTensor* indices, int64_t topk, const char* topk_name);

Status require_not_empty(const aclTensor* tensor, const char* name, int rank);

}  // namespace npuless::moe_token_permute
