#include "moe_token_permute/probs.h"

#include <algorithm>

#include "base/half.h"
#include "moe_token_permute/copy.h"
#include "moe_token_permute/routing_map.h"

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

// body(expert, slot) for each chosen expert of a token that has a slot.
template <class Body>
void for_each_slot(const Matrix& map, int64_t token, int64_t topk, const Body& body) {
  int64_t j = 0;
  for_each_chosen(map, token, [&](int64_t expert) {
    if (j < topk) body(expert, j++);
  });
}

}  // namespace

float read_prob(const Matrix& probs, int64_t row, int64_t col) {
  if (probs.dtype == DType::kFloat32) return at<float>(probs, row, col);
  if (probs.dtype == DType::kFloat16) return widen(at<f16>(probs, row, col));
  return widen(at<bf16>(probs, row, col));
}

void write_prob(const Matrix& probs, int64_t row, int64_t col, float value) {
  if (probs.dtype == DType::kFloat32) {
    at<float>(probs, row, col) = value;
  } else if (probs.dtype == DType::kFloat16) {
    at<f16>(probs, row, col) = narrow<f16>(value);
  } else {
    at<bf16>(probs, row, col) = narrow<bf16>(value);
  }
}

void read_mapped_probs(const Matrix& probs, const Matrix& map, int64_t topk, int64_t begin,
                       int64_t end, float* out) {
  std::fill_n(out, (end - begin) * topk, 0.0f);
  for (int64_t token = begin; token < end; ++token, out += topk) {
    for_each_slot(map, token, topk,
                  [&](int64_t expert, int64_t j) { out[j] = read_prob(probs, token, expert); });
  }
}

void write_mapped_probs(const Matrix& probs, const Matrix& map, int64_t topk, int64_t begin,
                        int64_t end, const float* in) {
  zero_rows(probs, begin, end);
  for (int64_t token = begin; token < end; ++token, in += topk) {
    for_each_slot(map, token, topk,
                  [&](int64_t expert, int64_t j) { write_prob(probs, token, expert, in[j]); });
  }
}

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
