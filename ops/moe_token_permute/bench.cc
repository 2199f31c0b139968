// Speed of the permute gradients: bytes of selected rows read and of outputs written per second,
// and the share of the copy roof measured around each case.
//   build/release/bench/bench_moe_token_permute [--benchmark_filter=…]
// Runs through the public functions, stream included. Each case is checked once, on sampled
// tokens bit for bit, before it is timed. NPULESS_NUM_THREADS sets the threads.
//   bytes_per_second  the mean over all runs, as the time beside it
//   best_GB/s         of the fastest run, which other load on the machine disturbed least
//   of_copy           best_GB/s over the best copy; of_read likewise
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "base/half.h"
#include "base/parallel.h"
#include "moe_token_permute/cases.h"
#include "moe_token_permute/ref.h"
#include "roofs.h"

namespace npuless::moe_token_permute {
namespace {

constexpr int64_t kExperts = 64;

void must(aclError status) {
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
  aclTensor* handle() const { return handle_; }

 private:
  T* data_;
  int64_t count_ = 1;
  aclTensor* handle_;
};

// Positions of the slots in the order sorted by expert, experts drawn evenly.
void route(const DeviceTensor<int32_t>& indices) {
  std::mt19937 random(1);
  std::vector<int32_t> expert(static_cast<size_t>(indices.count()));
  std::vector<int32_t> next(kExperts + 1);
  for (int32_t& e : expert)
    ++next[static_cast<size_t>(e = static_cast<int32_t>(random() % kExperts)) + 1];
  for (size_t e = 1; e <= kExperts; ++e) next[e] += next[e - 1];
  for (size_t s = 0; s < expert.size(); ++s) {
    indices.data()[s] = next[static_cast<size_t>(expert[s])]++;
  }
}

template <class T>
void fill(const DeviceTensor<T>& tensor) {
  uint32_t state = 1;
  for (int64_t i = 0; i < tensor.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    tensor.data()[i] = narrow<T>(static_cast<float>(state >> 16) * 0x1p-16f - 0.5f);
  }
}

template <class T>
class Problem {
 public:
  Problem(const Case& c, aclrtStream stream)
      : case_(c),
        stream_(stream),
        grad_({c.tokens * c.topk, c.hidden}),
        indices_({c.tokens * c.topk}),
        probs_grad_({c.tokens * c.topk}),
        token_grad_({c.tokens, c.hidden}),
        probs_out_({c.tokens, c.topk}) {
    fill(grad_);
    fill(probs_grad_);
    route(indices_);
    const int64_t ends[] = {0, c.tokens * c.topk};
    const aclIntArray* range = aclCreateIntArray(ends, 2);
    uint64_t workspace_size = 0;
    must(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        grad_.handle(), indices_.handle(), probs_grad_.handle(), c.topk, range, false,
        token_grad_.handle(), probs_out_.handle(), &workspace_size, &executor_));
    must(aclSetAclOpExecutorRepeatable(executor_));
    aclDestroyIntArray(range);
  }
  ~Problem() { aclDestroyAclOpExecutor(executor_); }
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  void run() const {
    must(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, executor_, stream_));
    must(aclrtSynchronizeStream(stream_));
  }

  double bytes() const {
    const int64_t probs = 2 * probs_grad_.count();
    const int64_t elements = grad_.count() + token_grad_.count() + probs;
    return static_cast<double>(elements * static_cast<int64_t>(sizeof(T)) +
                               indices_.count() * static_cast<int64_t>(sizeof(int32_t)));
  }

  // About a hundred tokens against the scalar model.
  bool right() const {
    const int64_t step = std::max<int64_t>(1, case_.tokens / 97);
    for (int64_t token = 0; token < case_.tokens; token += step) {
      if (!right(token)) return false;
    }
    return true;
  }

 private:
  bool right(int64_t token) const {
    const RefShape shape{1, case_.topk, case_.hidden, 0, case_.topk};
    std::vector<T> rows;
    std::vector<int32_t> slots;
    for (int64_t j = 0; j < case_.topk; ++j) {
      const T* row = grad_.data() + indices_.data()[token * case_.topk + j] * case_.hidden;
      rows.insert(rows.end(), row, row + case_.hidden);
      slots.push_back(static_cast<int32_t>(j));
    }
    const auto expected = model_token_grad(shape, rows, slots);
    return std::memcmp(expected.data(), token_grad_.data() + token * case_.hidden,
                       expected.size() * sizeof(T)) == 0;
  }

  Case case_;
  aclrtStream stream_;
  DeviceTensor<T> grad_;
  DeviceTensor<int32_t> indices_;
  DeviceTensor<T> probs_grad_;
  DeviceTensor<T> token_grad_;
  DeviceTensor<T> probs_out_;
  aclOpExecutor* executor_ = nullptr;
};

struct Roofs {
  double copy;
  double read;
};

Roofs measure_roofs() {
  return {bench::copy_roof(num_threads()), bench::read_roof(num_threads())};
}

template <class T>
void permute_grad(benchmark::State& state, const Case& c, aclrtStream stream) {
  const Problem<T> problem(c, stream);
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

template <class T>
void add(const char* type, const Case& c, aclrtStream stream) {
  const std::string name =
      std::string("permute_with_ep_grad/") + type + "/tokens:" + std::to_string(c.tokens) +
      "/topk:" + std::to_string(c.topk) + "/hidden:" + std::to_string(c.hidden) +
      "/threads:" + std::to_string(num_threads());
  benchmark::RegisterBenchmark(
      name.c_str(), [c, stream](benchmark::State& state) { permute_grad<T>(state, c, stream); })
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace
}  // namespace npuless::moe_token_permute

int main(int argc, char** argv) {
  using namespace npuless;
  namespace family = npuless::moe_token_permute;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  aclrtStream stream = nullptr;
  family::must(aclInit(nullptr));
  family::must(aclrtSetDevice(0));
  family::must(aclrtCreateStream(&stream));
  for (const family::Case& c : family::kBenchCases) {
    family::add<bf16>("bf16", c, stream);
    family::add<f16>("fp16", c, stream);
    family::add<float>("fp32", c, stream);
  }
  benchmark::RunSpecifiedBenchmarks();
  family::must(aclrtDestroyStream(stream));
  family::must(aclrtResetDevice(0));
  family::must(aclFinalize());
  return 0;
}
