// Second step of the vocabulary-parallel fused linear + cross-entropy loss: from the globally
// combined maximum, sum and target logit of each token to its loss, and on request the softmax of
// this rank's logits.
//
//   lossOut = log(sumExpLogits) − predictedLogits
//   softMaxOutOptional = exp(vocabParallelLogitsOptional − logitsMax) / sumExpLogits
#ifndef NPULESS_ACLNNOP_ACLNN_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H_
#define NPULESS_ACLNNOP_ACLNN_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks and plans. N tokens, V rows of the shard. Any strides and offsets.
//
//   logitsMax                     FLOAT [N]   over all ranks
//   sumExpLogits                  FLOAT [N]   over all ranks, relative to logitsMax
//   predictedLogits               FLOAT [N]   the target's logit − logitsMax
//   labelSmoothing                0
//   inputOptional, weightOptional not read
//   vocabParallelLogitsOptional   FLOAT, FLOAT16, BF16 [N,V]; NULL: no softmax
//   lossOut                       FLOAT [N]
//   softMaxOutOptional            FLOAT [N,V]; required with logits, untouched without
//
// 161001 for a required argument that is NULL; 161002 for a type, shape or labelSmoothing outside
// the table.
ACLNN_API aclnnStatus aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
    const aclTensor* logitsMax, const aclTensor* sumExpLogits, const aclTensor* predictedLogits,
    float labelSmoothing, const aclTensor* inputOptional, const aclTensor* weightOptional,
    const aclTensor* vocabParallelLogitsOptional, aclTensor* lossOut, aclTensor* softMaxOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnFusedCrossEntropyLossWithMaxSum(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor,
                                                           aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_FUSED_CROSS_ENTROPY_LOSS_WITH_MAX_SUM_H_
