// First step of the vocabulary-parallel fused linear + cross-entropy loss: this rank's logits
// X·Wᵀ reduced to a maximum and a sum of exponentials per token, and the target's logit.
//
//   z = X·Wᵀ        logitsMaxLocalOut = max z        sumExpLogitsLocalOut = Σ exp(z − max)
//   predictedLogitsLocalOut = z[target − vocabStartIndex] − max where this rank owns the target
//
// The caller then combines the ranks: gmax = MAX(max); sum ← SUM(sum·exp(max − gmax)); predicted ←
// SUM(predicted + (max − gmax) on the owner, 0 elsewhere).
#ifndef NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_ONLINE_MAX_SUM_H_
#define NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_ONLINE_MAX_SUM_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, H hidden, V rows of the shard. Any strides and offsets.
//
//   input                            FLOAT16, BF16 [N,H]  X, H ≤ 65534
//   weight                           as input [V,H]       W, V > 0
//   target                           INT32, INT64 [N]     ids in the whole vocabulary
//   vocabStartIndex, vocabEndIndex   this rank owns start ≤ id < end; 0 ≤ start ≤ end. Not
//                                    compared with V: all rows enter max and sum, and an owned id
//                                    without a row has predicted logit −infinity
//   logitsMaxLocalOut                FLOAT [N]
//   sumExpLogitsLocalOut             FLOAT [N]
//   predictedLogitsLocalOut          FLOAT [N]            0 where the target is not owned
//   targetMaskOut                    UINT8 [(N+7)/8]      bit p%8 of byte p/8 is 1 when token p's
//                                                         target is not owned; bits past N are 1
//   maskedTargetOut                  as target [N]        target − start where owned, else 0
//   vocabParallelLogitsOutOptional   as input [N,V]       z, rounded; NULL: never held
//
// 161001 for a required argument that is NULL; 161002 for a type, shape or range outside the table.
// N = 0 succeeds and writes nothing.
ACLNN_API aclnnStatus aclnnFusedLinearOnlineMaxSumGetWorkspaceSize(
    const aclTensor* input, const aclTensor* weight, const aclTensor* target,
    int64_t vocabStartIndex, int64_t vocabEndIndex, aclTensor* logitsMaxLocalOut,
    aclTensor* sumExpLogitsLocalOut, aclTensor* predictedLogitsLocalOut, aclTensor* targetMaskOut,
    aclTensor* maskedTargetOut, aclTensor* vocabParallelLogitsOutOptional, uint64_t* workspaceSize,
    aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnFusedLinearOnlineMaxSum(void* workspace, uint64_t workspaceSize,
                                                   aclOpExecutor* executor, aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_ONLINE_MAX_SUM_H_
