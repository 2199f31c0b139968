// aclTensor, how operators read it as a view, and the checks that all operators share.
#pragma once

#include <atomic>
#include <cstdint>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/status.h"
#include "base/view.h"
#include "tensor/arrays.h"

namespace npuless::tensor {

// Above it aclCreateTensor answers NULL and a sentence.
inline constexpr int kMaxRank = 16;

struct Shape {
  int rank = 0;
  int64_t dims[kMaxRank] = {};
};

}  // namespace npuless::tensor

// Reference counted: the client holds one reference (aclDestroyTensor drops it) and each executor
// that reads the address at launch holds one, so an early destroy never dangles.
struct aclTensor {
  std::atomic<int64_t> references{1};
  npuless::tensor::Shape view;
  npuless::tensor::Shape storage;
  int64_t strides[npuless::tensor::kMaxRank] = {};
  int64_t offset = 0;  // in elements
  npuless::DType dtype = npuless::DType::kUndefined;
  aclFormat format = ACL_FORMAT_ND;
  std::atomic<void*> address{nullptr};  // of the storage
};

namespace npuless::tensor {

// What aclCreateTensor and aclInitTensor are told.
struct Description {
  const int64_t* view_dims;
  uint64_t view_rank;
  aclDataType dtype;
  const int64_t* strides;  // null: contiguous
  int64_t offset;
  aclFormat format;
  const int64_t* storage_dims;
  uint64_t storage_rank;
  void* address;
};

// 161001 dims null with a rank above 0, 161002 a rank above kMaxRank, 207001 no memory; nothing
// else is looked at, as documented: operators judge the tensors they are given.
Status create(const Description& description, aclTensor** tensor);
// The same in place; null dims keep the old ones, with their strides unless strides come along.
Status reinitialise(aclTensor& tensor, const Description& description);

void retain(const aclTensor* tensor);
void release(const aclTensor* tensor);

// The product of the view's dims; the largest int64_t where it would overflow.
int64_t element_count(const aclTensor& tensor);
// Whether a dimension of the view is 0.
bool is_empty(const aclTensor& tensor);
// Address of the first element of the view: storage address + offset. Null stays null.
void* data_of(const aclTensor& tensor);
// The offset in bytes, wrapping where the caller's numbers are absurd.
uint64_t offset_bytes(const aclTensor& tensor);
// The storage's current address + `offset` bytes. Null stays null.
void* address_of(const aclTensor& tensor, uint64_t offset);

// The tensor must have the rank of the view; checked by the caller.
Vector as_vector(const aclTensor& tensor);
Matrix as_matrix(const aclTensor& tensor);

// "[1024, 7]" into a caller's buffer, for sentences; cut off with "…" where it does not fit.
// Returns the buffer.
inline constexpr int kShapeText = 160;
const char* shape_text(const aclTensor& tensor, char (&buffer)[kShapeText]);

// --- checks shared by all operators; each failure leaves one sentence and returns its code ------

// 161001 "<name> must not be null".
Status require(const void* pointer, const char* name);
// 161002 unless the type is one of `allowed`.
Status require_dtype(const aclTensor* tensor, const char* name, const DType* allowed, int count);
template <int N>
Status require_dtype(const aclTensor* tensor, const char* name, const DType (&allowed)[N]) {
  return require_dtype(tensor, name, allowed, N);
}
// 161002 unless a and b have one type.
Status require_same_dtype(const aclTensor* a, const char* a_name, const aclTensor* b,
                          const char* b_name);
// 161002 unless the format is ND.
Status require_nd(const aclTensor* tensor, const char* name);
Status require_rank(const aclTensor* tensor, const char* name, int rank);
// 161002 unless dim `axis` equals `expected`, described as `what` ("the length of grad").
Status require_dim(const aclTensor* tensor, const char* name, int axis, int64_t expected,
                   const char* what);
// 161002 when a dimension, a stride or the offset is negative, or when the last element's byte
// offset leaves 64 bits. A null address is no error here: CANN's own example of repeatable
// executors plans with null addresses and sets them before each launch, so launch() judges them.
Status require_addressable(const aclTensor* tensor, const char* name);
// 161002 unless each element of an output has an address of its own: workers write them at the same
// time, so a shared one would hold whatever came last.
Status require_distinct(const aclTensor* tensor, const char* name);

}  // namespace npuless::tensor
