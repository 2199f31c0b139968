#include "moe_token_permute/unpermute_with_routing_map_check.h"

#include "base/math.h"
#include "moe_token_permute/checks.h"
#include "moe_token_permute/permute_with_routing_map_check.h"

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using LongLong = long long;
using Tensors = MapUnpermuteTensors;

constexpr char kPermuted[] = "permutedTokens";
constexpr char kSortedIndices[] = "sortedIndices";
constexpr char kMap[] = "routingMapOptional";
constexpr char kProbs[] = "probsOptional";
constexpr char kRestoreShape[] = "restoreShapeOptional";
constexpr char kOut[] = "unpermutedTokens";
constexpr char kOutIndex[] = "outIndex";
constexpr char kTokenId[] = "permuteTokenId";
constexpr char kPermuteProbs[] = "permuteProbs";

Status check_pointers(const Tensors& t) {
  NPULESS_TRY(require(t.permuted, kPermuted));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  if (t.probs != nullptr) NPULESS_TRY(require(t.map, kMap));
  if (t.probs == nullptr && t.restore_shape == nullptr) {
    return fail(code::kParamNullptr, "%s and %s must not both be null", kProbs, kRestoreShape);
  }
  NPULESS_TRY(require(t.out, kOut));
  NPULESS_TRY(require(t.out_index, kOutIndex));
  NPULESS_TRY(require(t.permute_token_id, kTokenId));
  return t.probs == nullptr ? Status() : require(t.permute_probs, kPermuteProbs);
}

// Applies `check(tensor, name, rank)` in prototype order.
template <class Check>
Status for_each_tensor(const Tensors& t, Check check) {
  NPULESS_TRY(check(t.permuted, kPermuted, 2));
  NPULESS_TRY(check(t.sorted_indices, kSortedIndices, 1));
  if (t.probs != nullptr) {
    NPULESS_TRY(check(t.map, kMap, 2));
    NPULESS_TRY(check(t.probs, kProbs, 2));
  }
  NPULESS_TRY(check(t.out, kOut, 2));
  NPULESS_TRY(check(t.out_index, kOutIndex, 1));
  NPULESS_TRY(check(t.permute_token_id, kTokenId, 1));
  return t.probs == nullptr ? Status() : check(t.permute_probs, kPermuteProbs, 1);
}

Status check_types(const Tensors& t) {
  NPULESS_TRY(require_dtype(t.permuted, kPermuted, kFloatTypes));
  NPULESS_TRY(require_dtype(t.sorted_indices, kSortedIndices, kIndexTypes));
  if (t.probs != nullptr) {
    NPULESS_TRY(require_dtype(t.map, kMap, kUnpermuteMapTypes));
    NPULESS_TRY(check_probs_type(t.probs, kProbs, t.permuted, kPermuted));
  }
  NPULESS_TRY(require_same_dtype(t.out, kOut, t.permuted, kPermuted));
  NPULESS_TRY(require_dtype(t.out_index, kOutIndex, kIndexTypes));
  NPULESS_TRY(require_dtype(t.permute_token_id, kTokenId, kIndexTypes));
  if (t.probs == nullptr) return {};
  return require_same_dtype(t.permute_probs, kPermuteProbs, t.probs, kProbs);
}

Status check_probs_shapes(const Tensors& t) {
  if (t.probs == nullptr) return {};
  NPULESS_TRY(require_dim(t.map, kMap, 0, t.out->view.dims[0], "the number of tokens"));
  NPULESS_TRY(check_countable(t.map->view.dims[1], "dimension 1 of routingMapOptional"));
  NPULESS_TRY(require_dim(t.probs, kProbs, 0, t.map->view.dims[0], "as in routingMapOptional"));
  return require_dim(t.probs, kProbs, 1, t.map->view.dims[1], "as in routingMapOptional");
}

Status check_shapes(const Tensors& t) {
  const int64_t rows = t.permuted->view.dims[0];
  constexpr char kRows[] = "the rows of permutedTokens";
  NPULESS_TRY(check_probs_shapes(t));
  NPULESS_TRY(check_row_count(rows, t.out->view.dims[0], t.probs, t.padded_mode));
  NPULESS_TRY(require_dim(t.sorted_indices, kSortedIndices, 0, rows, kRows));
  NPULESS_TRY(
      require_dim(t.out, kOut, 1, t.permuted->view.dims[1], "the hidden size of permutedTokens"));
  NPULESS_TRY(check_restored(t.restore_shape, t.padded_mode, t.out, kOut));
  NPULESS_TRY(require_dim(t.out_index, kOutIndex, 0, rows, kRows));
  NPULESS_TRY(require_dim(t.permute_token_id, kTokenId, 0, rows, kRows));
  return t.probs == nullptr ? Status()
                            : require_dim(t.permute_probs, kPermuteProbs, 0, rows, kRows);
}

Status check_outputs(const Tensors& t) {
  NPULESS_TRY(require_distinct(t.out, kOut));
  NPULESS_TRY(require_distinct(t.out_index, kOutIndex));
  NPULESS_TRY(require_distinct(t.permute_token_id, kTokenId));
  return t.probs == nullptr ? Status() : require_distinct(t.permute_probs, kPermuteProbs);
}

}  // namespace

Status check_restore_shape(const aclIntArray* shape, bool padded_mode) {
  if (!padded_mode || shape == nullptr || shape->size == 2) return {};
  return fail(code::kParamInvalid, "%s must have 2 elements, got %lld", kRestoreShape,
              static_cast<LongLong>(shape->size));
}

Status check_restored(const aclIntArray* shape, bool padded_mode, const aclTensor* tokens,
                      const char* name) {
  if (!padded_mode || shape == nullptr) return {};
  NPULESS_TRY(require_dim(tokens, name, 0, shape->values[0], kRestoreShape));
  return require_dim(tokens, name, 1, shape->values[1], kRestoreShape);
}

Status check_row_count(int64_t rows, int64_t tokens, const aclTensor* probs, bool padded_mode) {
  if (rows > kMaxSlots || tokens > kMaxSlots) {
    return fail(code::kParamInvalid,
                "tokens and permuted rows must be at most %lld, what INT32 indices can count, got "
                "%lld and %lld",
                static_cast<LongLong>(kMaxSlots), static_cast<LongLong>(tokens),
                static_cast<LongLong>(rows));
  }
  if (padded_mode) {
    if (probs == nullptr || rows == 0) return {};
    const int64_t experts = probs->view.dims[1];
    if (experts > 0 && rows % experts == 0) return {};
    return fail(code::kParamInvalid,
                "the permuted rows must be a multiple of the number of experts, %lld, got %lld",
                static_cast<LongLong>(experts), static_cast<LongLong>(rows));
  }
  if (rows == 0 || (tokens > 0 && rows % tokens == 0 && rows / tokens <= kMaxTopk)) return {};
  return fail(code::kParamInvalid,
              "the permuted rows must be the number of tokens, %lld, times at most %d, got %lld",
              static_cast<LongLong>(tokens), kMaxTopk, static_cast<LongLong>(rows));
}

Status check_map_unpermute(const MapUnpermuteTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); }));
  NPULESS_TRY(check_restore_shape(t.restore_shape, t.padded_mode));
  NPULESS_TRY(for_each_tensor(t, require_rank));
  NPULESS_TRY(for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  }));
  NPULESS_TRY(check_shapes(t));
  return check_outputs(t);
}

MapUnpermuteArgs unpack_map_unpermute(const MapUnpermuteTensors& t) {
  MapUnpermuteArgs args;
  UnpermuteArgs& sums = args.sums;
  sums.permuted = as_matrix(*t.permuted);
  sums.sorted_indices = as_vector(*t.sorted_indices);
  sums.out = as_matrix(*t.out);
  sums.topk = sums.permuted.rows / max64(1, sums.out.rows);
  sums.range_end = sums.permuted.rows;
  sums.has_probs = t.probs != nullptr;
  sums.mapped = sums.has_probs && !t.padded_mode;
  args.out_index = as_vector(*t.out_index);
  args.permute_token_id = as_vector(*t.permute_token_id);
  args.padded_mode = t.padded_mode;
  if (!sums.has_probs) return args;
  sums.probs = as_matrix(*t.probs);
  sums.map = as_matrix(*t.map);
  args.permute_probs = as_vector(*t.permute_probs);
  return args;
}

}  // namespace npuless::moe_token_permute
