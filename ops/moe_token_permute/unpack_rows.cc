#include "moe_token_permute/unpack_rows.h"

namespace npuless::moe_token_permute {
namespace {

static_assert(Slabs::kMaxAxes == tensor::kMaxRank - 2);

// Trailing dimensions from the last to the first, without those of 1, and with neighbours that lie
// at one stride in both tensors as one.
class Columns {
 public:
  Columns(const aclTensor& from, const aclTensor& to) {
    for (int axis = from.view.rank - 1; axis >= 1; --axis) {
      add(from.view.dims[axis], from.strides[axis], to.strides[axis]);
    }
    if (count_ == 0) axes_[count_++] = {1, 1, 1};
  }

  void put(RowsToRows& rows) const {
    set(rows.from, axes_[0].from_stride);
    set(rows.to, axes_[0].to_stride);
    rows.slabs.axes = count_ - 1;
    for (int i = 1; i < count_; ++i) {
      rows.slabs.dims[i - 1] = axes_[i].dim;
      rows.slabs.from_strides[i - 1] = axes_[i].from_stride;
      rows.slabs.to_strides[i - 1] = axes_[i].to_stride;
    }
  }

 private:
  struct Axis {
    int64_t dim;
    int64_t from_stride;
    int64_t to_stride;
  };

  void add(int64_t dim, int64_t from_stride, int64_t to_stride) {
    if (dim == 1) return;
    if (count_ > 0) {
      Axis& inner = axes_[count_ - 1];
      if (from_stride == inner.dim * inner.from_stride &&
          to_stride == inner.dim * inner.to_stride) {
        inner.dim *= dim;
        return;
      }
    }
    axes_[count_++] = {dim, from_stride, to_stride};
  }

  void set(Matrix& m, int64_t stride) const {
    m.cols = axes_[0].dim;
    m.col_stride = stride;
  }

  int count_ = 0;
  Axis axes_[tensor::kMaxRank - 1];
};

Matrix rows_of(const aclTensor& t) {
  return {tensor::data_of(t), t.view.dims[0], 0, t.strides[0], 1, t.dtype};
}

}  // namespace

RowsToRows rows_to_rows(const aclTensor& from, const aclTensor& to) {
  RowsToRows rows{rows_of(from), rows_of(to), {}};
  // The other dimensions of an empty block may be anything, beyond what their product can hold.
  if (!tensor::is_empty(to)) Columns(from, to).put(rows);
  return rows;
}

}  // namespace npuless::moe_token_permute
