// References of the permute gradients: the scalar model, whose bits the kernels must give, and the
// exact sum with the error that the model may make. Contiguous vectors, one obvious loop each.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/half.h"

namespace npuless::moe_token_permute {

struct RefShape {
  int64_t tokens;
  int64_t topk;
  int64_t hidden;
  int64_t range_begin;
  int64_t range_end;

  bool selects(int64_t index) const { return index >= range_begin && index < range_end; }
};

template <class T>
std::vector<T> model_token_grad(const RefShape& shape, const std::vector<T>& grad,
                                const std::vector<int32_t>& indices) {
  std::vector<T> out;
  for (int64_t t = 0; t < shape.tokens; ++t) {
    for (int64_t h = 0; h < shape.hidden; ++h) {
      float sum = 0.0f;
      for (int64_t j = 0; j < shape.topk; ++j) {
        const int64_t index = indices[static_cast<size_t>(t * shape.topk + j)];
        if (!shape.selects(index)) continue;
        const int64_t row = index - shape.range_begin;
        const float x = widen(grad[static_cast<size_t>(row * shape.hidden + h)]);
        sum = j == 0 ? x : sum + x;
      }
      out.push_back(narrow<T>(sum));
    }
  }
  return out;
}

template <class T>
std::vector<T> model_probs_grad(const RefShape& shape, const std::vector<T>& probs_grad,
                                const std::vector<int32_t>& indices) {
  std::vector<T> out;
  for (const int64_t index : indices) {
    out.push_back(shape.selects(index) ? probs_grad[static_cast<size_t>(index - shape.range_begin)]
                                       : T{});
  }
  return out;
}

// Half the distance between neighbours of 1, and the smallest positive number.
template <class T>
inline constexpr double kUnitRoundoff = 0;
template <>
inline constexpr double kUnitRoundoff<float> = 0x1p-24;
template <>
inline constexpr double kUnitRoundoff<f16> = 0x1p-11;
template <>
inline constexpr double kUnitRoundoff<bf16> = 0x1p-8;
template <class T>
inline constexpr double kSmallest = 0;
template <>
inline constexpr double kSmallest<float> = 0x1p-149;
template <>
inline constexpr double kSmallest<f16> = 0x1p-24;
template <>
inline constexpr double kSmallest<bf16> = 0x1p-133;

struct Exact {
  double value;
  double tolerance;
};

// topk − 1 additions each err by at most u of a partial sum, which Σ|x| bounds up to a factor
// (1 + u)^topk, below 2; the narrowing errs by u of the result or half the smallest number.
template <class T>
std::vector<Exact> exact_token_grad(const RefShape& shape, const std::vector<T>& grad,
                                    const std::vector<int32_t>& indices) {
  std::vector<Exact> out;
  for (int64_t t = 0; t < shape.tokens; ++t) {
    for (int64_t h = 0; h < shape.hidden; ++h) {
      double sum = 0;
      double magnitude = 0;
      for (int64_t j = 0; j < shape.topk; ++j) {
        const int64_t index = indices[static_cast<size_t>(t * shape.topk + j)];
        if (!shape.selects(index)) continue;
        const int64_t row = index - shape.range_begin;
        const double x =
            static_cast<double>(widen(grad[static_cast<size_t>(row * shape.hidden + h)]));
        sum += x;
        magnitude += std::abs(x);
      }
      const double sum_error =
          2 * kUnitRoundoff<float> * static_cast<double>(shape.topk - 1) * magnitude;
      const double rounding = kUnitRoundoff<T> * (std::abs(sum) + sum_error) + kSmallest<T> / 2;
      out.push_back({sum, sum_error + rounding});
    }
  }
  return out;
}

}  // namespace npuless::moe_token_permute
