#include "moe_token_permute/checks.h"

#include "moe_token_permute/index.h"

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using LongLong = long long;

}  // namespace

Status check_topk(int64_t topk, const char* name) {
  if (topk >= 1 && topk <= kMaxTopk) return {};
  return fail(code::kParamInvalid, "%s must be in [1, %d], got %lld", name, kMaxTopk,
              static_cast<LongLong>(topk));
}

Status check_padded_mode(bool padded_mode) {
  if (!padded_mode) return {};
  return fail(code::kParamInvalid, "paddedMode must be false, got true");
}

Status check_range(const aclIntArray& range) {
  if (range.size != 2) {
    return fail(code::kParamInvalid, "rangeOptional must have 2 elements, got %lld",
                static_cast<LongLong>(range.size));
  }
  const int64_t begin = range.values[0];
  const int64_t end = range.values[1];
  if (begin >= 0 && begin <= end) return {};
  return fail(code::kParamInvalid,
              "rangeOptional must be [r0, r1] with 0 <= r0 <= r1, got [%lld, %lld]",
              static_cast<LongLong>(begin), static_cast<LongLong>(end));
}

Status check_range_end(const aclIntArray& range, int64_t slots) {
  if (range.values[1] <= slots) return {};
  return fail(code::kParamInvalid,
              "the end of rangeOptional must not exceed %lld, the length of sortedIndices, got "
              "%lld",
              static_cast<LongLong>(slots), static_cast<LongLong>(range.values[1]));
}

Status check_rows(const aclTensor* tensor, const char* name, int64_t rows) {
  if (tensor->view.dims[0] >= rows) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid,
              "dimension 0 of %s must be at least %lld, the size of rangeOptional, got shape %s",
              name, static_cast<LongLong>(rows), shape_text(*tensor, shape));
}

Status check_countable(int64_t count, const char* what) {
  if (count <= kMaxSlots) return {};
  return fail(code::kParamInvalid,
              "%s must be at most %lld, what INT32 indices can count, got %lld", what,
              static_cast<LongLong>(kMaxSlots), static_cast<LongLong>(count));
}

Status check_slots(const aclTensor* indices, int64_t topk, const char* topk_name) {
  const int64_t slots = indices->view.dims[0];
  NPULESS_TRY(check_countable(slots, "the length of sortedIndices"));
  if (slots % topk == 0) return {};
  return fail(code::kParamInvalid,
              "the length of sortedIndices must be a multiple of %s, %lld, got %lld", topk_name,
              static_cast<LongLong>(topk), static_cast<LongLong>(slots));
}

Status require_not_empty(const aclTensor* tensor, const char* name, int) {
  if (!is_empty(*tensor)) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid, "%s must not be empty, got shape %s", name,
              shape_text(*tensor, shape));
}

}  // namespace npuless::moe_token_permute
