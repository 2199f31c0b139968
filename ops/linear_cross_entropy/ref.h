// The gradient in double precision, as the formula reads, with a bound on what any correct fp32
// implementation may differ by. Scalar and obvious; nothing here is shared with the kernels.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace npuless::linear_cross_entropy::ref {

struct GradInputs {
  int64_t tokens, hidden, vocab;
  std::vector<double> grad;      // [N]
  std::vector<double> input;     // [N,H]
  std::vector<double> weight;    // [V,H]
  std::vector<int64_t> target;   // [N]; outside [0,V): nothing is subtracted
  std::vector<double> max, sum;  // [N]; memory-saving mode
  std::vector<double> softmax;   // [N,V]; high-performance mode when not empty
};

// Unit roundoffs: of fp32, of the rounding of d ⊙ grad (0 when it stays fp32), of the outputs, and
// the outputs' smallest subnormal.
struct Precision {
  double accumulate = std::ldexp(1.0, -24);
  double grad_logits;
  double output;
  double output_tiny;
};

struct GradOutputs {
  std::vector<double> input_grad, weight_grad;    // [N,H], [V,H]
  std::vector<double> input_bound, weight_bound;  // largest allowed |difference|
};

struct Row {
  std::vector<double> d, bound;
};

// One token's (d ⊙ grad)[V] and a bound on its error before the products.
inline Row grad_logits_row(const GradInputs& in, const Precision& p, int64_t n) {
  Row row;
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const double u = p.accumulate;
  for (int64_t v = 0; v < in.vocab; ++v) {
    double probability = 0;
    double error = 0;
    if (!in.softmax.empty()) {
      probability = in.softmax[at(n * in.vocab + v)];
    } else {
      double z = 0;
      double magnitude = 0;
      for (int64_t h = 0; h < in.hidden; ++h) {
        const double term = in.input[at(n * in.hidden + h)] * in.weight[at(v * in.hidden + h)];
        z += term;
        magnitude += std::fabs(term);
      }
      const double shifted = z - in.max[at(n)];
      probability = std::exp(shifted) / in.sum[at(n)];
      // H roundings of the sum, one of the subtraction, 2^-22 of exp and 4 of the rest.
      const double relative = static_cast<double>(in.hidden) * u * magnitude +
                              u * std::fabs(shifted) + std::ldexp(1.0, -22) + 4 * u;
      error = probability * std::expm1(relative);
    }
    const double d = probability - (in.target[at(n)] == v ? 1.0 : 0.0);
    const double scaled = d * in.grad[at(n)];
    const double scale = std::fabs(in.grad[at(n)]);
    row.d.push_back(scaled);
    row.bound.push_back(scale * (error + 2 * u * std::fabs(d)) * (1 + p.grad_logits) +
                        p.grad_logits * std::fabs(scaled) + scale * 1e-37);
  }
  return row;
}

inline double output_bound(double value, double error, double sum_of_magnitudes, double terms,
                           const Precision& p) {
  const double before = error + terms * p.accumulate * sum_of_magnitudes;
  return before * (1 + p.output) + p.output * std::fabs(value) + p.output_tiny;
}

inline GradOutputs grad(const GradInputs& in, const Precision& p) {
  const auto at = [](int64_t i) { return static_cast<size_t>(i); };
  const auto inputs = at(in.tokens * in.hidden);
  const auto weights = at(in.vocab * in.hidden);
  GradOutputs out;
  out.input_grad.assign(inputs, 0);
  out.weight_grad.assign(weights, 0);
  std::vector<double> input_error(inputs), input_sum(inputs);
  std::vector<double> weight_error(weights), weight_sum(weights);
  for (int64_t n = 0; n < in.tokens; ++n) {
    if (in.grad[at(n)] == 0) continue;
    const Row row = grad_logits_row(in, p, n);
    for (int64_t v = 0; v < in.vocab; ++v) {
      const double d = row.d[at(v)];
      const double bound = row.bound[at(v)];
      for (int64_t h = 0; h < in.hidden; ++h) {
        const size_t x = at(n * in.hidden + h);
        const size_t w = at(v * in.hidden + h);
        out.input_grad[x] += d * in.weight[w];
        input_error[x] += bound * std::fabs(in.weight[w]);
        input_sum[x] += (std::fabs(d) + bound) * std::fabs(in.weight[w]);
        out.weight_grad[w] += d * in.input[x];
        weight_error[w] += bound * std::fabs(in.input[x]);
        weight_sum[w] += (std::fabs(d) + bound) * std::fabs(in.input[x]);
      }
    }
  }
  const auto bounds = [&](const std::vector<double>& value, const std::vector<double>& error,
                          const std::vector<double>& sum, int64_t terms) {
    std::vector<double> result(value.size());
    for (size_t i = 0; i < value.size(); ++i) {
      result[i] = output_bound(value[i], error[i], sum[i], static_cast<double>(terms + 2), p);
    }
    return result;
  };
  out.input_bound = bounds(out.input_grad, input_error, input_sum, in.vocab);
  out.weight_bound = bounds(out.weight_grad, weight_error, weight_sum, in.tokens);
  return out;
}

}  // namespace npuless::linear_cross_entropy::ref
