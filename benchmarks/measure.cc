#include "measure.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "base/parallel.h"
#include "flop_roofs.h"
#include "isa/level.h"
#include "memory.h"
#include "roofs.h"

namespace npuless::bench {
namespace {

// Rounds go on until both are passed, except that a slow problem is not repeated beyond kPatience.
constexpr double kSeconds = 1.0;
constexpr int kRounds = 5;
constexpr double kPatience = 10.0;
// A turn is as many runs as take this long, one at least. Problems without a roof are too small for
// one: a program that calls them in a row finds its threads awake, and mostly its data in a cache.
constexpr double kShortestTurn = 20e-6;
constexpr double kShortestWarmTurn = 5e-3;

template <class Body>
double seconds_of(Body body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return elapsed.count();
}

template <class Body>
double seconds_of_one(int repeats, Body body) {
  return seconds_of([&] {
           for (int i = 0; i < repeats; ++i) body();
         }) /
         repeats;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The best of two passes: the roof is what the machine can do.
double roof_of(const Entry& entry) {
  constexpr int kPasses = 2;
  if (entry.roof == Roof::kNone) return 0;
  if (entry.roof == Roof::kMemory) return memory_roof(entry.mix, num_threads(), kPasses);
  isa::Level level{};
  if (!isa::active_level(level).ok()) return 0;
  return flop_roof(level, entry.dtype, num_threads(), kPasses);
}

// A first run, for the pages and the answer; what it adds to the resident memory.
template <class Body>
int64_t added_memory(Body body) {
  const int64_t before = resident_memory();
  reset_peak();
  body();
  return std::max<int64_t>(0, peak_memory() - before);
}

// Threads of a library may spin for a while after its last call. Before each side's turn, so that
// both find all threads asleep.
void let_others_sleep() {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void time_rounds(const Entry& entry, Work& work, Baseline* baseline, Result& result) {
  std::vector<double> own, others;
  const double shortest = entry.roof == Roof::kNone ? kShortestWarmTurn : kShortestTurn;
  const auto repeats_of = [&](auto body) {
    body();  // wakes the threads
    const double once = seconds_of(body);
    return once < shortest ? static_cast<int>(shortest / once) + 1 : 1;
  };
  const auto run = [&] { work.run(); };
  const auto run_baseline = [&] { baseline->run(); };
  const int repeats = repeats_of(run);
  const int baseline_repeats = baseline == nullptr ? 0 : repeats_of(run_baseline);
  double spent = 0;
  for (int round = 0; spent < kPatience && (round < kRounds || spent < kSeconds); ++round) {
    spent += seconds_of([&] {
      result.roof = std::max(result.roof, roof_of(entry));
      let_others_sleep();
      own.push_back(seconds_of_one(repeats, run));
      if (baseline == nullptr) return;
      let_others_sleep();
      others.push_back(seconds_of_one(baseline_repeats, run_baseline));
    });
  }
  result.seconds = median(own) / entry.calls;
  result.baseline_seconds = median(others);
  result.rounds = static_cast<int>(own.size());
}

}  // namespace

Result measure(const Entry& entry, aclrtStream stream) {
  Result result;
  const int all = num_threads();
  if (entry.threads > 0 && !set_num_threads(entry.threads).ok()) {
    result.error = "that many threads cannot be had";
    return result;
  }
  {
    const std::unique_ptr<Work> work = entry.make(stream);
    result.workspace_bytes = work->workspace_bytes();
    result.peak_bytes = added_memory([&] { work->run(); });
    if (!work->right()) result.error = "the result is wrong";
    std::unique_ptr<Baseline> baseline;
    result.baseline_peak_bytes = added_memory([&] {
      baseline = work->make_baseline();
      if (baseline != nullptr) baseline->run();
    });
    if (baseline != nullptr) {
      result.baseline_peak_bytes =
          std::max<int64_t>(0, result.baseline_peak_bytes - baseline->output_bytes());
    }
    if (baseline != nullptr && !baseline->agrees()) result.error = "the baseline disagrees";
    let_others_sleep();
    if (result.error.empty()) time_rounds(entry, *work, baseline.get(), result);
  }
  if (entry.threads > 0) static_cast<void>(set_num_threads(all));
  return result;
}

}  // namespace npuless::bench
