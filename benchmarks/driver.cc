// Every operator against its roof and its baseline, in one process.
//   npuless_bench [--quick] [--benchmark_filter=REGEX] [--benchmark_out=FILE]
//   --quick   without the problems that take minutes
// Threads: NPULESS_NUM_THREADS. Kernels: NPULESS_ISA.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "base/parallel.h"
#include "device.h"
#include "flop_roofs.h"
#include "isa/level.h"
#include "measure.h"
#include "memory.h"
#include "report.h"
#include "roofs.h"

namespace npuless::bench {
namespace {

// What stays free when a problem is in memory.
constexpr int64_t kReserve = int64_t{512} << 20;

void set_counters(const Entry& entry, const Result& result, benchmark::UserCounters& counters) {
  counters["seconds"] = result.seconds;
  counters["rounds"] = result.rounds;
  counters["workspace_bytes"] = static_cast<double>(result.workspace_bytes);
  counters["added_bytes"] = static_cast<double>(result.peak_bytes);
  if (result.roof > 0) {
    counters["rate"] = entry.amount / result.seconds;
    counters["roof"] = result.roof;
    counters["share_of_roof"] = entry.amount / result.seconds / result.roof;
  }
  if (result.baseline_seconds > 0) {
    counters["baseline_seconds"] = result.baseline_seconds;
    counters["times_baseline"] = result.baseline_seconds / result.seconds;
    counters["baseline_added_bytes"] = static_cast<double>(result.baseline_peak_bytes);
  }
}

void show_progress(const std::string& name) {
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "… %s\r", name.c_str());
}

void bench_entry(benchmark::State& state, const Entry& entry, aclrtStream stream) {
  show_progress(entry.name);
  if (entry.bytes + kReserve > available_memory()) {
    const std::string text = "skipped: needs " + pretty_bytes(static_cast<double>(entry.bytes)) +
                             ", " + pretty_bytes(static_cast<double>(available_memory())) +
                             " are free";
    return state.SkipWithError(text.c_str());
  }
  Result result;
  for (auto _ : state) {
    result = measure(entry, stream);
    state.SetIterationTime(result.seconds);
  }
  if (!result.error.empty()) return state.SkipWithError(result.error.c_str());
  set_counters(entry, result, state.counters);
}

void add_rate(const std::string& name, double (*measure)(int)) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [measure](benchmark::State& state) {
                                 double rate = 0;
                                 for (auto _ : state) {
                                   rate = measure(num_threads());
                                   state.SetIterationTime(1 / rate);
                                 }
                                 state.counters["rate"] = rate;
                               })
      ->Iterations(1)
      ->UseManualTime();
}

void add_roofs() {
  const auto flops = [](DType dtype, int threads) {
    isa::Level level{};
    return isa::active_level(level).ok() ? flop_roof(level, dtype, threads, 5) : 0.0;
  };
  static const auto bf16 = [flops](int threads) { return flops(DType::kBfloat16, threads); };
  static const auto fp32 = [flops](int threads) { return flops(DType::kFloat32, threads); };
  add_rate("roof/flops/bf16", [](int threads) { return bf16(threads); });
  add_rate("roof/flops/fp32", [](int threads) { return fp32(threads); });
  add_rate("roof/read", [](int threads) { return memory_roof({1, 0}, threads, 5); });
  add_rate("roof/write", [](int threads) { return memory_roof({0, 1}, threads, 5); });
  add_rate("roof/copy", [](int threads) { return memory_roof({1, 1}, threads, 5); });
  add_rate("roof/sum_of_8", [](int threads) { return memory_roof({8, 1}, threads, 5); });
}

// Takes the option out of argv.
bool take_option(const char* option, int& argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], option) != 0) continue;
    for (int j = i; j < argc; ++j) argv[j] = argv[j + 1];
    --argc;
    return true;
  }
  return false;
}

void add_all(bool quick, aclrtStream stream) {
  add_roofs();
  static Entries entries;
  linear_cross_entropy::add_entries(entries);
  moe_token_permute::add_entries(entries);
  add_host_entries(entries);
  for (const Entry& entry : entries) {
    if (quick && entry.large) continue;
    benchmark::RegisterBenchmark(
        entry.name.c_str(),
        [&entry, stream](benchmark::State& state) { bench_entry(state, entry, stream); })
        ->Iterations(1)
        ->UseManualTime();
  }
}

}  // namespace
}  // namespace npuless::bench

int main(int argc, char** argv) {
  using namespace npuless::bench;
  // Freed buffers go back at once, so that resident memory tells what a run adds.
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  const bool quick = take_option("--quick", argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  aclrtStream stream = nullptr;
  must(aclInit(nullptr));
  must(aclrtSetDevice(0));
  must(aclrtCreateStream(&stream));
  add_all(quick, stream);
  TableReporter table;
  benchmark::RunSpecifiedBenchmarks(&table);
  benchmark::Shutdown();
  must(aclrtDestroyStream(stream));
  must(aclrtResetDevice(0));
  must(aclFinalize());
  return 0;
}
