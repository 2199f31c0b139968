// Mixture-of-experts permute for one expert-parallel rank: as aclnnMoeTokenPermute, keeping the
// sorted positions [r0, r1), with the probabilities of the slots.
//
//   sortedIndicesOut[s] = rank of slot s = t·K + j in the stable ascending sort of indices
//   permuteTokensOut[rank − r0] = tokens[t]               where r0 ≤ rank < r1
//   permuteProbsOut[rank − r0]  = probsOptional[t, j]     likewise
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, T slots = N × K experts of each, R = r1 − r0 rows of this rank. Any strides and
// offsets; format ND; empty tensors are legal.
//
//   tokens            FLOAT, FLOAT16, BF16 [N, …]
//   indices           INT32, INT64 [N,K] or [N]   expert ids, any integers; negative ones sort
//                     first. K is 1 to 512, T below 2^31
//   probsOptional     as tokens, shape of indices; NULL leaves permuteProbsOut untouched
//   rangeOptional     {r0, r1}, 0 ≤ r0 ≤ r1 ≤ T, positions in the sorted order. NULL or empty: the
//                     operator is aclnnMoeTokenPermute, probabilities are ignored
//   numOutTokens      read without a range only, see aclnnMoeTokenPermute
//   paddedMode        false
//   permuteTokensOut  as tokens [≥ R, …]; rows from R on are zeroed
//   sortedIndicesOut  INT32 [T], all of it whatever the range
//   permuteProbsOut   as tokens [≥ R]; elements from R on are zeroed
//
// 161001 for a required argument that is NULL; 161002 for a type, format, shape or attribute
// outside the table, and for an output whose elements overlap.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, const aclTensor* probsOptional,
    const aclIntArray* rangeOptional, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut,
    const aclTensor* permuteProbsOut, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithEp(void* workspace, uint64_t workspaceSize,
                                                 aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_EP_H_
