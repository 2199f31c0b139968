// Gradient of aclnnMoeTokenPermuteWithEp: as aclnnMoeTokenPermuteGrad for one expert-parallel
// rank, which holds the sorted positions [r0, r1).
//
//   tokenGradOut[t]    = Σ_{j<K} permutedTokensOutputGrad[i − r0]     where r0 ≤ i < r1
//   probsGradOut[t, j] = permutedProbsOutputGradOptional[i − r0]      where r0 ≤ i < r1, else 0
//   with i = sortedIndices[t·K + j]
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, R = r1 − r0 rows of this rank, H hidden. Any strides and offsets;
// format ND; no empty tensors.
//
//   permutedTokensOutputGrad         FLOAT, FLOAT16, BF16 [≥ R, H]; the first R rows are read
//   sortedIndices                    INT32 [T]; an index outside [r0, r1) selects nothing
//   permutedProbsOutputGradOptional  as permutedTokensOutputGrad [≥ R]; NULL leaves probsGradOut
//                                    untouched
//   numTopk                          K, 1 to 512, divides T
//   rangeOptional                    {r0, r1}, 0 ≤ r0 ≤ r1 ≤ T. NULL or empty: the operator is
//                                    aclnnMoeTokenPermuteGrad, probabilities are ignored
//   paddedMode                       false
//   tokenGradOut                     as permutedTokensOutputGrad [T/K, H]
//   probsGradOut                     as permutedTokensOutputGrad [T/K, K]
//
// Sums run in fp32 in slot order and are rounded once; probabilities are copied. 161001 for a
// required argument that is NULL; 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* sortedIndices,
    const aclTensor* permutedProbsOutputGradOptional, int64_t numTopk,
    const aclIntArray* rangeOptional, bool paddedMode, const aclTensor* tokenGradOut,
    const aclTensor* probsGradOut, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEpGrad(void* workspace, uint64_t workspaceSize,
                                                     aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_GRAD_H_
