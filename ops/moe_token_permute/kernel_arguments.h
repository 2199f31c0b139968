// How plans choose kernels and hand views to them.
#pragma once

#include <cstdint>

#include "base/cache.h"
#include "base/dtype.h"
#include "base/view.h"
#include "isa/level.h"
#include "moe_token_permute/kernels.h"

namespace npuless::moe_token_permute {

// Bytes moved per chunk: some tens of microseconds of memory traffic, against a few for handing a
// chunk out and for the rows at its start that no earlier token prefetched.
inline constexpr int64_t kChunkBytes = int64_t{512} << 10;

const Kernels& kernels_for(isa::Level level);

inline Type type_of(DType dtype) {
  if (dtype == DType::kFloat32) return kFloat32;
  return dtype == DType::kFloat16 ? kFloat16 : kBfloat16;
}

inline Source source_of(const Matrix& m) {
  return {m.data, m.row_stride, m.col_stride};
}

inline Source source_of(const Vector& v) {
  return {v.data, v.stride, 1};
}

inline Target target_of(const Matrix& m) {
  return {m.data, m.row_stride, m.col_stride};
}

inline bool should_stream(const Matrix& out) {
  return out.rows * out.cols * dtype_size(out.dtype) > kStreamBytes;
}

}  // namespace npuless::moe_token_permute
