// Mixture-of-experts permute: copies each token's row to the places that its K experts have in the
// order sorted by expert.
//
//   sortedIndicesOut[s] = rank of slot s = t·K + j in the stable ascending sort of indices
//   permuteTokensOut[rank] = tokens[t]     where rank < M
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, T slots = N × K experts of each, M rows kept. Any strides and offsets; format ND; empty
// tensors are legal.
//
//   tokens            FLOAT, FLOAT16, BF16, INT8 [N, …]
//   indices           INT32, INT64 [N,K] or [N]   expert ids, any integers; negative ones sort
//                     first. K is 1 to 512, T below 2^31
//   numOutTokens      above 0: M = min(numOutTokens, T). Else M = max(0, T + numOutTokens)
//   paddedMode        false
//   permuteTokensOut  as tokens [M, …]
//   sortedIndicesOut  INT32 [T]
//
// 161001 for a NULL argument; 161002 for a type, format, shape or attribute outside the table, and
// for an output whose elements overlap.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* indices, int64_t numOutTokens, bool paddedMode,
    const aclTensor* permuteTokensOut, const aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermute(void* workspace, uint64_t workspaceSize,
                                           aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_H_
