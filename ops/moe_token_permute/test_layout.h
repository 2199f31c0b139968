// Layouts that a client may give a tensor.
#pragma once

#include <algorithm>

#include "moe_token_permute/test_problem.h"

namespace npuless::moe_token_permute {

// Rows further apart than they are long, behind an offset that aligns with nothing.
inline Layout padded_rows(const std::vector<int64_t>& dims) {
  Layout layout = contiguous(dims);
  if (dims.size() > 1) layout.strides[0] += 3;
  layout.offset = 5;
  return layout;
}

// Every second element of a tensor twice as wide.
inline Layout every_second(const std::vector<int64_t>& dims) {
  Layout layout = contiguous(dims);
  for (int64_t& stride : layout.strides) stride *= 2;
  layout.offset = 1;
  return layout;
}

// The first dimension is the innermost.
inline Layout transposed(const std::vector<int64_t>& dims) {
  if (dims.size() == 1) return {{3}, 2};
  Layout layout = contiguous(dims);
  for (int64_t& stride : layout.strides) stride *= dims[0] + 1;
  layout.strides[0] = 1;
  layout.offset = 7;
  return layout;
}

// One row for all rows; for a vector, one element.
inline Layout one_row(const std::vector<int64_t>& dims) {
  Layout layout = contiguous(dims);
  layout.strides[0] = 0;
  return layout;
}

inline Layout one_column(const std::vector<int64_t>& dims) {
  Layout layout = contiguous(dims);
  layout.strides.back() = 0;
  return layout;
}

inline Layout one_element(const std::vector<int64_t>& dims) {
  return {std::vector<int64_t>(dims.size(), 0), 3};
}

inline constexpr LayoutOf kInputLayouts[] = {contiguous, padded_rows, every_second, transposed,
                                             one_row,    one_column,  one_element};
inline constexpr LayoutOf kOutputLayouts[] = {contiguous, padded_rows, every_second, transposed};

}  // namespace npuless::moe_token_permute
