// Tensors of any rank read as blocks of rows.
#pragma once

#include "moe_token_permute/copy.h"
#include "tensor/tensor.h"

namespace npuless::moe_token_permute {

// Both tensors have one shape but for dimension 0, and rank ≥ 2.
RowsToRows rows_to_rows(const aclTensor& from, const aclTensor& to);

}  // namespace npuless::moe_token_permute
