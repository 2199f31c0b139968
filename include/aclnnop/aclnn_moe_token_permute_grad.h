// Gradient of aclnnMoeTokenPermute: each token sums the gradient rows of its copies.
//
//   out[t] = Σ_{j<K} permutedOutputGrad[i],  i = sortedIndices[t·K + j], where 0 ≤ i < M
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, M permuted rows, H hidden. Any strides and offsets; format ND.
//
//   permutedOutputGrad  FLOAT, FLOAT16, BF16 [M,H]
//   sortedIndices       INT32 [T]   row of each slot; an index outside [0, M) adds nothing
//   numTopk             K, 1 to 512, divides T
//   paddedMode          false
//   out                 as permutedOutputGrad [T/K, H]
//
// Sums run in fp32 in slot order and are rounded once. 161001 for a NULL argument; 161002 for a
// type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteGradGetWorkspaceSize(
    const aclTensor* permutedOutputGrad, const aclTensor* sortedIndices, int64_t numTopk,
    bool paddedMode, aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteGrad(void* workspace, uint64_t workspaceSize,
                                               aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_GRAD_H_
