// Puts the rows of aclnnMoeTokenPermuteWithRoutingMap back: each token sums its rows, weighted with
// their probabilities.
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, H hidden, E experts, M permuted rows. Any strides and offsets; format ND.
//
// paddedMode false, K = M / N slots per token, i = sortedIndices[t·K + j]:
//   unpermutedTokens[t] = Σ_{j<K} w[t·K + j] · permutedTokens[i], where 0 ≤ i < M
//   w = permuteProbs: the probability of the j-th expert that t chose, ascending, 0 beyond those
// paddedMode true, c = M / E rows per expert:
//   unpermutedTokens[t] = Σ permuteProbs[r] · permutedTokens[r] over the rows r with
//   sortedIndices[r] = t, ascending; permuteProbs[r] = probsOptional[t, r / c]
//
//   permutedTokens        FLOAT, FLOAT16, BF16 [M,H]
//   sortedIndices         INT32 [M]   an index outside its range selects nothing
//   routingMapOptional    BOOL, INT8, UINT8 [N,E], true unless 0; required with probsOptional
//   probsOptional         as permutedTokens, or FLOAT beside BF16 [N,E]. NULL: weights of 1
//   restoreShapeOptional  {N, H}; not read unless paddedMode, required without probsOptional
//   unpermutedTokens      as permutedTokens [N,H]
//   outIndex              INT32 [M]   sortedIndices; padded: its stable ascending order
//   permuteTokenId        INT32 [M]   the token of each; padded: the sorted ids
//   permuteProbs          as probsOptional [M]; not touched without it
//
// With paddedMode false K is at most 512 and N divides M; with paddedMode true E divides M.
// Products and sums run in fp32 and are rounded once to the output's type; a probability of 0 adds
// nothing. 161001 for a required argument that is NULL; 161002 for a type, format, shape or
// attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices,
    const aclTensor* routingMapOptional, const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, aclTensor* unpermutedTokens, aclTensor* outIndex,
    aclTensor* permuteTokenId, aclTensor* permuteProbs, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor,
                                                           const aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_H_
