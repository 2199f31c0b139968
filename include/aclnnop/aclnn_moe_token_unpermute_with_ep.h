// aclnnMoeTokenUnpermute for one expert-parallel rank, which holds the sorted positions [r0, r1).
// The outputs of ranks that share the positions sum to the whole.
//
//   out[t] = Σ_{j<K} probsOptional[t, j] · permutedTokens[i − r0],  i = sortedIndices[t·K + j],
//   where r0 ≤ i < r1
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, R = r1 − r0 rows of this rank, H hidden. Any strides and offsets;
// format ND.
//
//   permutedTokens        FLOAT, FLOAT16, BF16 [≥ R, H]; the first R rows are read
//   sortedIndices         INT32 [T]; an index outside [r0, r1) selects nothing
//   probsOptional         FLOAT, FLOAT16, BF16 [N,K]; its type need not be the tokens'. NULL:
//                         weights of 1. A slot of probability 0 adds nothing
//   numTopk               K, 1 to 512, divides T
//   rangeOptional         {r0, r1}, 0 ≤ r0 ≤ r1 ≤ T. NULL or empty: all rows of permutedTokens, as
//                         aclnnMoeTokenUnpermute
//   paddedMode            false
//   restoreShapeOptional  not read
//   out                   as permutedTokens [T/K, H]
//
// Products and sums run in fp32 in slot order and are rounded once to the output's type. 161001 for
// a required argument that is NULL; 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    int64_t numTopk, const aclIntArray* rangeOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithEp(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_EP_H_
