// Gradients of aclnnMoeTokenUnpermuteWithRoutingMap.
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, H hidden, E experts, M permuted rows. Any strides and offsets; format ND.
//
// dropAndPad false, K = M / N slots per token, i = outIndex[t·K + j], e the j-th expert of t:
//   permutedTokensGradOut[i]   = probsOptional[t, e] · unpermutedTokensGrad[t], where 0 ≤ i < M
//   probsGradOutOptional[t, e] = Σ_h permutedTokensOptional[i, h] · unpermutedTokensGrad[t, h]
// dropAndPad true, c = M / E rows per expert: the same with i = outIndex[k], t = permuteTokenId[k],
// e = i / c for each k.
//
//   unpermutedTokensGrad    FLOAT, FLOAT16, BF16 [N,H]
//   outIndex                INT32 [M]   an index outside its range selects nothing
//   permuteTokenId          INT32 [M]   read with dropAndPad only
//   routingMapOptional      BOOL, INT8, UINT8 [N,E], true unless 0; required with probsOptional
//   permutedTokensOptional  as unpermutedTokensGrad [M,H]; required with probsOptional
//   probsOptional           as unpermutedTokensGrad, or FLOAT beside BF16 [N,E]. NULL: rows are
//                           copied
//   restoreShapeOptional    {N, H}, or NULL; not read unless dropAndPad
//   permutedTokensGradOut   as unpermutedTokensGrad [M,H]; rows that nothing names are zero, of
//                           several names of one row the last counts
//   probsGradOutOptional    as probsOptional [N,E], 0 where nothing is selected; required with
//                           probsOptional, not touched without it
//
// M is at most N·E with probsOptional; with dropAndPad false K is at most 512 and N divides M; with
// dropAndPad true E divides M. Computed in fp32, rounded once to the output's type. 161001 for a
// required argument that is NULL; 161002 for a type, format, shape or attribute outside the table.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* unpermutedTokensGrad, const aclTensor* outIndex,
    const aclTensor* permuteTokenId, const aclTensor* routingMapOptional,
    const aclTensor* permutedTokensOptional, const aclTensor* probsOptional, bool dropAndPad,
    const aclIntArray* restoreShapeOptional, const aclTensor* permutedTokensGradOut,
    const aclTensor* probsGradOutOptional, uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenUnpermuteWithRoutingMapGrad(void* workspace,
                                                               uint64_t workspaceSize,
                                                               aclOpExecutor* executor,
                                                               aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_UNPERMUTE_WITH_ROUTING_MAP_GRAD_H_
