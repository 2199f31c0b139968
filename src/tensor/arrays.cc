#include "tensor/arrays.h"

#include <cstring>

namespace npuless::tensor {
namespace {

// Bytes of a scalar's value; 0 for what is no scalar. Unlike dtype_size(), which must answer 8 for
// any number it does not know, this reads client memory and so never guesses.
int64_t scalar_bytes(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_FLOAT6_E3M2:
    case ACL_FLOAT6_E2M3:
    case ACL_FLOAT4_E2M1:
    case ACL_FLOAT4_E1M2:
      return 1;
    default: {
      const int64_t size = dtype_size(static_cast<DType>(dtype));
      return size == 8 ? 0 : size;
    }
  }
}

}  // namespace

Status make_scalar(const void* value, aclDataType dtype, aclScalar** scalar) {
  if (value == nullptr) return fail(code::kParamNullptr, "value must not be null");
  const int64_t bytes = scalar_bytes(dtype);
  if (bytes == 0) {
    return fail(code::kParamInvalid, "data type %d has no scalar values", static_cast<int>(dtype));
  }
  auto made = std::make_unique<aclScalar>();
  made->dtype = static_cast<DType>(dtype);
  std::memcpy(made->bytes, value, static_cast<size_t>(bytes));
  *scalar = made.release();
  return {};
}

}  // namespace npuless::tensor
