#include "moe_token_permute/copy.h"

#include <cstring>

#include "base/math.h"
#include "base/parallel.h"
#include "moe_token_permute/kernel_arguments.h"

namespace npuless::moe_token_permute {
namespace {

Size size_of(DType dtype) {
  const int64_t bytes = dtype_size(dtype);
  return bytes == 1 ? kOneByte : bytes == 2 ? kTwoBytes : kFourBytes;
}

void* advance(void* data, int64_t elements, DType dtype) {
  return static_cast<char*>(data) + elements * dtype_size(dtype);
}

// body(from matrix, to matrix) for each slab.
template <class Body>
void for_each_slab(const RowsToRows& rows, const Body& body) {
  for (int64_t slab = 0; slab < rows.slabs.count(); ++slab) {
    Matrix from = rows.from;
    Matrix to = rows.to;
    int64_t rest = slab;
    for (int i = 0; i < rows.slabs.axes; ++i) {
      const int64_t index = rest % rows.slabs.dims[i];
      rest /= rows.slabs.dims[i];
      from.data = advance(from.data, index * rows.slabs.from_strides[i], from.dtype);
      to.data = advance(to.data, index * rows.slabs.to_strides[i], to.dtype);
    }
    body(from, to);
  }
}

template <class BITS>
void zero_strided(const Matrix& m, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    for (int64_t col = 0; col < m.cols; ++col) at<BITS>(m, row, col) = 0;
  }
}

}  // namespace

int64_t Slabs::count() const {
  int64_t count = 1;
  for (int i = 0; i < axes; ++i) count *= dims[i];
  return count;
}

int64_t RowsToRows::row_bytes() const {
  return to.cols * slabs.count() * dtype_size(to.dtype);
}

CopyPlan plan_copy(const RowsToRows& rows, isa::Level level) {
  return {kernels_for(level).copy_rows[size_of(rows.to.dtype)],
          rows.to.rows * rows.row_bytes() > kStreamBytes};
}

void Mover::flush() {
  const RowMoves moves{from_, to_, count_};
  count_ = 0;
  if (moves.count == 0 || rows_.to.cols == 0) return;  // without columns there may be no memory
  for_each_slab(rows_, [&](const Matrix& from, const Matrix& to) {
    plan_.copy_rows(moves, {source_of(from), target_of(to), to.cols, plan_.stream});
  });
}

void zero_rows(const Matrix& m, int64_t begin, int64_t end) {
  const int64_t size = dtype_size(m.dtype);
  if (m.cols == 0) return;
  if (m.rows_contiguous()) {
    for (int64_t row = begin; row < end; ++row) {
      std::memset(advance(m.data, row * m.row_stride, m.dtype), 0,
                  static_cast<size_t>(m.cols * size));
    }
  } else if (size == 1) {
    zero_strided<uint8_t>(m, begin, end);
  } else if (size == 2) {
    zero_strided<uint16_t>(m, begin, end);
  } else {
    zero_strided<uint32_t>(m, begin, end);
  }
}

void zero_rows(const RowsToRows& rows, int64_t begin, int64_t end, int threads) {
  if (rows.row_bytes() == 0) return;  // of which there may be more than anyone can walk
  const int64_t chunk_rows = max64(1, kChunkBytes / rows.row_bytes());
  parallel_for(threads, ceil_div(end - begin, chunk_rows), [&](int64_t chunk, int) {
    const int64_t first = begin + chunk * chunk_rows;
    for_each_slab(rows, [&](const Matrix&, const Matrix& to) {
      zero_rows(to, first, min64(end, first + chunk_rows));
    });
  });
}

void zero_elements(const Vector& v, int64_t begin, int64_t end) {
  zero_rows(Matrix{v.data, v.size, 1, v.stride, 1, v.dtype}, begin, end);
}

}  // namespace npuless::moe_token_permute
