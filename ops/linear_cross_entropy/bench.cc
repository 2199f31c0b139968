// Speed of the gradient: GFLOP/s and the share of the arithmetic roof measured in the same run.
//   build/release/bench/bench_linear_cross_entropy [--benchmark_filter=…]
// Each case is checked once, on sampled elements in double precision, before it is timed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "base/parallel.h"
#include "flop_roofs.h"
#include "linear_cross_entropy/cases.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

struct Data {
  Case c;
  DType dtype;
  std::vector<uint16_t> input, weight, input_grad, weight_grad;
  std::vector<float> grad, max, sum, softmax;
  std::vector<uint8_t> mask;
  std::vector<int32_t> target;
};

double widened(const Data& data, uint16_t bits) {
  const bool bfloat16 = data.dtype == DType::kBfloat16;
  return static_cast<double>(bfloat16 ? widen(bf16{bits}) : widen(f16{bits}));
}

void fill(Data& data, std::vector<uint16_t>& values, int64_t count, float scale) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> uniform(-scale, scale);
  values.resize(static_cast<size_t>(count));
  for (uint16_t& v : values) {
    const float x = uniform(random);
    v = data.dtype == DType::kBfloat16 ? narrow<bf16>(x).bits : narrow<f16>(x).bits;
  }
}

Data make_data(const Case& c, DType dtype, bool softmax_mode) {
  Data data{c, dtype, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const auto tokens = static_cast<size_t>(c.tokens);
  fill(data, data.input, c.tokens * c.hidden, 1.0f);
  fill(data, data.weight, c.vocab * c.hidden, 0.05f);
  data.input_grad.resize(data.input.size());
  data.weight_grad.resize(data.weight.size());
  data.grad.assign(tokens, 1.0f / static_cast<float>(c.tokens));
  data.max.assign(tokens, 2.0f);
  data.sum.assign(tokens, 0.2f * static_cast<float>(c.vocab));
  if (softmax_mode) data.softmax.assign(tokens * static_cast<size_t>(c.vocab), 1e-4f);
  data.mask.assign((tokens + 7) / 8, 0);
  for (size_t i = 0; i < tokens; ++i) {
    data.target.push_back(static_cast<int32_t>(i * 7919 % static_cast<size_t>(c.vocab)));
  }
  return data;
}

GradArgs arguments(Data& d) {
  const Case& c = d.c;
  GradArgs args;
  args.grad = {d.grad.data(), c.tokens, 1, DType::kFloat32};
  args.input = {d.input.data(), c.tokens, c.hidden, c.hidden, 1, d.dtype};
  args.weight = {d.weight.data(), c.vocab, c.hidden, c.hidden, 1, d.dtype};
  args.target_mask = {d.mask.data(), (c.tokens + 7) / 8, 1, DType::kUint8};
  args.masked_target = {d.target.data(), c.tokens, 1, DType::kInt32};
  args.logits_max = {d.max.data(), c.tokens, 1, DType::kFloat32};
  args.sum_exp = {d.sum.data(), c.tokens, 1, DType::kFloat32};
  args.has_softmax = !d.softmax.empty();
  args.softmax = {d.softmax.data(), c.tokens, c.vocab, c.vocab, 1, DType::kFloat32};
  args.input_grad = {d.input_grad.data(), c.tokens, c.hidden, c.hidden, 1, d.dtype};
  args.weight_grad = {d.weight_grad.data(), c.vocab, c.hidden, c.hidden, 1, d.dtype};
  return args;
}

double probability(const Data& d, int64_t token, int64_t v) {
  const Case& c = d.c;
  if (!d.softmax.empty()) {
    return static_cast<double>(d.softmax[static_cast<size_t>(token * c.vocab + v)]);
  }
  double z = 0;
  for (int64_t h = 0; h < c.hidden; ++h) {
    z += widened(d, d.input[static_cast<size_t>(token * c.hidden + h)]) *
         widened(d, d.weight[static_cast<size_t>(v * c.hidden + h)]);
  }
  const auto i = static_cast<size_t>(token);
  return std::exp(z - static_cast<double>(d.max[i])) / static_cast<double>(d.sum[i]);
}

// One token's inputGrad and one vocabulary row's weightGrad, 8 columns each, to 2 % of the row's
// largest magnitude: enough to tell a result from garbage; the tests hold the tight bounds.
bool is_right(const Data& d) {
  const Case& c = d.c;
  const int64_t token = c.tokens / 2;
  const int64_t row = c.vocab / 3;
  const auto error = [&](const std::vector<uint16_t>& got, int64_t at, const double* want) {
    double worst = 0;
    double largest = 1e-30;
    for (int64_t h = 0; h < 8; ++h) {
      const double value = widened(d, got[static_cast<size_t>(at * c.hidden + h)]);
      worst = std::fmax(worst, std::fabs(value - want[h]));
      largest = std::fmax(largest, std::fabs(want[h]));
    }
    return worst / largest;
  };
  double input_grad[8] = {};
  for (int64_t v = 0; v < c.vocab; ++v) {
    const double own = d.target[static_cast<size_t>(token)] == v ? 1.0 : 0.0;
    for (int64_t h = 0; h < 8; ++h) {
      input_grad[h] += (probability(d, token, v) - own) / static_cast<double>(c.tokens) *
                       widened(d, d.weight[static_cast<size_t>(v * c.hidden + h)]);
    }
  }
  double weight_grad[8] = {};
  for (int64_t n = 0; n < c.tokens; ++n) {
    const double own = d.target[static_cast<size_t>(n)] == row ? 1.0 : 0.0;
    for (int64_t h = 0; h < 8; ++h) {
      weight_grad[h] += (probability(d, n, row) - own) / static_cast<double>(c.tokens) *
                        widened(d, d.input[static_cast<size_t>(n * c.hidden + h)]);
    }
  }
  return error(d.input_grad, token, input_grad) < 0.02 &&
         error(d.weight_grad, row, weight_grad) < 0.02;
}

void bench_grad(benchmark::State& state, const Case& c, DType dtype, bool softmax_mode) {
  Data data = make_data(c, dtype, softmax_mode);
  GradPlan plan{};
  if (!plan_grad(arguments(data), plan).ok()) return state.SkipWithError("plan failed");
  std::unique_ptr<unsigned char[]> workspace(
      new unsigned char[static_cast<size_t>(plan.workspace_bytes)]);
  if (!run_grad(plan, workspace.get()).ok() || !is_right(data)) {
    return state.SkipWithError("the result is wrong");
  }
  isa::Level level{};
  if (!isa::active_level(level).ok()) return state.SkipWithError("no ISA level");
  double roof = bench::flop_roof(level, dtype, plan.threads);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    if (!run_grad(plan, workspace.get()).ok()) return state.SkipWithError("run failed");
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  roof = std::max(roof, bench::flop_roof(level, dtype, plan.threads));
  const double flops = (softmax_mode ? 4.0 : 6.0) * static_cast<double>(c.tokens) *
                       static_cast<double>(c.hidden) * static_cast<double>(c.vocab);
  const double speed = flops * static_cast<double>(state.iterations()) / time.count();
  state.counters["GFLOP/s"] = speed / 1e9;
  state.counters["share_of_roof"] = speed / roof;
  state.counters["roof_GFLOP/s"] = roof / 1e9;
  state.counters["workspace_MiB"] = static_cast<double>(plan.workspace_bytes) / 0x1p20;
}

void register_all() {
  for (const Case& c : kBenchCases) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
      for (const bool softmax_mode : {false, true}) {
        const std::string name = std::string("grad/") + dtype_name(dtype) +
                                 (softmax_mode ? "/softmax/" : "/saving/") +
                                 std::to_string(c.tokens) + "x" + std::to_string(c.hidden) + "x" +
                                 std::to_string(c.vocab);
        benchmark::RegisterBenchmark(
            name.c_str(),
            [=](benchmark::State& state) { bench_grad(state, c, dtype, softmax_mode); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace npuless::linear_cross_entropy

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  npuless::linear_cross_entropy::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
