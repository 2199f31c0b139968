// The permute, and its index by itself.
#include "aclnnop/aclnn_moe_token_permute.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/index.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
class PermuteBaseline : public bench::Baseline {
 public:
  PermuteBaseline(const BenchCase& c, const bench::DeviceTensor<T>& tokens,
                  const bench::DeviceTensor<int32_t>& experts,
                  const bench::DeviceTensor<T>& permuted)
      : case_(c),
        tokens_(tokens),
        experts_(experts),
        own_(permuted),
        permuted_(static_cast<size_t>(permuted.count())),
        rows_(static_cast<size_t>(experts.count())) {}

  void run() override {
    bench::two_pass_permute(shape_of(case_), tokens_.data(), experts_.data(), permuted_.data(),
                            rows_.data());
  }
  bool agrees() const override { return close(own_, permuted_, 0.0f); }
  int64_t output_bytes() const override { return own_.bytes() + experts_.bytes(); }

 private:
  BenchCase case_;
  const bench::DeviceTensor<T>& tokens_;
  const bench::DeviceTensor<int32_t>& experts_;
  const bench::DeviceTensor<T>& own_;
  std::vector<T> permuted_;
  std::vector<int32_t> rows_;
};

template <class T>
class PermuteWork : public bench::Work {
 public:
  PermuteWork(const BenchCase& c, aclrtStream stream)
      : case_(c),
        tokens_({c.tokens, c.hidden}),
        experts_({c.tokens, c.topk}),
        permuted_({c.tokens * c.topk, c.hidden}),
        rows_({c.tokens * c.topk}),
        launcher_(&aclnnMoeTokenPermute, stream) {
    fill(tokens_);
    poison(permuted_);
    const auto experts = draw_experts(experts_.count(), c.experts);
    std::copy(experts.begin(), experts.end(), experts_.data());
    bench::must(aclnnMoeTokenPermuteGetWorkspaceSize(
        tokens_.handle(), experts_.handle(), 0, false, permuted_.handle(), rows_.handle(),
        &launcher_.workspace_size, &launcher_.executor));
    launcher_.prepare();
  }

  static bench::Mix mix(const BenchCase& c) { return {1, static_cast<int>(c.topk)}; }
  static int64_t amount(const BenchCase& c) {
    const int64_t slots = c.tokens * c.topk;
    return (c.tokens + slots) * c.hidden * static_cast<int64_t>(sizeof(T)) + 2 * slots * 4;
  }

  void run() override { launcher_.run(); }
  uint64_t workspace_bytes() const override { return launcher_.workspace_size; }
  std::unique_ptr<bench::Baseline> make_baseline() override {
    if constexpr (std::is_same_v<T, f16>) return nullptr;
    return std::make_unique<PermuteBaseline<T>>(case_, tokens_, experts_, permuted_);
  }

  bool right() const override {
    const auto rows = positions_of({experts_.data(), experts_.data() + experts_.count()});
    for (int64_t slot = 0; slot < experts_.count(); slot += 1 + experts_.count() / 997) {
      const int64_t row = rows[static_cast<size_t>(slot)];
      if (rows_.data()[slot] != row) return false;
      const T* token = tokens_.data() + slot / case_.topk * case_.hidden;
      if (std::memcmp(permuted_.data() + row * case_.hidden, token,
                      static_cast<size_t>(case_.hidden) * sizeof(T)) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  BenchCase case_;
  bench::DeviceTensor<T> tokens_;
  bench::DeviceTensor<int32_t> experts_;
  bench::DeviceTensor<T> permuted_;
  bench::DeviceTensor<int32_t> rows_;
  bench::Launcher launcher_;
};

// The sort alone, without a stream: 32768 slots on one thread.
template <class ID>
class IndexWork : public bench::Work {
 public:
  explicit IndexWork(const BenchCase& c)
      : experts_(draw_experts(c.tokens * c.topk, c.experts)),
        ids_(experts_.begin(), experts_.end()),
        rank_(ids_.size()) {
    Ledger ledger;
    plan_index(static_cast<int64_t>(ids_.size()), ledger, plan_);
    plan_.threads = 1;
    workspace_.resize(static_cast<size_t>(ledger.bytes()));
  }

  void run() override {
    const auto slots = static_cast<int64_t>(ids_.size());
    build_rank(plan_, {ids_.data(), slots, 1, 1, 1, kDType<ID>},
               {rank_.data(), slots, 1, DType::kInt32}, workspace_.data());
  }
  bool right() const override { return rank_ == positions_of(experts_); }
  uint64_t workspace_bytes() const override { return workspace_.size(); }

 private:
  std::vector<int32_t> experts_;
  std::vector<ID> ids_;
  std::vector<int32_t> rank_;
  IndexPlan plan_;
  std::vector<char> workspace_;
};

template <class ID>
void add_index(bench::Entries& entries, const char* type) {
  for (const BenchCase& c : {kBenchCases[0], kBenchCases[1]}) {
    entries.push_back({std::string("moe/index/") + type + "/" + std::to_string(c.tokens * c.topk) +
                           "/experts:" + std::to_string(c.experts) + "/threads:1",
                       bench::Roof::kNone, kDType<ID>, 0, 0, false, 1,
                       [c](aclrtStream) { return std::make_unique<IndexWork<ID>>(c); }});
  }
}

}  // namespace

void add_permute_entries(bench::Entries& entries) {
  add_operator<PermuteWork>(entries, "permute");
  add_index<int32_t>(entries, "int32");
  add_index<int64_t>(entries, "int64");
}

}  // namespace npuless::moe_token_permute
