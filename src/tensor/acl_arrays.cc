// The façade of scalars, arrays and lists: unpack, guard, call.
#include "aclnn/acl_meta.h"
#include "base/guard.h"
#include "tensor/arrays.h"
#include "tensor/tensor.h"

using npuless::guarded;
using npuless::Status;
using npuless::tensor::destroy_array;
using npuless::tensor::make_array;
using npuless::tensor::require;

namespace {

template <class ArrayType, class T>
ArrayType* create_array(const char* api, const T* values, uint64_t count) {
  ArrayType* array = nullptr;
  guarded(api, [&]() -> Status {
    array = make_array<ArrayType>(values, count);
    return {};
  });
  return array;
}

template <class ArrayType>
aclnnStatus array_size(const char* api, const ArrayType* array, uint64_t* size) {
  return guarded(api, [&]() -> Status {
    NPULESS_TRY(require(array, "array"));
    NPULESS_TRY(require(size, "size"));
    *size = static_cast<uint64_t>(array->size);
    return {};
  });
}

template <class ListType, class Destroy>
aclnnStatus destroy_list(const ListType* list, Destroy destroy_member) {
  if (list == nullptr) return ACL_SUCCESS;
  for (int64_t i = 0; i < list->size; ++i) destroy_member(list->values[i]);
  destroy_array(list);
  return ACL_SUCCESS;
}

template <class ArrayType>
aclnnStatus destroy(const ArrayType* array) {
  destroy_array(array);
  return ACL_SUCCESS;
}

}  // namespace

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  aclScalar* scalar = nullptr;
  guarded("aclCreateScalar",
          [&] { return npuless::tensor::make_scalar(value, dataType, &scalar); });
  return scalar;
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  delete scalar;
  return ACL_SUCCESS;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return create_array<aclIntArray>("aclCreateIntArray", value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return create_array<aclFloatArray>("aclCreateFloatArray", value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  return create_array<aclBoolArray>("aclCreateBoolArray", value, size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return create_array<aclTensorList>("aclCreateTensorList", value, size);
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value, uint64_t size) {
  return create_array<aclScalarList>("aclCreateScalarList", value, size);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return destroy(array);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return destroy(array);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return destroy(array);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return destroy_list(array, aclDestroyTensor);
}

aclnnStatus aclDestroyScalarList(const aclScalarList* array) {
  return destroy_list(array, aclDestroyScalar);
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return array_size("aclGetIntArraySize", array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return array_size("aclGetFloatArraySize", array, size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return array_size("aclGetBoolArraySize", array, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return array_size("aclGetTensorListSize", tensorList, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList, uint64_t* size) {
  return array_size("aclGetScalarListSize", scalarList, size);
}
