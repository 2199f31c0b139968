#include "moe_token_permute/permute_check.h"

#include <algorithm>

#include "base/math.h"
#include "moe_token_permute/checks.h"
#include "moe_token_permute/unpack_rows.h"

namespace npuless::moe_token_permute {
namespace {

using namespace tensor;
using LongLong = long long;

constexpr DType kTokenTypes[] = {DType::kBfloat16, DType::kFloat16, DType::kFloat32, DType::kInt8};
constexpr DType kIdTypes[] = {DType::kInt32, DType::kInt64};

constexpr char kTokens[] = "tokens";
constexpr char kIndices[] = "indices";
constexpr char kProbs[] = "probsOptional";
constexpr char kPermuted[] = "permuteTokensOut";
constexpr char kSortedIndices[] = "sortedIndicesOut";
constexpr char kPermutedProbs[] = "permuteProbsOut";

// Applies `check(tensor, name)` in prototype order.
template <class Check>
Status for_each_tensor(const PermuteTensors& t, Check check) {
  NPULESS_TRY(check(t.tokens, kTokens));
  NPULESS_TRY(check(t.indices, kIndices));
  if (t.has_range() && t.probs != nullptr) NPULESS_TRY(check(t.probs, kProbs));
  NPULESS_TRY(check(t.permuted, kPermuted));
  NPULESS_TRY(check(t.sorted_indices, kSortedIndices));
  return t.has_range() ? check(t.permuted_probs, kPermutedProbs) : Status();
}

Status check_pointers(const PermuteTensors& t) {
  NPULESS_TRY(require(t.tokens, kTokens));
  NPULESS_TRY(require(t.indices, kIndices));
  NPULESS_TRY(require(t.permuted, kPermuted));
  NPULESS_TRY(require(t.sorted_indices, kSortedIndices));
  return t.has_range() ? require(t.permuted_probs, kPermutedProbs) : Status();
}

// INT8 tokens are the form's without expert parallelism alone.
Status check_types(const PermuteTensors& t) {
  NPULESS_TRY(t.expert_parallel ? require_dtype(t.tokens, kTokens, kFloatTypes)
                                : require_dtype(t.tokens, kTokens, kTokenTypes));
  return for_each_tensor(t, [&](const aclTensor* tensor, const char* name) {
    if (tensor == t.tokens) return Status();
    if (name == kIndices) return require_dtype(tensor, name, kIdTypes);
    if (name == kSortedIndices) return require_dtype(tensor, name, kIndexTypes);
    return require_same_dtype(tensor, name, t.tokens, kTokens);
  });
}

Status require_rows(const aclTensor* tensor, const char* name) {
  if (tensor->view.rank >= 2) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid, "%s must have 2 dimensions or more, got shape %s", name,
              shape_text(*tensor, shape));
}

Status require_slots(const aclTensor* tensor, const char* name) {
  if (tensor->view.rank == 1 || tensor->view.rank == 2) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid, "%s must have 1 or 2 dimensions, got shape %s", name,
              shape_text(*tensor, shape));
}

Status check_ranks(const PermuteTensors& t) {
  return for_each_tensor(t, [&](const aclTensor* tensor, const char* name) {
    if (name == kTokens || name == kPermuted) return require_rows(tensor, name);
    if (name == kIndices || name == kProbs) return require_slots(tensor, name);
    return require_rank(tensor, name, 1);
  });
}

// A vector of ids is topk 1.
Matrix slots_of(const aclTensor& tensor) {
  return tensor.view.rank == 1 ? as_column(as_vector(tensor)) : as_matrix(tensor);
}

int64_t slot_count(const PermuteTensors& t) {
  return element_count(*t.indices);
}

// The page's min(T, numOutTokens) where that is above 0, and all but so many where it is not.
int64_t kept_rows(int64_t num_out_tokens, int64_t slots) {
  if (num_out_tokens > 0) return min64(num_out_tokens, slots);
  return max64(0, num_out_tokens + slots);
}

Status check_indices(const PermuteTensors& t) {
  const Matrix indices = slots_of(*t.indices);
  NPULESS_TRY(require_dim(t.indices, kIndices, 0, t.tokens->view.dims[0], "the number of tokens"));
  NPULESS_TRY(check_topk(indices.cols, "the topk of indices"));
  if (slot_count(t) <= kMaxSlots) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid,
              "indices must have at most %lld elements, what INT32 positions can count, got shape "
              "%s",
              static_cast<LongLong>(kMaxSlots), shape_text(*t.indices, shape));
}

Status require_same_shape(const aclTensor* tensor, const char* name, const aclTensor* other,
                          const char* other_name) {
  const Shape& a = tensor->view;
  const Shape& b = other->view;
  if (a.rank == b.rank && std::equal(a.dims, a.dims + a.rank, b.dims)) return {};
  char shape[kShapeText];
  char expected[kShapeText];
  return fail(code::kParamInvalid, "%s must have the shape of %s, %s, got shape %s", name,
              other_name, shape_text(*other, expected), shape_text(*tensor, shape));
}

// All dimensions but the first are those of tokens.
Status check_columns(const PermuteTensors& t) {
  NPULESS_TRY(require_rank(t.permuted, kPermuted, t.tokens->view.rank));
  for (int axis = 1; axis < t.tokens->view.rank; ++axis) {
    NPULESS_TRY(
        require_dim(t.permuted, kPermuted, axis, t.tokens->view.dims[axis], "as in tokens"));
  }
  return {};
}

Status check_sorted_indices(const PermuteTensors& t) {
  return require_dim(t.sorted_indices, kSortedIndices, 0, slot_count(t),
                     "the number of elements of indices");
}

Status check_shapes(const PermuteTensors& t) {
  const int64_t rows = kept_rows(t.num_out_tokens, slot_count(t));
  NPULESS_TRY(require_dim(t.permuted, kPermuted, 0, rows,
                          "the rows that numOutTokens keeps of those of indices"));
  NPULESS_TRY(check_columns(t));
  return check_sorted_indices(t);
}

Status check_ranged_shapes(const PermuteTensors& t) {
  const int64_t rows = t.range->values[1] - t.range->values[0];
  NPULESS_TRY(check_range_end(*t.range, slot_count(t)));
  if (t.probs != nullptr) NPULESS_TRY(require_same_shape(t.probs, kProbs, t.indices, kIndices));
  NPULESS_TRY(check_rows(t.permuted, kPermuted, rows));
  NPULESS_TRY(check_columns(t));
  NPULESS_TRY(check_sorted_indices(t));
  return check_rows(t.permuted_probs, kPermutedProbs, rows);
}

Status check_outputs(const PermuteTensors& t) {
  NPULESS_TRY(require_distinct(t.permuted, kPermuted));
  NPULESS_TRY(require_distinct(t.sorted_indices, kSortedIndices));
  return t.has_range() ? require_distinct(t.permuted_probs, kPermutedProbs) : Status();
}

}  // namespace

Status check_permute(const PermuteTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(for_each_tensor(t, require_nd));
  if (t.has_range()) NPULESS_TRY(check_range(*t.range));
  NPULESS_TRY(check_padded_mode(t.padded_mode));
  NPULESS_TRY(check_ranks(t));
  NPULESS_TRY(for_each_tensor(t, require_addressable));
  NPULESS_TRY(check_indices(t));
  NPULESS_TRY(t.has_range() ? check_ranged_shapes(t) : check_shapes(t));
  return check_outputs(t);
}

PermuteArgs unpack_permute(const PermuteTensors& t) {
  PermuteArgs args;
  args.rows = rows_to_rows(*t.tokens, *t.permuted);
  args.indices = slots_of(*t.indices);
  args.sorted_indices = as_vector(*t.sorted_indices);
  if (!t.has_range()) {
    args.range_end = args.rows.to.rows;
    return args;
  }
  args.range_begin = t.range->values[0];
  args.range_end = t.range->values[1];
  args.has_probs = t.probs != nullptr;
  if (!args.has_probs) return args;
  args.probs = slots_of(*t.probs);
  args.permuted_probs = as_vector(*t.permuted_probs);
  return args;
}

}  // namespace npuless::moe_token_permute
