// The façade of aclTensor: unpack, guard, call.
#include <algorithm>

#include "aclnn/acl_meta.h"
#include "base/guard.h"
#include "tensor/tensor.h"

using npuless::guarded;
using npuless::Status;
using npuless::tensor::Description;
using npuless::tensor::require;

namespace {

// The client releases the copy with delete[].
Status copy_out(const int64_t* values, int count, int64_t** out, uint64_t* out_count) {
  auto* copy = new int64_t[static_cast<size_t>(count)];
  std::copy_n(values, count, copy);
  *out = copy;
  *out_count = static_cast<uint64_t>(count);
  return {};
}

}  // namespace

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  aclTensor* tensor = nullptr;
  guarded("aclCreateTensor", [&] {
    return npuless::tensor::create({viewDims, viewDimsNum, dataType, stride, offset, format,
                                    storageDims, storageDimsNum, tensorData},
                                   &tensor);
  });
  return tensor;
}

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims, uint64_t viewDimsNum,
                          aclDataType dataType, const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims, uint64_t storageDimsNum,
                          void* tensorDataAddr) {
  return guarded("aclInitTensor", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    return npuless::tensor::reinitialise(
        *tensor, {viewDims, viewDimsNum, dataType, stride, offset, format, storageDims,
                  storageDimsNum, tensorDataAddr});
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  npuless::tensor::release(tensor);
  return ACL_SUCCESS;
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return guarded("aclGetViewShape", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(viewDims, "viewDims"));
    NPULESS_TRY(require(viewDimsNum, "viewDimsNum"));
    return copy_out(tensor->view.dims, tensor->view.rank, viewDims, viewDimsNum);
  });
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  return guarded("aclGetStorageShape", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(storageDims, "storageDims"));
    NPULESS_TRY(require(storageDimsNum, "storageDimsNum"));
    return copy_out(tensor->storage.dims, tensor->storage.rank, storageDims, storageDimsNum);
  });
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  return guarded("aclGetViewStrides", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(stridesValue, "stridesValue"));
    NPULESS_TRY(require(stridesNum, "stridesNum"));
    return copy_out(tensor->strides, tensor->view.rank, stridesValue, stridesNum);
  });
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return guarded("aclGetViewOffset", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(offset, "offset"));
    *offset = tensor->offset;
    return {};
  });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return guarded("aclGetFormat", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(format, "format"));
    *format = tensor->format;
    return {};
  });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return guarded("aclGetDataType", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(dataType, "dataType"));
    *dataType = static_cast<aclDataType>(tensor->dtype);
    return {};
  });
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  return guarded("aclSetRawTensorAddr", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(addr, "addr"));
    tensor->address.store(addr, std::memory_order_release);
    return {};
  });
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  return guarded("aclGetRawTensorAddr", [&]() -> Status {
    NPULESS_TRY(require(tensor, "tensor"));
    NPULESS_TRY(require(addr, "addr"));
    *addr = tensor->address.load(std::memory_order_acquire);
    return {};
  });
}
