// Untyped strided views of caller memory, the arguments of every operator. Strides are in
// elements; 0 is legal for inputs. Offsets are formed in 64 bits everywhere.
// `data` is the first member of each: an executor rebinds addresses through it.
#pragma once

#include <cstdint>

#include "base/dtype.h"

namespace npuless {

struct Vector {
  void* data = nullptr;
  int64_t size = 0;
  int64_t stride = 1;
  DType dtype = DType::kUndefined;

  bool contiguous() const { return stride == 1 || size <= 1; }
};

struct Matrix {
  void* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;
  int64_t col_stride = 1;
  DType dtype = DType::kUndefined;

  bool rows_contiguous() const { return col_stride == 1 || cols <= 1; }
  bool contiguous() const { return rows_contiguous() && (row_stride == cols || rows <= 1); }
};

template <class T>
T& at(const Vector& v, int64_t i) {
  return static_cast<T*>(v.data)[i * v.stride];
}

template <class T>
T& at(const Matrix& m, int64_t row, int64_t col) {
  return static_cast<T*>(m.data)[row * m.row_stride + col * m.col_stride];
}

// Address of an element of any type; of an empty matrix, whose address may be null, just that.
inline const void* element(const Matrix& m, int64_t row, int64_t col) {
  if (m.rows == 0 || m.cols == 0) return m.data;
  const int64_t offset = row * m.row_stride + col * m.col_stride;
  return static_cast<const char*>(m.data) + offset * dtype_size(m.dtype);
}

}  // namespace npuless
