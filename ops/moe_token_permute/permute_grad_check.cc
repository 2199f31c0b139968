#include "moe_token_permute/permute_grad_check.h"

#include "moe_token_permute/checks.h"

namespace npuless::moe_token_permute {
namespace {

using namespace tensor;

constexpr char kSortedIndices[] = "sortedIndices";

// What both operators have, under the parameter names of the one that was called.
struct Tokens {
  const aclTensor* grad;
  const char* grad_name;
  const aclTensor* indices;
  const aclTensor* out;
  const char* out_name;
  int64_t topk;
};

Tokens tokens_of(const PermuteGradTensors& t) {
  return {t.permuted_grad, "permutedOutputGrad", t.sorted_indices, t.token_grad, "out", t.topk};
}

Tokens tokens_of(const PermuteWithEpGradTensors& t) {
  return {t.permuted_grad,  "permutedTokensOutputGrad",
          t.sorted_indices, t.token_grad,
          "tokenGradOut",   t.topk};
}

// The probabilities of a call that has a range.
struct Probs {
  const aclTensor* grad;  // null when not given: the output is checked, and left untouched
  const aclTensor* out;
  static constexpr char kGradName[] = "permutedProbsOutputGradOptional";
  static constexpr char kOutName[] = "probsGradOut";
};

Probs probs_of(const PermuteWithEpGradTensors& t) {
  return {t.has_probs() ? t.permuted_probs_grad : nullptr, t.probs_grad};
}

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_inputs(const Tokens& t, Check check) {
  NPULESS_TRY(check(t.grad, t.grad_name, 2));
  return check(t.indices, kSortedIndices, 1);
}

template <class Check>
Status for_each_tensor(const Tokens& t, const Probs* probs, Check check) {
  NPULESS_TRY(for_inputs(t, check));
  if (probs != nullptr && probs->grad != nullptr) {
    NPULESS_TRY(check(probs->grad, Probs::kGradName, 1));
  }
  NPULESS_TRY(check(t.out, t.out_name, 2));
  return probs == nullptr ? Status() : check(probs->out, Probs::kOutName, 2);
}

Status check_types(const Tokens& t, const Probs* probs) {
  NPULESS_TRY(require_dtype(t.grad, t.grad_name, kFloatTypes));
  NPULESS_TRY(require_dtype(t.indices, kSortedIndices, kIndexTypes));
  return for_each_tensor(t, probs, [&](const aclTensor* tensor, const char* name, int) {
    if (tensor == t.indices) return Status();
    return require_same_dtype(tensor, name, t.grad, t.grad_name);
  });
}

Status check_layout(const Tokens& t, const Probs* probs) {
  NPULESS_TRY(for_each_tensor(t, probs, require_rank));
  return for_each_tensor(t, probs, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  });
}

Status check_formats(const Tokens& t, const Probs* probs) {
  return for_each_tensor(t, probs, [](const aclTensor* tensor, const char* name, int) {
    return require_nd(tensor, name);
  });
}

Status check_token_grad(const Tokens& t) {
  const int64_t tokens = t.indices->view.dims[0] / t.topk;
  NPULESS_TRY(
      require_dim(t.out, t.out_name, 0, tokens, "the length of sortedIndices over numTopk"));
  NPULESS_TRY(
      require_dim(t.out, t.out_name, 1, t.grad->view.dims[1], "the hidden size of the gradient"));
  return require_distinct(t.out, t.out_name);
}

Status check_probs_grad(const Tokens& t, const Probs& probs) {
  const int64_t tokens = t.indices->view.dims[0] / t.topk;
  NPULESS_TRY(require_dim(probs.out, Probs::kOutName, 0, tokens,
                          "the length of sortedIndices over numTopk"));
  NPULESS_TRY(require_dim(probs.out, Probs::kOutName, 1, t.topk, "numTopk"));
  return require_distinct(probs.out, Probs::kOutName);
}

Status check_pointers(const PermuteWithEpGradTensors& t) {
  NPULESS_TRY(require(t.permuted_grad, "permutedTokensOutputGrad"));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  NPULESS_TRY(require(t.token_grad, "tokenGradOut"));
  return t.has_range() ? require(t.probs_grad, Probs::kOutName) : Status();
}

Status check_ranged_shapes(const Tokens& t, const Probs& probs, const aclIntArray& range) {
  const int64_t rows = range.values[1] - range.values[0];
  NPULESS_TRY(check_range_end(range, t.indices->view.dims[0]));
  NPULESS_TRY(check_rows(t.grad, t.grad_name, rows));
  if (probs.grad != nullptr) NPULESS_TRY(check_rows(probs.grad, Probs::kGradName, rows));
  NPULESS_TRY(check_token_grad(t));
  return check_probs_grad(t, probs);
}

PermuteGradArgs unpack_tokens(const Tokens& t) {
  PermuteGradArgs args;
  args.permuted_grad = as_matrix(*t.grad);
  args.sorted_indices = as_vector(*t.indices);
  args.token_grad = as_matrix(*t.out);
  args.topk = t.topk;
  args.range_end = args.permuted_grad.rows;
  return args;
}

}  // namespace

Status check_permute_grad(const PermuteGradTensors& tensors) {
  const Tokens t = tokens_of(tensors);
  NPULESS_TRY(require(t.grad, t.grad_name));
  NPULESS_TRY(require(t.indices, kSortedIndices));
  NPULESS_TRY(require(t.out, t.out_name));
  NPULESS_TRY(check_types(t, nullptr));
  NPULESS_TRY(check_formats(t, nullptr));
  NPULESS_TRY(check_topk(tensors.topk, "numTopk"));
  NPULESS_TRY(check_padded_mode(tensors.padded_mode));
  NPULESS_TRY(check_layout(t, nullptr));
  NPULESS_TRY(check_slots(t.indices, t.topk, "numTopk"));
  return check_token_grad(t);
}

Status check_permute_with_ep_grad(const PermuteWithEpGradTensors& tensors) {
  NPULESS_TRY(check_pointers(tensors));
  const Tokens t = tokens_of(tensors);
  const Probs given = probs_of(tensors);
  const Probs* probs = tensors.has_range() ? &given : nullptr;
  NPULESS_TRY(check_types(t, probs));
  NPULESS_TRY(check_formats(t, probs));
  NPULESS_TRY(check_topk(tensors.topk, "numTopk"));
  if (tensors.has_range()) NPULESS_TRY(check_range(*tensors.range));
  NPULESS_TRY(check_padded_mode(tensors.padded_mode));
  NPULESS_TRY(check_layout(t, probs));
  NPULESS_TRY(for_inputs(t, require_not_empty));
  NPULESS_TRY(check_slots(t.indices, t.topk, "numTopk"));
  return probs == nullptr ? check_token_grad(t) : check_ranged_shapes(t, *probs, *tensors.range);
}

PermuteGradArgs unpack_permute_grad(const PermuteGradTensors& tensors) {
  return unpack_tokens(tokens_of(tensors));
}

PermuteGradArgs unpack_permute_with_ep_grad(const PermuteWithEpGradTensors& tensors) {
  PermuteGradArgs args = unpack_tokens(tokens_of(tensors));
  if (!tensors.has_range()) return args;
  args.range_begin = tensors.range->values[0];
  args.range_end = tensors.range->values[1];
  args.has_probs = tensors.has_probs();
  if (!args.has_probs) return args;
  args.permuted_probs_grad = as_vector(*tensors.permuted_probs_grad);
  args.probs_grad = as_matrix(*tensors.probs_grad);
  return args;
}

}  // namespace npuless::moe_token_permute
