// Puts the rows of aclnnMoeTokenPermute back: each token sums the rows of its slots, weighted with
// their probabilities.
//
//   out[t] = Σ_{j<K} probsOptional[t, j] · permutedTokens[i],  i = sortedIndices[t·K + j],
//   where 0 ≤ i < M
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// T slots = N tokens × K experts, M permuted rows, H hidden. Any strides and offsets; format ND.
//
//   permutedTokens        FLOAT, FLOAT16, BF16 [M,H]
//   sortedIndices         INT32 [T]   row of each slot; an index outside [0, M) adds nothing
//   probsOptional         FLOAT, FLOAT16, BF16 [N,K], K 1 to 512; its type need not be the tokens'.
//                         NULL: K = 1 and weights of 1. A slot of probability 0 adds nothing
//   paddedMode            false
//   restoreShapeOptional  not read
//   out                   as permutedTokens [T/K, H]
//
// Products and sums run in fp32 in slot order and are rounded once to the output's type. 161001 for
// a required argument that is NULL; 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices, const aclTensor* probsOptional,
    bool paddedMode, const aclIntArray* restoreShapeOptional, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermute(void* workspace, uint64_t workspaceSize,
                                             aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_H_
