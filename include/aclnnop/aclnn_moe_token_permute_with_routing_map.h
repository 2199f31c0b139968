// Mixture-of-experts permute whose routing is a map of tokens by experts.
//
// dropAndPad false: the rows in the order expert, then token; sortedIndicesOut[t·K + j] is the row
// of the j-th expert that token t chose, ascending, −1 where there is none.
// dropAndPad true: for each expert c rows, of the tokens that chose it, ascending, then of those
// that did not, ascending; sortedIndicesOut[r] is the token of row r.
#ifndef NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_H_
#define NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, H hidden, E experts. K = numOutTokens / N rows per token or c = numOutTokens / E rows
// per expert, rounded down; M = K·N or c·E rows. Any strides and offsets; format ND; empty tensors
// are legal.
//
//   tokens                   FLOAT, FLOAT16, BF16 [N,H]
//   routingMap               BOOL, INT8 [N,E]      true unless 0; N and E below 2^31
//   probsOptional            as tokens, or FLOAT with BF16 tokens [N,E]
//   numOutTokens             0 to N·E; K at most 512, M below 2^31
//   dropAndPad               see above
//   permuteTokensOut         as tokens [M,H]       rows that the map does not fill are zeroed
//   permuteProbsOutOptional  as probsOptional [M]  required with it, else not looked at
//   sortedIndicesOut         INT32 [M]
//
// 161001 for a required argument that is NULL; 161002 for a type, format, shape or attribute
// outside the table, and for an output whose elements overlap.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
    const aclTensor* tokens, const aclTensor* routingMap, const aclTensor* probsOptional,
    int64_t numOutTokens, bool dropAndPad, aclTensor* permuteTokensOut,
    aclTensor* permuteProbsOutOptional, aclTensor* sortedIndicesOut, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnMoeTokenPermuteWithRoutingMap(void* workspace, uint64_t workspaceSize,
                                                         aclOpExecutor* executor,
                                                         aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_MOE_TOKEN_PERMUTE_WITH_ROUTING_MAP_H_
