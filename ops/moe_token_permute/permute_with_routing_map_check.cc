#include "moe_token_permute/permute_with_routing_map_check.h"

#include "base/math.h"
#include "moe_token_permute/checks.h"
#include "moe_token_permute/unpack_rows.h"

namespace npuless::moe_token_permute {
namespace {

using namespace tensor;
using LongLong = long long;

constexpr DType kMapTypes[] = {DType::kBool, DType::kInt8};

constexpr char kTokens[] = "tokens";
constexpr char kMap[] = "routingMap";
constexpr char kProbs[] = "probsOptional";
constexpr char kPermuted[] = "permuteTokensOut";
constexpr char kPermutedProbs[] = "permuteProbsOutOptional";
constexpr char kSortedIndices[] = "sortedIndicesOut";

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_each_tensor(const MapPermuteTensors& t, Check check) {
  NPULESS_TRY(check(t.tokens, kTokens, 2));
  NPULESS_TRY(check(t.map, kMap, 2));
  if (t.probs != nullptr) NPULESS_TRY(check(t.probs, kProbs, 2));
  NPULESS_TRY(check(t.permuted, kPermuted, 2));
  if (t.probs != nullptr) NPULESS_TRY(check(t.permuted_probs, kPermutedProbs, 1));
  return check(t.sorted_indices, kSortedIndices, 1);
}

Status check_pointers(const MapPermuteTensors& t) {
  NPULESS_TRY(require(t.tokens, kTokens));
  NPULESS_TRY(require(t.map, kMap));
  NPULESS_TRY(require(t.permuted, kPermuted));
  if (t.probs != nullptr) NPULESS_TRY(require(t.permuted_probs, kPermutedProbs));
  return require(t.sorted_indices, kSortedIndices);
}

Status check_types(const MapPermuteTensors& t) {
  NPULESS_TRY(require_dtype(t.tokens, kTokens, kFloatTypes));
  NPULESS_TRY(require_dtype(t.map, kMap, kMapTypes));
  if (t.probs != nullptr) {
    NPULESS_TRY(check_probs_type(t.probs, kProbs, t.tokens, kTokens));
  }
  NPULESS_TRY(require_same_dtype(t.permuted, kPermuted, t.tokens, kTokens));
  if (t.probs != nullptr) {
    NPULESS_TRY(require_same_dtype(t.permuted_probs, kPermutedProbs, t.probs, kProbs));
  }
  return require_dtype(t.sorted_indices, kSortedIndices, kIndexTypes);
}

Status check_num_out_tokens(int64_t value) {
  if (value >= 0) return {};
  return fail(code::kParamInvalid, "numOutTokens must not be negative, got %lld",
              static_cast<LongLong>(value));
}

// Rows come in whole numbers for each token, or for each expert.
int64_t row_unit(const MapPermuteTensors& t) {
  return max64(1, t.map->view.dims[t.drop_and_pad ? 1 : 0]);
}

int64_t row_count(const MapPermuteTensors& t) {
  return t.num_out_tokens / row_unit(t) * row_unit(t);
}

Status check_map(const MapPermuteTensors& t) {
  constexpr char kExperts[] = "dimension 1 of routingMap";
  NPULESS_TRY(require_dim(t.map, kMap, 0, t.tokens->view.dims[0], "the number of tokens"));
  if (t.num_out_tokens > element_count(*t.map)) {
    char shape[kShapeText];
    return fail(code::kParamInvalid,
                "numOutTokens must not exceed the elements of routingMap, of shape %s, got %lld",
                shape_text(*t.map, shape), static_cast<LongLong>(t.num_out_tokens));
  }
  NPULESS_TRY(check_countable(t.map->view.dims[1], kExperts));
  if (row_count(t) <= kMaxSlots && t.map->view.dims[0] <= kMaxSlots) return {};
  return fail(code::kParamInvalid,
              "tokens and numOutTokens must be at most %lld, what INT32 indices can count, got "
              "%lld and %lld",
              static_cast<LongLong>(kMaxSlots), static_cast<LongLong>(t.map->view.dims[0]),
              static_cast<LongLong>(t.num_out_tokens));
}

Status check_rows_per_token(const MapPermuteTensors& t) {
  const int64_t topk = row_count(t) / row_unit(t);
  if (t.drop_and_pad || topk <= kMaxTopk) return {};
  return fail(code::kParamInvalid,
              "numOutTokens over the number of tokens must be at most %d, got %lld over %lld",
              kMaxTopk, static_cast<LongLong>(t.num_out_tokens),
              static_cast<LongLong>(t.map->view.dims[0]));
}

Status check_shapes(const MapPermuteTensors& t) {
  constexpr char kRows[] = "numOutTokens in whole rows per token or per expert";
  NPULESS_TRY(check_map(t));
  NPULESS_TRY(check_rows_per_token(t));
  if (t.probs != nullptr) {
    NPULESS_TRY(require_dim(t.probs, kProbs, 0, t.map->view.dims[0], "as in routingMap"));
    NPULESS_TRY(require_dim(t.probs, kProbs, 1, t.map->view.dims[1], "as in routingMap"));
  }
  NPULESS_TRY(require_dim(t.permuted, kPermuted, 0, row_count(t), kRows));
  NPULESS_TRY(require_dim(t.permuted, kPermuted, 1, t.tokens->view.dims[1], "as in tokens"));
  if (t.probs != nullptr) {
    NPULESS_TRY(require_dim(t.permuted_probs, kPermutedProbs, 0, row_count(t), kRows));
  }
  return require_dim(t.sorted_indices, kSortedIndices, 0, row_count(t), kRows);
}

Status check_outputs(const MapPermuteTensors& t) {
  NPULESS_TRY(require_distinct(t.permuted, kPermuted));
  if (t.probs != nullptr) NPULESS_TRY(require_distinct(t.permuted_probs, kPermutedProbs));
  return require_distinct(t.sorted_indices, kSortedIndices);
}

}  // namespace

Status check_probs_type(const aclTensor* probs, const char* name, const aclTensor* tokens,
                        const char* tokens_name) {
  if (tokens->dtype == DType::kBfloat16 && probs->dtype == DType::kFloat32) return {};
  return require_same_dtype(probs, name, tokens, tokens_name);
}

Status check_map_permute(const MapPermuteTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); }));
  NPULESS_TRY(check_num_out_tokens(t.num_out_tokens));
  NPULESS_TRY(for_each_tensor(t, require_rank));
  NPULESS_TRY(for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  }));
  NPULESS_TRY(check_shapes(t));
  return check_outputs(t);
}

MapPermuteArgs unpack_map_permute(const MapPermuteTensors& t) {
  MapPermuteArgs args;
  args.rows = rows_to_rows(*t.tokens, *t.permuted);
  args.map = as_matrix(*t.map);
  args.sorted_indices = as_vector(*t.sorted_indices);
  args.drop_and_pad = t.drop_and_pad;
  args.has_probs = t.probs != nullptr;
  if (!args.has_probs) return args;
  args.probs = as_matrix(*t.probs);
  args.permuted_probs = as_vector(*t.permuted_probs);
  return args;
}

}  // namespace npuless::moe_token_permute
