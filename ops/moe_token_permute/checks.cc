#include "moe_token_permute/checks.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace npuless::moe_token_permute {

using namespace tensor;

namespace {

using LongLong = long long;

struct Axis {
  int64_t dim;
  int64_t stride;
};

// The dimensions above 1 from the smallest stride up, neighbours at one stride as one.
int sorted_axes(const aclTensor& tensor, Axis (&axes)[kMaxRank]) {
  int count = 0;
  for (int i = 0; i < tensor.view.rank; ++i) {
    if (tensor.view.dims[i] > 1) axes[count++] = {tensor.view.dims[i], tensor.strides[i]};
  }
  std::sort(axes, axes + count, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
  int merged = 0;
  for (int i = 0; i < count; ++i) {
    if (merged > 0 && axes[merged - 1].stride > 0 &&
        axes[i].stride == axes[merged - 1].dim * axes[merged - 1].stride) {
      axes[merged - 1].dim *= axes[i].dim;
    } else {
      axes[merged++] = axes[i];
    }
  }
  return merged;
}

// Elements (i, j) and (i + a, j − b) share an address when a·stride_i = b·stride_j; the smallest
// such a and b come from dividing the strides by what they have in common.
bool share_address(const Axis& i, const Axis& j) {
  const int64_t common = std::gcd(i.stride, j.stride);
  return j.stride / common < i.dim && i.stride / common < j.dim;
}

// Workers write rows at the same time, so shared elements would hold whatever came last. Exact up
// to two axes; of more, each must step over all that those before it span.
bool elements_overlap(const aclTensor& tensor) {
  Axis axes[kMaxRank];
  const int count = sorted_axes(tensor, axes);
  if (count > 0 && axes[0].stride == 0) return true;
  if (count == 2) return share_address(axes[0], axes[1]);
  int64_t span = 0;
  for (int i = 0; i < count; ++i) {
    if (axes[i].stride <= span) return true;
    span += (axes[i].dim - 1) * axes[i].stride;
  }
  return false;
}

// "[64, 1]", cut off where it does not fit.
const char* strides_text(const aclTensor& tensor, char (&text)[kShapeText]) {
  int used = std::snprintf(text, kShapeText, "[");
  for (int i = 0; i < tensor.view.rank && used < kShapeText; ++i) {
    used += std::snprintf(text + used, static_cast<size_t>(kShapeText - used), "%s%lld%s",
                          i == 0 ? "" : ", ", static_cast<LongLong>(tensor.strides[i]),
                          i + 1 == tensor.view.rank ? "]" : "");
  }
  return text;
}

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

Status check_slots(const aclTensor* indices, int64_t topk, const char* topk_name) {
  const int64_t slots = indices->view.dims[0];
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

Status require_distinct(const aclTensor* tensor, const char* name) {
  if (is_empty(*tensor) || !elements_overlap(*tensor)) return {};
  char strides[kShapeText];
  return fail(code::kParamInvalid, "the elements of %s must not overlap, got strides %s", name,
              strides_text(*tensor, strides));
}

}  // namespace npuless::moe_token_permute
