#include "moe_token_permute/probs.h"

#include "base/half.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
void read(const Matrix& probs, int64_t begin, int64_t end, float* out) {
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t j = 0; j < probs.cols; ++j) *out++ = widen(at<T>(probs, token, j));
  }
}

template <class T>
void write(const Matrix& probs, int64_t begin, int64_t end, const float* in) {
  for (int64_t token = begin; token < end; ++token) {
    for (int64_t j = 0; j < probs.cols; ++j) at<T>(probs, token, j) = narrow<T>(*in++);
  }
}

}  // namespace

void read_probs(const Matrix& probs, int64_t begin, int64_t end, float* out) {
  if (probs.dtype == DType::kFloat32) return read<float>(probs, begin, end, out);
  if (probs.dtype == DType::kFloat16) return read<f16>(probs, begin, end, out);
  read<bf16>(probs, begin, end, out);
}

void write_probs(const Matrix& probs, int64_t begin, int64_t end, const float* in) {
  if (probs.dtype == DType::kFloat32) return write<float>(probs, begin, end, in);
  if (probs.dtype == DType::kFloat16) return write<f16>(probs, begin, end, in);
  write<bf16>(probs, begin, end, in);
}

}  // namespace npuless::moe_token_permute
