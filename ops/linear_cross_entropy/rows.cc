#include "base/math.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {

const Kernels& kernels_for([[maybe_unused]] isa::Level level) {
#if defined(__x86_64__)
  if (level >= isa::Level::kAvx512) return avx512::linear_cross_entropy_kernels;
  if (level == isa::Level::kAvx2) return avx2::linear_cross_entropy_kernels;
#endif
  return portable::linear_cross_entropy_kernels;
}

void narrow_into(NarrowFn narrow, const Matrix& out, int64_t row, int64_t col, int64_t n,
                 float scale, const float* in) {
  if (out.rows_contiguous()) return narrow(in, n, scale, &at<uint16_t>(out, row, col));
  constexpr int64_t kChunk = 512;
  uint16_t rounded[kChunk];
  for (int64_t j = 0; j < n; j += kChunk) {
    const int64_t count = min64(kChunk, n - j);
    narrow(in + j, count, scale, rounded);
    for (int64_t i = 0; i < count; ++i) at<uint16_t>(out, row, col + j + i) = rounded[i];
  }
}

}  // namespace npuless::linear_cross_entropy
