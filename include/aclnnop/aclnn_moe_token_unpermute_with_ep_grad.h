// Gradients of aclnnMoeTokenUnpermuteWithEp: as aclnnMoeTokenUnpermuteGrad for one expert-parallel
// rank, which holds the sorted positions [r0, r1).
//
//   permutedTokensGradOut[i − r0] = probsOptional[t, j] · unpermutedTokensGrad[t]
//   probsGradOut[t, j] = Σ_h permutedTokensOptional[i − r0, h] · unpermutedTokensGrad[t, h]
//   with i = sortedIndices[t·K + j], where r0 ≤ i < r1; probsGradOut is 0 elsewhere
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, R = r1 − r0 rows of this rank, H hidden. Any strides and offsets;
// format ND.
//
//   unpermutedTokensGrad    FLOAT, FLOAT16, BF16 [N,H]
//   sortedIndices           INT32 [T]; an index outside [r0, r1) selects nothing
//   permutedTokensOptional  as unpermutedTokensGrad [≥ R, H]; may be NULL without probsOptional
//   probsOptional           FLOAT, FLOAT16, BF16 [N,K]; its type need not be the tokens'. NULL:
//                           rows are copied and probsGradOut is untouched
//   paddedMode              false
//   restoreShapeOptional    not read
//   rangeOptional           {r0, r1}, 0 ≤ r0 ≤ r1 ≤ T. NULL or empty: all rows of
//                           permutedTokensGradOut, as aclnnMoeTokenUnpermuteGrad
//   topkNum                 K, 1 to 512, divides T
//   permutedTokensGradOut   as unpermutedTokensGrad [≥ R, H]; rows that no slot names, those from R
//                           on included, are zero; of several slots naming one row the last counts
//   probsGradOut            as probsOptional [N,K]; must not be NULL
//
// Computed in fp32, rounded once to the output's type. 161001 for a required argument that is NULL;
// 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclIntArray* rangeOptional, int64_t topkNum,
    const aclTensor* permutedTokensGradOut, const aclTensor* probsGradOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                                       aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_GRAD_H_
