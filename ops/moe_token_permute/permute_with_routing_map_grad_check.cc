#include "moe_token_permute/checks.h"
#include "moe_token_permute/permute_with_routing_map_check.h"

namespace npuless::moe_token_permute {
namespace {

using namespace tensor;
using LongLong = long long;

constexpr DType kMapTypes[] = {DType::kBool, DType::kInt8};

constexpr char kGrad[] = "permutedTokensOutputGrad";
constexpr char kProbs[] = "permutedProbsOutputGradOptional";
constexpr char kSortedIndices[] = "sortedIndices";
constexpr char kMap[] = "routingMapOptional";
constexpr char kTokenGrad[] = "tokenGradOut";
constexpr char kProbsGrad[] = "probsGradOutOptional";

bool has_probs(const MapPermuteGradTensors& t) {
  return t.permuted_probs_grad != nullptr;
}

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_each_tensor(const MapPermuteGradTensors& t, Check check) {
  NPULESS_TRY(check(t.permuted_grad, kGrad, 2));
  if (has_probs(t)) NPULESS_TRY(check(t.permuted_probs_grad, kProbs, 1));
  NPULESS_TRY(check(t.sorted_indices, kSortedIndices, 1));
  if (has_probs(t)) NPULESS_TRY(check(t.map, kMap, 2));
  NPULESS_TRY(check(t.token_grad, kTokenGrad, 2));
  return has_probs(t) ? check(t.probs_grad, kProbsGrad, 2) : Status();
}

Status check_pointers(const MapPermuteGradTensors& t) {
  NPULESS_TRY(require(t.permuted_grad, kGrad));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  if (has_probs(t)) NPULESS_TRY(require(t.map, kMap));
  NPULESS_TRY(require(t.token_grad, kTokenGrad));
  return has_probs(t) ? require(t.probs_grad, kProbsGrad) : Status();
}

Status check_types(const MapPermuteGradTensors& t) {
  NPULESS_TRY(require_dtype(t.permuted_grad, kGrad, kFloatTypes));
  if (has_probs(t)) {
    NPULESS_TRY(check_probs_type(t.permuted_probs_grad, kProbs, t.permuted_grad, kGrad));
  }
  NPULESS_TRY(require_dtype(t.sorted_indices, kSortedIndices, kIndexTypes));
  if (has_probs(t)) NPULESS_TRY(require_dtype(t.map, kMap, kMapTypes));
  NPULESS_TRY(require_same_dtype(t.token_grad, kTokenGrad, t.permuted_grad, kGrad));
  return has_probs(t) ? require_same_dtype(t.probs_grad, kProbsGrad, t.permuted_probs_grad, kProbs)
                      : Status();
}

Status check_count(int64_t value, const char* name) {
  if (value > 0) return check_countable(value, name);
  return fail(code::kParamInvalid, "%s must be above 0, got %lld", name,
              static_cast<LongLong>(value));
}

// Indices come in whole numbers for each token, at most kMaxTopk, or for each expert.
Status check_indices(const MapPermuteGradTensors& t) {
  const int64_t size = t.sorted_indices->view.dims[0];
  const int64_t unit = t.drop_and_pad ? t.experts : t.tokens;
  NPULESS_TRY(check_countable(size, "the length of sortedIndices"));
  if (size % unit == 0 && (t.drop_and_pad || size / unit <= kMaxTopk)) return {};
  if (t.drop_and_pad) {
    return fail(code::kParamInvalid,
                "the length of sortedIndices must be a multiple of numExperts, %lld, got %lld",
                static_cast<LongLong>(unit), static_cast<LongLong>(size));
  }
  return fail(code::kParamInvalid,
              "the length of sortedIndices must be tokensNum, %lld, times at most %d, got %lld",
              static_cast<LongLong>(unit), kMaxTopk, static_cast<LongLong>(size));
}

Status check_probs_shapes(const MapPermuteGradTensors& t) {
  NPULESS_TRY(require_dim(t.permuted_probs_grad, kProbs, 0, t.sorted_indices->view.dims[0],
                          "the length of sortedIndices"));
  NPULESS_TRY(require_dim(t.map, kMap, 0, t.tokens, "tokensNum"));
  NPULESS_TRY(require_dim(t.map, kMap, 1, t.experts, "numExperts"));
  NPULESS_TRY(require_dim(t.probs_grad, kProbsGrad, 0, t.tokens, "tokensNum"));
  return require_dim(t.probs_grad, kProbsGrad, 1, t.experts, "numExperts");
}

Status check_shapes(const MapPermuteGradTensors& t) {
  NPULESS_TRY(check_indices(t));
  NPULESS_TRY(require_dim(t.permuted_grad, kGrad, 0, t.sorted_indices->view.dims[0],
                          "the length of sortedIndices"));
  NPULESS_TRY(require_dim(t.token_grad, kTokenGrad, 0, t.tokens, "tokensNum"));
  NPULESS_TRY(require_dim(t.token_grad, kTokenGrad, 1, t.permuted_grad->view.dims[1],
                          "the hidden size of the gradient"));
  return has_probs(t) ? check_probs_shapes(t) : Status();
}

}  // namespace

Status check_map_permute_grad(const MapPermuteGradTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); }));
  NPULESS_TRY(check_count(t.experts, "numExperts"));
  NPULESS_TRY(check_count(t.tokens, "tokensNum"));
  NPULESS_TRY(for_each_tensor(t, require_rank));
  NPULESS_TRY(for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  }));
  NPULESS_TRY(check_shapes(t));
  NPULESS_TRY(require_distinct(t.token_grad, kTokenGrad));
  return has_probs(t) ? require_distinct(t.probs_grad, kProbsGrad) : Status();
}

MapPermuteGradArgs unpack_map_permute_grad(const MapPermuteGradTensors& t) {
  MapPermuteGradArgs args;
  args.permuted_grad = as_matrix(*t.permuted_grad);
  args.sorted_indices = as_vector(*t.sorted_indices);
  args.token_grad = as_matrix(*t.token_grad);
  args.experts = t.experts;
  args.drop_and_pad = t.drop_and_pad;
  args.has_probs = has_probs(t);
  if (!args.has_probs) return args;
  args.permuted_probs_grad = as_vector(*t.permuted_probs_grad);
  args.map = as_matrix(*t.map);
  args.probs_grad = as_matrix(*t.probs_grad);
  return args;
}

}  // namespace npuless::moe_token_permute
