// What the family's benches share: tensors, positions, and the entries of one operator.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "device.h"
#include "moe_token_permute/cases.h"
#include "two_pass.h"
#include "work.h"

namespace npuless::moe_token_permute {

// Each registers the benches of one file.
void add_permute_entries(bench::Entries& entries);
void add_permute_grad_entries(bench::Entries& entries);
void add_unpermute_entries(bench::Entries& entries);

// Experts drawn evenly.
inline std::vector<int32_t> draw_experts(int64_t slots, int64_t count) {
  std::mt19937 random(1);
  std::vector<int32_t> experts(static_cast<size_t>(slots));
  for (int32_t& e : experts) e = static_cast<int32_t>(random() % static_cast<uint64_t>(count));
  return experts;
}

// Positions of the slots in the order sorted by expert.
inline std::vector<int32_t> positions_of(const std::vector<int32_t>& experts) {
  const int32_t last = experts.empty() ? 0 : *std::max_element(experts.begin(), experts.end());
  std::vector<int32_t> next(static_cast<size_t>(last) + 2);
  for (const int32_t e : experts) ++next[static_cast<size_t>(e) + 1];
  for (size_t e = 1; e < next.size(); ++e) next[e] += next[e - 1];
  std::vector<int32_t> positions;
  for (const int32_t e : experts) positions.push_back(next[static_cast<size_t>(e)]++);
  return positions;
}

template <class T>
void poison(const bench::DeviceTensor<T>& tensor) {
  std::memset(tensor.data(), 0xFF, static_cast<size_t>(tensor.bytes()));
}

// Whether every 97th of `own` is within a rounding or two of `other`.
template <class T, class U>
bool close(const bench::DeviceTensor<T>& own, const std::vector<U>& other, float tolerance) {
  for (int64_t i = 0; i < own.count(); i += 97) {
    const float a = widen(own.data()[i]);
    const float b = widen(other[static_cast<size_t>(i)]);
    if (!(std::abs(a - b) <= tolerance * (1.0f + std::abs(a)))) return false;
  }
  return true;
}
template <class T>
constexpr float kTolerance = sizeof(T) == 4 ? 1e-4f : 0.02f;

inline bench::MoeShape shape_of(const BenchCase& c) {
  return {c.tokens, c.topk, c.hidden};
}

// WORK<T>(case, stream) has a static amount(case), the bytes of selected rows read and of outputs
// written, and mix(case), their proportion.
template <template <class> class WORK, class T>
void add_entry(bench::Entries& entries, const char* what, const char* type, const BenchCase& c,
               int threads = 0) {
  const std::string name = std::string("moe/") + what + "/" + type + "/" +
                           std::to_string(c.tokens) + "x" + std::to_string(c.topk) + "x" +
                           std::to_string(c.hidden) + (threads > 0 ? "/threads:1" : "");
  const int64_t rows = c.tokens * c.topk * c.hidden * static_cast<int64_t>(sizeof(T));
  entries.push_back({name, bench::Roof::kMemory, kDType<T>, static_cast<double>(WORK<T>::amount(c)),
                     5 * rows, false, threads,
                     [c](aclrtStream stream) { return std::make_unique<WORK<T>>(c, stream); }});
  entries.back().mix = WORK<T>::mix(c);
  // Less than this stays in a cache.
  constexpr double kSmall = 64e6;
  if (entries.back().amount < kSmall) entries.back().roof = bench::Roof::kNone;
}

template <template <class> class WORK>
void add_operator(bench::Entries& entries, const char* what) {
  for (const BenchCase& c : kBenchCases) add_entry<WORK, bf16>(entries, what, "bf16", c);
  add_entry<WORK, float>(entries, what, "fp32", kBenchCases[0]);
  add_entry<WORK, float>(entries, what, "fp32", kBenchCases[1]);
  add_entry<WORK, f16>(entries, what, "fp16", kBenchCases[0]);
  add_entry<WORK, bf16>(entries, what, "bf16", kBenchCases[0], 1);
}

}  // namespace npuless::moe_token_permute
