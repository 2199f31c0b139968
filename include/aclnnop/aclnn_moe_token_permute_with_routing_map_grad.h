// Gradient of aclnnMoeTokenPermuteWithRoutingMap.
//
// dropAndPad false: tokenGradOut[t] = Σ_{j<K} permutedTokensOutputGrad[sortedIndices[t·K + j]];
// probsGradOutOptional[t, e] = permutedProbsOutputGradOptional[row of t for e] where the map is
// true, else 0.
// dropAndPad true: tokenGradOut[t] = Σ permutedTokensOutputGrad[r] over the rows r with
// sortedIndices[r] = t, ascending; probsGradOutOptional[sortedIndices[r], r / c] =
// permutedProbsOutputGradOptional[r], else 0.
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N = tokensNum, E = numExperts, H hidden, M rows: K·N, or c·E with dropAndPad. Any strides and
// offsets; format ND; with M = 0 the outputs are zeroed.
//
//   permutedTokensOutputGrad         FLOAT, FLOAT16, BF16 [M,H]
//   permutedProbsOutputGradOptional  as permutedTokensOutputGrad, or FLOAT with BF16 [M]
//   sortedIndices                    INT32 [M]; an index outside its range selects nothing
//   routingMapOptional               BOOL, INT8 [N,E]; required with probabilities
//   numExperts, tokensNum            1 to 2^31 - 1; K at most 512, M below 2^31
//   dropAndPad                       as given to the forward operator
//   tokenGradOut                     as permutedTokensOutputGrad [N,H]
//   probsGradOutOptional             as permutedProbsOutputGradOptional [N,E]; required with it,
//                                    else not looked at
//
// Sums run in fp32 and are rounded once; probabilities are copied. 161001 for a required argument
// that is NULL; 161002 for a type, format, shape or attribute outside the table, and for an output
// whose elements overlap.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
    const aclTensor* permutedTokensOutputGrad, const aclTensor* permutedProbsOutputGradOptional,
    const aclTensor* sortedIndices, const aclTensor* routingMapOptional, int64_t numExperts,
    int64_t tokensNum, bool dropAndPad, aclTensor* tokenGradOut, aclTensor* probsGradOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGrad(void* workspace,
                                                             uint64_t workspaceSize,
                                                             aclOpExecutor* executor,
                                                             aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_GRAD_H_
