// Moving whole rows between blocks of memory, bit by bit: what the permutes share.
#pragma once

#include <cstdint>

#include "base/view.h"
#include "isa/level.h"
#include "moe_token_permute/kernels.h"

namespace npuless::moe_token_permute {

// The columns of a row where they do not lie at one stride: several slabs of equal shape, each at
// one stride. Matrices beside it hold the first slab.
struct Slabs {
  static constexpr int kMaxAxes = 14;  // all of a tensor of the highest rank but rows and columns

  int axes = 0;  // 0: the matrices are all there is
  int64_t dims[kMaxAxes] = {};
  int64_t from_strides[kMaxAxes] = {};
  int64_t to_strides[kMaxAxes] = {};

  int64_t count() const;
};

// Two blocks [rows, …] whose trailing dimensions, equal, are taken as columns.
struct RowsToRows {
  Matrix from;
  Matrix to;
  Slabs slabs;

  int64_t row_bytes() const;
};

struct CopyPlan {
  CopyRowsFn copy_rows;
  bool stream;
};

CopyPlan plan_copy(const RowsToRows& rows, isa::Level level);

// Collects moves and makes them in batches. On the stack of whoever moves.
class Mover {
 public:
  Mover(const CopyPlan& plan, const RowsToRows& rows) : plan_(plan), rows_(rows) {}
  ~Mover() { flush(); }
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;

  void move(int64_t from, int64_t to) {
    from_[count_] = static_cast<int32_t>(from);
    to_[count_] = static_cast<int32_t>(to);
    if (++count_ == kBatch) flush();
  }

 private:
  // All moves of one token at the largest topk; 4 KiB.
  static constexpr int64_t kBatch = kMaxTopk;

  void flush();

  const CopyPlan& plan_;
  const RowsToRows& rows_;
  int64_t count_ = 0;
  int32_t from_[kBatch];
  int32_t to_[kBatch];
};

// Rows [begin, end) of the destination become +0, all of its slabs.
void zero_rows(const RowsToRows& rows, int64_t begin, int64_t end, int threads);
void zero_rows(const Matrix& m, int64_t begin, int64_t end);
void zero_elements(const Vector& v, int64_t begin, int64_t end);

// to[element] = from[row, col], the same bits; elements of 2 or 4 bytes.
inline void copy_element(const Matrix& from, int64_t row, int64_t col, const Vector& to,
                         int64_t element) {
  if (dtype_size(to.dtype) == 2) {
    at<uint16_t>(to, element) = at<uint16_t>(from, row, col);
  } else {
    at<uint32_t>(to, element) = at<uint32_t>(from, row, col);
  }
}

}  // namespace npuless::moe_token_permute
