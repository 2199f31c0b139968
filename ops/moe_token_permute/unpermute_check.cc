#include "moe_token_permute/unpermute_check.h"

#include "moe_token_permute/checks.h"

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using Tensors = UnpermuteTensors;

constexpr char kPermuted[] = "permutedTokens";
constexpr char kSortedIndices[] = "sortedIndices";
constexpr char kProbs[] = "probsOptional";
constexpr char kOut[] = "out";
constexpr char kTopk[] = "numTopk";

Status check_pointers(const Tensors& t) {
  NPULESS_TRY(require(t.permuted, kPermuted));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  return require(t.out, kOut);
}

Status check_types(const Tensors& t) {
  NPULESS_TRY(require_dtype(t.permuted, kPermuted, kFloatTypes));
  NPULESS_TRY(require_dtype(t.sorted_indices, kSortedIndices, kIndexTypes));
  if (t.probs != nullptr) NPULESS_TRY(require_dtype(t.probs, kProbs, kFloatTypes));
  return require_same_dtype(t.out, kOut, t.permuted, kPermuted);
}

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_each_tensor(const Tensors& t, Check check) {
  NPULESS_TRY(check(t.permuted, kPermuted, 2));
  NPULESS_TRY(check(t.sorted_indices, kSortedIndices, 1));
  if (t.probs != nullptr) NPULESS_TRY(check(t.probs, kProbs, 2));
  return check(t.out, kOut, 2);
}

Status check_attributes(const Tensors& t) {
  if (t.expert_parallel) NPULESS_TRY(check_topk(t.topk, kTopk));
  if (is_given(t.range)) NPULESS_TRY(check_range(*t.range));
  return check_padded_mode(t.padded_mode);
}

// The form without numTopk takes it from the probabilities and has one slot per token without.
int64_t topk_of(const Tensors& t) {
  if (t.expert_parallel) return t.topk;
  return t.probs != nullptr ? t.probs->view.dims[1] : 1;
}

Status check_range_shapes(const Tensors& t) {
  if (!is_given(t.range)) return {};
  NPULESS_TRY(check_range_end(*t.range, t.sorted_indices->view.dims[0]));
  return check_rows(t.permuted, kPermuted, t.range->values[1] - t.range->values[0]);
}

Status check_columns(const Tensors& t) {
  if (t.probs == nullptr) return {};
  if (t.expert_parallel) return require_dim(t.probs, kProbs, 1, t.topk, kTopk);
  return check_topk(topk_of(t), "dimension 1 of probsOptional");
}

Status check_shapes(const Tensors& t) {
  const char* const topk_name = t.expert_parallel ? kTopk : "dimension 1 of probsOptional";
  NPULESS_TRY(check_range_shapes(t));
  NPULESS_TRY(check_columns(t));
  NPULESS_TRY(check_slots(t.sorted_indices, topk_of(t), topk_name));
  const int64_t tokens = t.sorted_indices->view.dims[0] / topk_of(t);
  constexpr char kTokens[] = "the slots of sortedIndices over those of a token";
  if (t.probs != nullptr) NPULESS_TRY(require_dim(t.probs, kProbs, 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.out, kOut, 0, tokens, kTokens));
  NPULESS_TRY(
      require_dim(t.out, kOut, 1, t.permuted->view.dims[1], "the hidden size of permutedTokens"));
  return require_distinct(t.out, kOut);
}

}  // namespace

Status check_unpermute(const UnpermuteTensors& t) {
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

UnpermuteArgs unpack_unpermute(const UnpermuteTensors& t) {
  UnpermuteArgs args;
  args.permuted = as_matrix(*t.permuted);
  args.sorted_indices = as_vector(*t.sorted_indices);
  args.out = as_matrix(*t.out);
  args.topk = topk_of(t);
  args.range_begin = is_given(t.range) ? t.range->values[0] : 0;
  args.range_end = is_given(t.range) ? t.range->values[1] : args.permuted.rows;
  args.has_probs = t.probs != nullptr;
  if (args.has_probs) args.probs = as_matrix(*t.probs);
  return args;
}

}  // namespace npuless::moe_token_permute
