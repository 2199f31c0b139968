// Gradients of aclnnMoeTokenUnpermute.
//
//   permutedTokensGradOut[i] = probsOptional[t, j] · unpermutedTokensGrad[t]
//   probsGradOut[t, j]       = Σ_h permutedTokensOptional[i, h] · unpermutedTokensGrad[t, h]
//   with i = sortedIndices[t·K + j], where 0 ≤ i < M; probsGradOut is 0 elsewhere
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, M permuted rows, H hidden. Any strides and offsets; format ND.
//
//   permutedTokensOptional  as unpermutedTokensGrad [M,H]; may be NULL without probsOptional
//   unpermutedTokensGrad    FLOAT, FLOAT16, BF16 [N,H]
//   sortedIndices           INT32 [T]   row of each slot; an index outside [0, M) selects nothing
//   probsOptional           FLOAT, FLOAT16, BF16 [N,K], K 1 to 512; its type need not be the
//                           tokens'. NULL: K = 1, rows are copied and probsGradOut is untouched
//   paddedMode              false
//   restoreShapeOptional    not read
//   permutedTokensGradOut   as unpermutedTokensGrad [M,H]; rows that no slot names are zero, of
//                           several slots naming one row the last counts
//   probsGradOut            as probsOptional [N,K]; must not be NULL
//
// Computed in fp32, rounded once to the output's type. 161001 for a required argument that is NULL;
// 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
    const aclTensor* permutedTokensOptional, const aclTensor* unpermutedTokensGrad,
    const aclTensor* sortedIndices, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* permutedTokensGradOut,
    aclTensor* probsGradOut, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteGrad(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_GRAD_H_
