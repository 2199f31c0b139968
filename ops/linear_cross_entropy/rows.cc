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

Status check_size(int64_t tokens, int64_t hidden, int64_t vocab) {
  // A packed panel is below 2^11 rows and an element at most 4 bytes, so every piece of a workspace stays
  // below 2^59 bytes.
  constexpr int64_t kMaxDim = int64_t{1} << 44;
  constexpr double kMaxElements = 0x1p56;
  const auto wide = [](int64_t a, int64_t b) {
    return static_cast<double>(a) * static_cast<double>(b) > kMaxElements;
  };
  const int64_t largest = max64(tokens, max64(hidden, vocab));
  if (largest <= kMaxDim && !wide(tokens, hidden)) return {};
  return fail(code::kParamInvalid,
              "input of shape [%lld, %lld] and weight of %lld rows are too large for any workspace",
              static_cast<long long>(tokens), static_cast<long long>(hidden),
              static_cast<long long>(vocab));
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
