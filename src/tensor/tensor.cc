#include "tensor/tensor.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

namespace npuless::tensor {
namespace {

static_assert(static_cast<int>(DType::kUndefined) == ACL_DT_UNDEFINED);
static_assert(static_cast<int>(DType::kFloat32) == ACL_FLOAT);
static_assert(static_cast<int>(DType::kFloat16) == ACL_FLOAT16);
static_assert(static_cast<int>(DType::kInt8) == ACL_INT8);
static_assert(static_cast<int>(DType::kInt32) == ACL_INT32);
static_assert(static_cast<int>(DType::kUint8) == ACL_UINT8);
static_assert(static_cast<int>(DType::kInt64) == ACL_INT64);
static_assert(static_cast<int>(DType::kBool) == ACL_BOOL);
static_assert(static_cast<int>(DType::kBfloat16) == ACL_BF16);

Status check_dims(const int64_t* dims, uint64_t rank, const char* name) {
  if (dims == nullptr && rank > 0) {
    return fail(code::kParamNullptr, "%s must not be null when %sNum is %llu", name, name,
                static_cast<unsigned long long>(rank));
  }
  if (rank > kMaxRank) {
    return fail(code::kParamInvalid, "%sNum must be at most %d, got %llu", name, kMaxRank,
                static_cast<unsigned long long>(rank));
  }
  return {};
}

void set_shape(Shape& shape, const int64_t* dims, uint64_t rank) {
  shape.rank = static_cast<int>(rank);
  std::copy_n(dims, rank, shape.dims);
}

// Absurd dims wrap instead of overflowing: creation judges nothing.
void set_contiguous_strides(aclTensor& tensor) {
  uint64_t stride = 1;
  for (int axis = tensor.view.rank - 1; axis >= 0; --axis) {
    tensor.strides[axis] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(tensor.view.dims[axis]);
  }
}

void set_strides(aclTensor& tensor, const Description& description, bool view_given) {
  if (description.strides != nullptr &&
      description.view_rank == static_cast<uint64_t>(tensor.view.rank)) {
    std::copy_n(description.strides, tensor.view.rank, tensor.strides);
  } else if (view_given) {
    set_contiguous_strides(tensor);
  }
}

void assign(aclTensor& tensor, const Description& description, bool view_given,
            bool storage_given) {
  if (view_given) set_shape(tensor.view, description.view_dims, description.view_rank);
  if (storage_given) set_shape(tensor.storage, description.storage_dims, description.storage_rank);
  set_strides(tensor, description, view_given);
  tensor.offset = description.offset;
  tensor.dtype = static_cast<DType>(description.dtype);
  tensor.format = description.format;
  tensor.address.store(description.address, std::memory_order_release);
}

}  // namespace

Status create(const Description& description, aclTensor** tensor) {
  NPULESS_TRY(check_dims(description.view_dims, description.view_rank, "viewDims"));
  NPULESS_TRY(check_dims(description.storage_dims, description.storage_rank, "storageDims"));
  auto made = std::make_unique<aclTensor>();
  assign(*made, description, true, true);
  *tensor = made.release();
  return {};
}

Status reinitialise(aclTensor& tensor, const Description& description) {
  const bool view_given = description.view_dims != nullptr;
  const bool storage_given = description.storage_dims != nullptr;
  if (view_given) {
    NPULESS_TRY(check_dims(description.view_dims, description.view_rank, "viewDims"));
  }
  if (storage_given) {
    NPULESS_TRY(check_dims(description.storage_dims, description.storage_rank, "storageDims"));
  }
  assign(tensor, description, view_given, storage_given);
  return {};
}

void retain(const aclTensor* tensor) {
  if (tensor == nullptr) return;
  const_cast<aclTensor*>(tensor)->references.fetch_add(1, std::memory_order_relaxed);
}

void release(const aclTensor* tensor) {
  if (tensor == nullptr) return;
  auto* mutable_tensor = const_cast<aclTensor*>(tensor);
  if (mutable_tensor->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    delete mutable_tensor;
  }
}

int64_t element_count(const aclTensor& tensor) {
  if (is_empty(tensor)) return 0;
  int64_t count = 1;
  for (int axis = 0; axis < tensor.view.rank; ++axis) {
    if (__builtin_mul_overflow(count, tensor.view.dims[axis], &count)) {
      return std::numeric_limits<int64_t>::max();
    }
  }
  return count;
}

bool is_empty(const aclTensor& tensor) {
  const int64_t* dims = tensor.view.dims;
  return std::find(dims, dims + tensor.view.rank, 0) != dims + tensor.view.rank;
}

uint64_t offset_bytes(const aclTensor& tensor) {
  return static_cast<uint64_t>(tensor.offset) * static_cast<uint64_t>(dtype_size(tensor.dtype));
}

void* address_of(const aclTensor& tensor, uint64_t offset) {
  void* base = tensor.address.load(std::memory_order_acquire);
  if (base == nullptr) return nullptr;
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(base) + offset);
}

void* data_of(const aclTensor& tensor) {
  return address_of(tensor, offset_bytes(tensor));
}

Vector as_vector(const aclTensor& tensor) {
  return {data_of(tensor), tensor.view.dims[0], tensor.strides[0], tensor.dtype};
}

Matrix as_matrix(const aclTensor& tensor) {
  return {data_of(tensor),   tensor.view.dims[0], tensor.view.dims[1],
          tensor.strides[0], tensor.strides[1],   tensor.dtype};
}

const char* shape_text(const aclTensor& tensor, char (&buffer)[kShapeText]) {
  constexpr int kTail = 8;  // ", …]" and the terminating zero
  int used = std::snprintf(buffer, kShapeText, "[");
  for (int axis = 0; axis < tensor.view.rank; ++axis) {
    const size_t room = static_cast<size_t>(kShapeText - kTail - used);
    const int wanted = std::snprintf(buffer + used, room, "%s%lld", axis == 0 ? "" : ", ",
                                     static_cast<long long>(tensor.view.dims[axis]));
    if (static_cast<size_t>(wanted) >= room) {
      used += std::snprintf(buffer + used, kTail, ", …");
      break;
    }
    used += wanted;
  }
  std::snprintf(buffer + used, static_cast<size_t>(kShapeText - used), "]");
  return buffer;
}

}  // namespace npuless::tensor
