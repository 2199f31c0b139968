#include <cstdio>

#include "tensor/tensor.h"

namespace npuless::tensor {
namespace {

constexpr int kTypeList = 128;

// "FLOAT32, FLOAT16 or BFLOAT16"
void list_types(const DType* allowed, int count, char (&text)[kTypeList]) {
  int used = 0;
  text[0] = '\0';
  for (int i = 0; i < count && used < kTypeList; ++i) {
    const char* separator = i == 0 ? "" : i == count - 1 ? " or " : ", ";
    used += std::snprintf(text + used, static_cast<size_t>(kTypeList - used), "%s%s", separator,
                          dtype_name(allowed[i]));
  }
}

Status fail_negative(const char* name, const char* what, int64_t value) {
  return fail(code::kParamInvalid, "%s of %s must not be negative, got %lld", what, name,
              static_cast<long long>(value));
}

// Whether offset, the way from the first to the last element, and both in bytes fit 64 bits.
bool extent_fits(const aclTensor& tensor) {
  int64_t last = tensor.offset;
  for (int axis = 0; axis < tensor.view.rank; ++axis) {
    int64_t way = 0;
    if (__builtin_mul_overflow(tensor.view.dims[axis] - 1, tensor.strides[axis], &way) ||
        __builtin_add_overflow(last, way, &last)) {
      return false;
    }
  }
  int64_t bytes = 0;
  return !__builtin_mul_overflow(last, dtype_size(tensor.dtype), &bytes);
}

}  // namespace

Status require(const void* pointer, const char* name) {
  if (pointer != nullptr) return {};
  return fail(code::kParamNullptr, "%s must not be null", name);
}

Status require_dtype(const aclTensor* tensor, const char* name, const DType* allowed, int count) {
  for (int i = 0; i < count; ++i) {
    if (tensor->dtype == allowed[i]) return {};
  }
  char types[kTypeList];
  list_types(allowed, count, types);
  return fail(code::kParamInvalid, "the type of %s must be %s, got %s", name, types,
              dtype_name(tensor->dtype));
}

Status require_same_dtype(const aclTensor* a, const char* a_name, const aclTensor* b,
                          const char* b_name) {
  if (a->dtype == b->dtype) return {};
  return fail(code::kParamInvalid, "%s and %s must have one type, got %s and %s", a_name, b_name,
              dtype_name(a->dtype), dtype_name(b->dtype));
}

Status require_nd(const aclTensor* tensor, const char* name) {
  if (tensor->format == ACL_FORMAT_ND) return {};
  return fail(code::kParamInvalid, "the format of %s must be ND (%d), got %d", name,
              static_cast<int>(ACL_FORMAT_ND), static_cast<int>(tensor->format));
}

Status require_rank(const aclTensor* tensor, const char* name, int rank) {
  if (tensor->view.rank == rank) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid, "%s must have %d dimension%s, got shape %s", name, rank,
              rank == 1 ? "" : "s", shape_text(*tensor, shape));
}

Status require_dim(const aclTensor* tensor, const char* name, int axis, int64_t expected,
                   const char* what) {
  if (axis < tensor->view.rank && tensor->view.dims[axis] == expected) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid, "dimension %d of %s must be %lld (%s), got shape %s", axis, name,
              static_cast<long long>(expected), what, shape_text(*tensor, shape));
}

Status require_addressable(const aclTensor* tensor, const char* name) {
  for (int axis = 0; axis < tensor->view.rank; ++axis) {
    if (tensor->view.dims[axis] < 0) {
      return fail_negative(name, "every dimension", tensor->view.dims[axis]);
    }
    if (tensor->strides[axis] < 0) {
      return fail_negative(name, "every stride", tensor->strides[axis]);
    }
  }
  if (tensor->offset < 0) return fail_negative(name, "the offset", tensor->offset);
  if (is_empty(*tensor) || extent_fits(*tensor)) return {};
  char shape[kShapeText];
  return fail(code::kParamInvalid,
              "offset and strides of %s, of shape %s, lead beyond the address space", name,
              shape_text(*tensor, shape));
}

}  // namespace npuless::tensor
