// The aclnn arrays, scalars and lists: copies of what the client passed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/status.h"

namespace npuless::tensor {

template <class T>
struct Array {
  int64_t size = 0;
  T* values = nullptr;
};

}  // namespace npuless::tensor

struct aclIntArray : npuless::tensor::Array<int64_t> {};
struct aclFloatArray : npuless::tensor::Array<float> {};
struct aclBoolArray : npuless::tensor::Array<bool> {};
// From the client's point of view lists own their members: destroying a list destroys them.
struct aclTensorList : npuless::tensor::Array<const aclTensor*> {};
struct aclScalarList : npuless::tensor::Array<const aclScalar*> {};

struct aclScalar {
  npuless::DType dtype = npuless::DType::kUndefined;
  unsigned char bytes[16] = {};  // the widest type is COMPLEX128
};

namespace npuless::tensor {

// Null values or a count of 0 make an empty array, as documented. Throws std::bad_alloc.
template <class ArrayType, class T>
ArrayType* make_array(const T* values, uint64_t count) {
  auto array = std::make_unique<ArrayType>();
  if (values == nullptr || count == 0) return array.release();
  array->values = new std::remove_const_t<std::remove_pointer_t<decltype(array->values)>>[count];
  std::copy_n(values, count, array->values);
  array->size = static_cast<int64_t>(count);
  return array.release();
}

template <class ArrayType>
void destroy_array(const ArrayType* array) {
  if (array == nullptr) return;
  delete[] array->values;
  delete array;
}

// 161001 value null, 161002 a type without scalar values (STRING, undefined, unassigned numbers).
Status make_scalar(const void* value, aclDataType dtype, aclScalar** scalar);

}  // namespace npuless::tensor
