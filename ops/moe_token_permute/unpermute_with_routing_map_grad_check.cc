#include "base/math.h"
#include "moe_token_permute/checks.h"
#include "moe_token_permute/permute_with_routing_map_check.h"
#include "moe_token_permute/unpermute_with_routing_map_check.h"

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using LongLong = long long;
using Tensors = MapUnpermuteGradTensors;

constexpr char kGrad[] = "unpermutedTokensGrad";
constexpr char kOutIndex[] = "outIndex";
constexpr char kTokenId[] = "permuteTokenId";
constexpr char kMap[] = "routingMapOptional";
constexpr char kPermuted[] = "permutedTokensOptional";
constexpr char kProbs[] = "probsOptional";
constexpr char kPermutedGrad[] = "permutedTokensGradOut";
constexpr char kProbsGrad[] = "probsGradOutOptional";

bool has_probs(const Tensors& t) {
  return t.probs != nullptr;
}

Status check_pointers(const Tensors& t) {
  NPULESS_TRY(require(t.grad, kGrad));
  NPULESS_TRY(require(t.out_index, kOutIndex));
  NPULESS_TRY(require(t.permute_token_id, kTokenId));
  if (has_probs(t)) {
    NPULESS_TRY(require(t.map, kMap));
    NPULESS_TRY(require(t.permuted, kPermuted));
  }
  NPULESS_TRY(require(t.permuted_grad, kPermutedGrad));
  return has_probs(t) ? require(t.probs_grad, kProbsGrad) : Status();
}

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_each_tensor(const Tensors& t, Check check) {
  NPULESS_TRY(check(t.grad, kGrad, 2));
  NPULESS_TRY(check(t.out_index, kOutIndex, 1));
  NPULESS_TRY(check(t.permute_token_id, kTokenId, 1));
  if (has_probs(t)) {
    NPULESS_TRY(check(t.map, kMap, 2));
    NPULESS_TRY(check(t.permuted, kPermuted, 2));
    NPULESS_TRY(check(t.probs, kProbs, 2));
  }
  NPULESS_TRY(check(t.permuted_grad, kPermutedGrad, 2));
  return has_probs(t) ? check(t.probs_grad, kProbsGrad, 2) : Status();
}

Status check_types(const Tensors& t) {
  NPULESS_TRY(require_dtype(t.grad, kGrad, kFloatTypes));
  NPULESS_TRY(require_dtype(t.out_index, kOutIndex, kIndexTypes));
  NPULESS_TRY(require_dtype(t.permute_token_id, kTokenId, kIndexTypes));
  if (has_probs(t)) {
    NPULESS_TRY(require_dtype(t.map, kMap, kUnpermuteMapTypes));
    NPULESS_TRY(require_same_dtype(t.permuted, kPermuted, t.grad, kGrad));
    NPULESS_TRY(check_probs_type(t.probs, kProbs, t.grad, kGrad));
  }
  NPULESS_TRY(require_same_dtype(t.permuted_grad, kPermutedGrad, t.grad, kGrad));
  return has_probs(t) ? require_same_dtype(t.probs_grad, kProbsGrad, t.probs, kProbs) : Status();
}

Status check_probs_shapes(const Tensors& t) {
  const int64_t rows = t.out_index->view.dims[0];
  constexpr char kAsMap[] = "as in routingMapOptional";
  NPULESS_TRY(require_dim(t.map, kMap, 0, t.grad->view.dims[0], "the number of tokens"));
  NPULESS_TRY(check_countable(t.map->view.dims[1], "dimension 1 of routingMapOptional"));
  NPULESS_TRY(require_dim(t.permuted, kPermuted, 0, rows, "the length of outIndex"));
  NPULESS_TRY(require_dim(t.permuted, kPermuted, 1, t.grad->view.dims[1],
                          "the hidden size of unpermutedTokensGrad"));
  NPULESS_TRY(require_dim(t.probs, kProbs, 0, t.map->view.dims[0], kAsMap));
  NPULESS_TRY(require_dim(t.probs, kProbs, 1, t.map->view.dims[1], kAsMap));
  NPULESS_TRY(require_dim(t.probs_grad, kProbsGrad, 0, t.map->view.dims[0], kAsMap));
  return require_dim(t.probs_grad, kProbsGrad, 1, t.map->view.dims[1], kAsMap);
}

// No token has more slots than there are experts, no expert more rows than there are tokens.
Status check_limits(const Tensors& t) {
  const int64_t rows = t.out_index->view.dims[0];
  const int64_t elements = element_count(*t.map);
  if (rows <= elements) return {};
  return fail(code::kParamInvalid,
              "the length of outIndex must not exceed tokens times experts, %lld, got %lld",
              static_cast<LongLong>(elements), static_cast<LongLong>(rows));
}

Status check_shapes(const Tensors& t) {
  const int64_t rows = t.out_index->view.dims[0];
  if (has_probs(t)) NPULESS_TRY(check_probs_shapes(t));
  NPULESS_TRY(check_row_count(rows, t.grad->view.dims[0], t.probs, t.drop_and_pad));
  if (has_probs(t)) NPULESS_TRY(check_limits(t));
  NPULESS_TRY(require_dim(t.permute_token_id, kTokenId, 0, rows, "the length of outIndex"));
  NPULESS_TRY(check_restored(t.restore_shape, t.drop_and_pad, t.grad, kGrad));
  NPULESS_TRY(require_dim(t.permuted_grad, kPermutedGrad, 0, rows, "the length of outIndex"));
  return require_dim(t.permuted_grad, kPermutedGrad, 1, t.grad->view.dims[1],
                     "the hidden size of unpermutedTokensGrad");
}

}  // namespace

Status check_map_unpermute_grad(const MapUnpermuteGradTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); }));
  NPULESS_TRY(check_restore_shape(t.restore_shape, t.drop_and_pad));
  NPULESS_TRY(for_each_tensor(t, require_rank));
  NPULESS_TRY(for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  }));
  NPULESS_TRY(check_shapes(t));
  NPULESS_TRY(require_distinct(t.permuted_grad, kPermutedGrad));
  return has_probs(t) ? require_distinct(t.probs_grad, kProbsGrad) : Status();
}

MapUnpermuteGradArgs unpack_map_unpermute_grad(const MapUnpermuteGradTensors& t) {
  MapUnpermuteGradArgs args;
  UnpermuteGradArgs& sums = args.sums;
  sums.grad = as_matrix(*t.grad);
  sums.sorted_indices = as_vector(*t.out_index);
  sums.permuted_grad = as_matrix(*t.permuted_grad);
  sums.topk = sums.permuted_grad.rows / max64(1, sums.grad.rows);
  sums.range_end = sums.permuted_grad.rows;
  sums.has_probs = has_probs(t);
  sums.mapped = sums.has_probs && !t.drop_and_pad;
  args.permute_token_id = as_vector(*t.permute_token_id);
  args.drop_and_pad = t.drop_and_pad;
  if (!sums.has_probs) return args;
  sums.permuted = as_matrix(*t.permuted);
  sums.probs = as_matrix(*t.probs);
  sums.map = as_matrix(*t.map);
  sums.probs_grad = as_matrix(*t.probs_grad);
  return args;
}

}  // namespace npuless::moe_token_permute
