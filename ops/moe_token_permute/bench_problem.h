// What the family's benches share: data, roofs, and one way to time a problem.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/acl_meta.h"
#include "base/dtype.h"
#include "base/half.h"
#include "base/parallel.h"
#include "moe_token_permute/cases.h"
#include "roofs.h"

namespace npuless::moe_token_permute {

inline constexpr int64_t kExperts = 64;

// Each registers the benches of one file.
void add_permute_benches(aclrtStream stream);
void add_permute_grad_benches(aclrtStream stream);
void add_unpermute_benches(aclrtStream stream);

inline void must(aclError status) {
  if (status == ACL_SUCCESS) return;
  const char* sentence = aclGetRecentErrMsg();
  std::fprintf(stderr, "%s\n", sentence == nullptr ? "failed" : sentence);
  std::abort();
}

// A contiguous tensor in device memory, which is addressable here.
template <class T>
class DeviceTensor {
 public:
  explicit DeviceTensor(std::vector<int64_t> dims) {
    for (const int64_t dim : dims) count_ *= dim;
    void* memory = nullptr;
    must(aclrtMalloc(&memory, static_cast<size_t>(count_) * sizeof(T), ACL_MEM_MALLOC_HUGE_FIRST));
    data_ = static_cast<T*>(memory);
    handle_ = aclCreateTensor(dims.data(), dims.size(), static_cast<aclDataType>(kDType<T>),
                              nullptr, 0, ACL_FORMAT_ND, dims.data(), dims.size(), memory);
  }
  ~DeviceTensor() {
    aclDestroyTensor(handle_);
    aclrtFree(data_);
  }
  DeviceTensor(const DeviceTensor&) = delete;
  DeviceTensor& operator=(const DeviceTensor&) = delete;

  T* data() const { return data_; }
  int64_t count() const { return count_; }
  int64_t bytes() const { return count_ * static_cast<int64_t>(sizeof(T)); }
  aclTensor* handle() const { return handle_; }

 private:
  T* data_;
  int64_t count_ = 1;
  aclTensor* handle_;
};

template <class T>
void fill(const DeviceTensor<T>& tensor) {
  uint32_t state = 1;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.data()[i] = narrow<T>(static_cast<float>(state >> 16) * 0x1p-16f - 0.5f);
  }
}

// Experts drawn evenly.
inline std::vector<int32_t> draw_experts(int64_t slots) {
  std::mt19937 random(1);
  std::vector<int32_t> experts(static_cast<size_t>(slots));
  for (int32_t& e : experts) e = static_cast<int32_t>(random() % kExperts);
  return experts;
}

// Positions of the slots in the order sorted by expert.
inline std::vector<int32_t> positions_of(const std::vector<int32_t>& experts) {
  std::vector<int32_t> next(kExperts + 1);
  for (const int32_t e : experts) ++next[static_cast<size_t>(e) + 1];
  for (size_t e = 1; e <= kExperts; ++e) next[e] += next[e - 1];
  std::vector<int32_t> positions;
  for (const int32_t e : experts) positions.push_back(next[static_cast<size_t>(e)]++);
  return positions;
}

struct Roofs {
  double copy;
  double read;
};

inline Roofs measure_roofs() {
  return {bench::copy_roof(num_threads()), bench::read_roof(num_threads())};
}

// A problem has run(), bytes() moved and right().
template <class PROBLEM>
void time_problem(benchmark::State& state, const PROBLEM& problem) {
  problem.run();
  if (!problem.right()) {
    state.SkipWithError("wrong result");
    return;
  }
  const Roofs before = measure_roofs();
  double best_seconds = 1e9;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    problem.run();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    best_seconds = std::min(best_seconds, elapsed.count());
  }
  const Roofs after = measure_roofs();
  const double best = problem.bytes() / best_seconds;
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(problem.bytes()));
  state.counters["best_GB/s"] = best * 1e-9;
  state.counters["of_copy"] = best / std::max(before.copy, after.copy);
  state.counters["of_read"] = best / std::max(before.read, after.read);
  state.counters["copy_roof_GB/s"] = std::max(before.copy, after.copy) * 1e-9;
}

// PROBLEM<T>(case, stream) for every case and type.
template <template <class> class PROBLEM, class T>
void add_bench(const char* what, const char* type, const Case& c, aclrtStream stream) {
  const std::string name = std::string(what) + "/" + type + "/tokens:" + std::to_string(c.tokens) +
                           "/topk:" + std::to_string(c.topk) +
                           "/hidden:" + std::to_string(c.hidden) +
                           "/threads:" + std::to_string(num_threads());
  benchmark::RegisterBenchmark(
      name.c_str(),
      [c, stream](benchmark::State& state) { time_problem(state, PROBLEM<T>(c, stream)); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

template <template <class> class PROBLEM>
void add_benches(const char* what, aclrtStream stream) {
  for (const Case& c : kBenchCases) {
    add_bench<PROBLEM, bf16>(what, "bf16", c, stream);
    add_bench<PROBLEM, f16>(what, "fp16", c, stream);
    add_bench<PROBLEM, float>(what, "fp32", c, stream);
  }
}

}  // namespace npuless::moe_token_permute
