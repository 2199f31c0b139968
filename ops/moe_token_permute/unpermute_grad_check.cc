#include "moe_token_permute/unpermute_grad_check.h"

#include "moe_token_permute/checks.h"

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using Tensors = UnpermuteGradTensors;

constexpr char kPermuted[] = "permutedTokensOptional";
constexpr char kGrad[] = "unpermutedTokensGrad";
constexpr char kSortedIndices[] = "sortedIndices";
constexpr char kProbs[] = "probsOptional";
constexpr char kPermutedGrad[] = "permutedTokensGradOut";
constexpr char kProbsGrad[] = "probsGradOut";
constexpr char kTopk[] = "topkNum";

Status require_permuted(const Tensors& t) {
  return t.probs == nullptr ? Status() : require(t.permuted, kPermuted);
}

// The permuted tokens are the first parameter of one operator and the third of the other.
Status check_pointers(const Tensors& t) {
  if (!t.expert_parallel) NPULESS_TRY(require_permuted(t));
  NPULESS_TRY(require(t.grad, kGrad));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  if (t.expert_parallel) NPULESS_TRY(require_permuted(t));
  NPULESS_TRY(require(t.permuted_grad, kPermutedGrad));
  return require(t.probs_grad, kProbsGrad);
}

// Applies `check(tensor, name, rank)` in prototype order. Without probabilities nothing is said
// about the tensor for their gradient.
template <class Check>
Status for_each_tensor(const Tensors& t, Check check) {
  const auto check_permuted = [&] {
    return t.permuted == nullptr ? Status() : check(t.permuted, kPermuted, 2);
  };
  if (!t.expert_parallel) NPULESS_TRY(check_permuted());
  NPULESS_TRY(check(t.grad, kGrad, 2));
  NPULESS_TRY(check(t.sorted_indices, kSortedIndices, 1));
  if (t.expert_parallel) NPULESS_TRY(check_permuted());
  if (t.probs != nullptr) NPULESS_TRY(check(t.probs, kProbs, 2));
  NPULESS_TRY(check(t.permuted_grad, kPermutedGrad, 2));
  return t.probs == nullptr ? Status() : check(t.probs_grad, kProbsGrad, 2);
}

Status check_types(const Tensors& t) {
  NPULESS_TRY(require_dtype(t.grad, kGrad, kFloatTypes));
  return for_each_tensor(t, [&](const aclTensor* tensor, const char* name, int) {
    if (tensor == t.sorted_indices) return require_dtype(tensor, name, kIndexTypes);
    if (tensor == t.probs) return require_dtype(tensor, name, kFloatTypes);
    if (tensor == t.probs_grad) return require_same_dtype(tensor, name, t.probs, kProbs);
    return require_same_dtype(tensor, name, t.grad, kGrad);
  });
}

Status check_attributes(const Tensors& t) {
  NPULESS_TRY(check_padded_mode(t.padded_mode));
  if (is_given(t.range)) NPULESS_TRY(check_range(*t.range));
  return t.expert_parallel ? check_topk(t.topk, kTopk) : Status();
}

// The form without topkNum takes it from the probabilities and has one slot per token without.
int64_t topk_of(const Tensors& t) {
  if (t.expert_parallel) return t.topk;
  return t.probs != nullptr ? t.probs->view.dims[1] : 1;
}

Status check_columns(const Tensors& t) {
  if (t.probs == nullptr) return {};
  if (t.expert_parallel) return require_dim(t.probs, kProbs, 1, t.topk, kTopk);
  return check_topk(topk_of(t), "dimension 1 of probsOptional");
}

// Rows of a range, or one row of the output for each given one.
Status check_permuted_rows(const Tensors& t) {
  if (!is_given(t.range)) {
    NPULESS_TRY(
        check_countable(t.permuted_grad->view.dims[0], "the rows of permutedTokensGradOut"));
    if (t.permuted == nullptr) return {};
    return require_dim(t.permuted_grad, kPermutedGrad, 0, t.permuted->view.dims[0],
                       "the length of permutedTokensOptional");
  }
  const int64_t rows = t.range->values[1] - t.range->values[0];
  NPULESS_TRY(check_range_end(*t.range, t.sorted_indices->view.dims[0]));
  if (t.permuted != nullptr) NPULESS_TRY(check_rows(t.permuted, kPermuted, rows));
  return check_rows(t.permuted_grad, kPermutedGrad, rows);
}

Status check_hidden(const Tensors& t) {
  const int64_t hidden = t.grad->view.dims[1];
  constexpr char kHidden[] = "the hidden size of unpermutedTokensGrad";
  if (t.permuted != nullptr) NPULESS_TRY(require_dim(t.permuted, kPermuted, 1, hidden, kHidden));
  return require_dim(t.permuted_grad, kPermutedGrad, 1, hidden, kHidden);
}

Status check_probs_grad(const Tensors& t) {
  if (t.probs == nullptr) return {};
  NPULESS_TRY(
      require_dim(t.probs_grad, kProbsGrad, 0, t.probs->view.dims[0], "the rows of probsOptional"));
  NPULESS_TRY(require_dim(t.probs_grad, kProbsGrad, 1, t.probs->view.dims[1],
                          "the columns of probsOptional"));
  return require_distinct(t.probs_grad, kProbsGrad);
}

Status check_shapes(const Tensors& t) {
  NPULESS_TRY(check_columns(t));
  NPULESS_TRY(check_slots(t.sorted_indices, topk_of(t),
                          t.expert_parallel ? kTopk : "dimension 1 of probsOptional"));
  const int64_t tokens = t.sorted_indices->view.dims[0] / topk_of(t);
  constexpr char kTokens[] = "the slots of sortedIndices over those of a token";
  NPULESS_TRY(require_dim(t.grad, kGrad, 0, tokens, kTokens));
  if (t.probs != nullptr) NPULESS_TRY(require_dim(t.probs, kProbs, 0, tokens, kTokens));
  NPULESS_TRY(check_permuted_rows(t));
  NPULESS_TRY(check_hidden(t));
  NPULESS_TRY(require_distinct(t.permuted_grad, kPermutedGrad));
  return check_probs_grad(t);
}

}  // namespace

Status check_unpermute_grad(const UnpermuteGradTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); }));
  NPULESS_TRY(check_attributes(t));
  NPULESS_TRY(for_each_tensor(t, require_rank));
  NPULESS_TRY(for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  }));
  return check_shapes(t);
}

UnpermuteGradArgs unpack_unpermute_grad(const UnpermuteGradTensors& t) {
  UnpermuteGradArgs args;
  args.grad = as_matrix(*t.grad);
  args.sorted_indices = as_vector(*t.sorted_indices);
  args.permuted_grad = as_matrix(*t.permuted_grad);
  args.topk = topk_of(t);
  args.range_begin = is_given(t.range) ? t.range->values[0] : 0;
  args.range_end = is_given(t.range) ? t.range->values[1] : args.permuted_grad.rows;
  args.has_probs = t.probs != nullptr;
  if (!args.has_probs) return args;
  args.permuted = as_matrix(*t.permuted);
  args.probs = as_matrix(*t.probs);
  args.probs_grad = as_matrix(*t.probs_grad);
  return args;
}

}  // namespace npuless::moe_token_permute
