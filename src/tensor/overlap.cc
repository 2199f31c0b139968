// Whether elements of a strided view share an address.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tensor/tensor.h"

namespace npuless::tensor {
namespace {

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

// Exact up to two axes; of more, each must step over all that those before it span.
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
                          i == 0 ? "" : ", ", static_cast<long long>(tensor.strides[i]),
                          i + 1 == tensor.view.rank ? "]" : "");
  }
  return text;
}

}  // namespace

Status require_distinct(const aclTensor* tensor, const char* name) {
  if (is_empty(*tensor) || !elements_overlap(*tensor)) return {};
  char strides[kShapeText];
  return fail(code::kParamInvalid, "the elements of %s must not overlap, got strides %s", name,
              strides_text(*tensor, strides));
}

}  // namespace npuless::tensor
