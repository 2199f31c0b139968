// Gradients of the vocabulary-parallel fused linear + cross-entropy loss with respect to the
// hidden states X and to this rank's shard W of the vocabulary weights.
//
//   softmax = exp(X·Wᵀ − logitsMax) / sumExpLogits, or softmaxOptional as given
//   d       = (softmax − onehot(maskedTarget) where the mask bit is 0) ⊙ grad
//   inputGradOut = d·W        weightGradOut = dᵀ·X
#ifndef NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H_
#define NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H_

#include "aclnn/aclnn_base.h"
#include "aclnn_util.h"

extern "C" {

// Phase 1: checks, plans, says how much workspace (bytes of device memory) phase 2 needs.
// N tokens, H hidden, V rows of the shard. Any strides and offsets; format ND.
//
//   grad                  FLOAT [N]           gradient of each token's loss
//   input                 FLOAT16, BF16 [N,H] X
//   weight                as input [V,H]      W, V ≥ 128
//   targetMask            UINT8 [M], 8·M ≥ N: bit p%8 of byte p/8 is 1 when token p's target is
//                         not in this shard; or BOOL [N]
//   maskedTarget          INT32, INT64 [N]    target as a row of W; read where the mask is 0
//   labelSmoothing        0
//   logitsMaxOptional     FLOAT [N]           maximum of the logits over all shards
//   sumExpLogitsOptional  FLOAT [N]           Σ exp(logit − maximum) over all shards
//   softmaxOptional       FLOAT [N,V]         when given, the two above are not read; when NULL,
//                                             they are required and no N×V buffer is made
//   inputGradOut          as input [N,H]
//   weightGradOut         as input [V,H]
//
// 161001 for a required argument that is NULL; 161002 for a type, format, shape or labelSmoothing
// outside the table; 361001 when aclrtGetSocName names a device without the operator. An empty
// input or weight succeeds and leaves the outputs untouched.
ACLNN_API aclnnStatus aclnnFusedLinearCrossEntropyLossGradGetWorkspaceSize(
    const aclTensor* grad, const aclTensor* input, const aclTensor* weight,
    const aclTensor* targetMask, const aclTensor* maskedTarget, float labelSmoothing,
    const aclTensor* logitsMaxOptional, const aclTensor* sumExpLogitsOptional,
    const aclTensor* softmaxOptional, aclTensor* inputGradOut, aclTensor* weightGradOut,
    uint64_t* workspaceSize, aclOpExecutor** executor);

// Phase 2: queues the computation on the stream. Uses up the executor unless it is repeatable.
// 161001 for a NULL executor, or a NULL workspace with a size above 0; 161002 for a workspace
// smaller than phase 1 said; 561103 for an executor already used or destroyed.
ACLNN_API aclnnStatus aclnnFusedLinearCrossEntropyLossGrad(void* workspace, uint64_t workspaceSize,
                                                           aclOpExecutor* executor,
                                                           aclrtStream stream);

}  // extern "C"

#endif  // NPULESS_ACLNNOP_ACLNN_FUSED_LINEAR_CROSS_ENTROPY_LOSS_GRAD_H_
