// References of the unpermute and its gradients: the scalar models, whose bits the kernels must
// give, and the formulas in double with the error that the models may make. Contiguous vectors, one
// obvious loop each. No probabilities: an empty vector.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "base/half.h"
#include "moe_token_permute/ref.h"

namespace npuless::moe_token_permute {

// Calls body(token, slot, row) for the slots that select a row, in order.
template <class Body>
void for_each_selected(const RefShape& shape, const std::vector<int32_t>& indices, Body body) {
  for (size_t slot = 0; slot < indices.size(); ++slot) {
    if (!shape.selects(indices[slot])) continue;
    const auto token = slot / static_cast<size_t>(shape.topk);
    body(token, slot, static_cast<size_t>(indices[slot] - shape.range_begin));
  }
}

template <class T, class P>
std::vector<T> model_unpermute(const RefShape& shape, const std::vector<T>& rows,
                               const std::vector<P>& probs, const std::vector<int32_t>& indices) {
  const auto hidden = static_cast<size_t>(shape.hidden);
  const auto topk = static_cast<size_t>(shape.topk);
  std::vector<float> sums(static_cast<size_t>(shape.tokens) * hidden, 0.0f);
  for_each_selected(shape, indices, [&](size_t token, size_t slot, size_t row) {
    if (!probs.empty() && widen(probs[slot]) == 0.0f) return;
    for (size_t h = 0; h < hidden; ++h) {
      const float x = widen(rows[row * hidden + h]);
      const float term = probs.empty() ? x : widen(probs[slot]) * x;
      float& sum = sums[token * hidden + h];
      sum = slot % topk == 0 ? term : sum + term;
    }
  });
  std::vector<T> out;
  for (const float sum : sums) out.push_back(narrow<T>(sum));
  return out;
}

// `rows`: those of the output, of which slots that select the same one write it in order.
template <class T, class P>
std::vector<T> model_permuted_grad(const RefShape& shape, int64_t rows, const std::vector<T>& grad,
                                   const std::vector<P>& probs,
                                   const std::vector<int32_t>& indices) {
  const auto hidden = static_cast<size_t>(shape.hidden);
  std::vector<T> out(static_cast<size_t>(rows) * hidden, T{});
  for_each_selected(shape, indices, [&](size_t token, size_t slot, size_t row) {
    for (size_t h = 0; h < hidden; ++h) {
      const T g = grad[token * hidden + h];
      out[row * hidden + h] = probs.empty() ? g : narrow<T>(widen(probs[slot]) * widen(g));
    }
  });
  return out;
}

// 32 interleaved sums, halved until one is left.
template <class T>
float model_dot(const T* x, const T* y, size_t count) {
  float lanes[32] = {};
  for (size_t h = 0; h < count; ++h) lanes[h % 32] += widen(x[h]) * widen(y[h]);
  for (size_t half = 16; half > 0; half /= 2) {
    for (size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0];
}

template <class T, class P>
std::vector<P> model_unpermute_probs_grad(const RefShape& shape, const std::vector<T>& rows,
                                          const std::vector<T>& grad,
                                          const std::vector<int32_t>& indices) {
  const auto hidden = static_cast<size_t>(shape.hidden);
  std::vector<P> out(indices.size(), P{});
  for_each_selected(shape, indices, [&](size_t token, size_t slot, size_t row) {
    out[slot] =
        narrow<P>(model_dot(rows.data() + row * hidden, grad.data() + token * hidden, hidden));
  });
  return out;
}

// The formulas. Rows and probabilities in double, so that they can be moved by a little.
struct RefUnpermute {
  RefShape shape;
  std::vector<int32_t> indices;
  std::vector<double> rows;
  std::vector<double> probs;  // of every slot

  std::vector<double> out() const {
    const auto hidden = static_cast<size_t>(shape.hidden);
    std::vector<double> out(static_cast<size_t>(shape.tokens) * hidden, 0.0);
    for_each_selected(shape, indices, [&](size_t token, size_t slot, size_t row) {
      for (size_t h = 0; h < hidden; ++h) {
        out[token * hidden + h] += probs[slot] * rows[row * hidden + h];
      }
    });
    return out;
  }
  // Σ out · grad, whose gradients are asked for.
  double loss(const std::vector<double>& grad) const {
    const std::vector<double> values = out();
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) sum += values[i] * grad[i];
    return sum;
  }
};

// What central differences of `loss` by one of its parameters give. Exact but for rounding: the
// loss is linear in each.
inline double central_difference(const RefUnpermute& ref, double& parameter,
                                 const std::vector<double>& grad) {
  constexpr double kStep = 0x1p-3;
  const double at = parameter;
  parameter = at + kStep;
  const double above = ref.loss(grad);
  parameter = at - kStep;
  const double below = ref.loss(grad);
  parameter = at;
  return (above - below) / (2 * kStep);
}

// `operations` roundings in fp32 of terms whose magnitudes sum to `magnitude`, then one to T. Each
// errs by at most u of a partial sum, which the magnitudes bound up to a factor (1 + u)^operations,
// below 2, or by half the smallest number; so does the last.
template <class T>
double rounding_bound(double value, double magnitude, int64_t operations) {
  const double n = static_cast<double>(operations);
  const double inner = 2 * n * (kUnitRoundoff<float> * magnitude + kSmallest<float> / 2);
  return inner + kUnitRoundoff<T> * (std::abs(value) + inner) + kSmallest<T> / 2;
}

}  // namespace npuless::moe_token_permute
