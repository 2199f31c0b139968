// The permute, and its index by itself.
#include <cstring>

#include "aclnnop/aclnn_moe_token_permute.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/index.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
class PermuteBench {
 public:
  PermuteBench(const Case& c, aclrtStream stream)
      : case_(c),
        stream_(stream),
        tokens_({c.tokens, c.hidden}),
        indices_({c.tokens, c.topk}),
        permuted_({c.tokens * c.topk, c.hidden}),
        sorted_indices_({c.tokens * c.topk}) {
    fill(tokens_);
    const auto experts = draw_experts(indices_.count());
    std::copy(experts.begin(), experts.end(), indices_.data());
    must(aclnnMoeTokenPermuteGetWorkspaceSize(tokens_.handle(), indices_.handle(), 0, false,
                                              permuted_.handle(), sorted_indices_.handle(),
                                              &workspace_size_, &executor_));
    must(aclSetAclOpExecutorRepeatable(executor_));
    must(aclrtMalloc(&workspace_, workspace_size_, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  ~PermuteBench() {
    aclDestroyAclOpExecutor(executor_);
    aclrtFree(workspace_);
  }
  PermuteBench(const PermuteBench&) = delete;
  PermuteBench& operator=(const PermuteBench&) = delete;

  void run() const {
    must(aclnnMoeTokenPermute(workspace_, workspace_size_, executor_, stream_));
    must(aclrtSynchronizeStream(stream_));
  }

  double bytes() const {
    return static_cast<double>(tokens_.bytes() + permuted_.bytes() + indices_.bytes() +
                               2 * sorted_indices_.bytes());
  }

  bool right() const {
    const auto positions = positions_of({indices_.data(), indices_.data() + indices_.count()});
    for (int64_t slot = 0; slot < indices_.count(); slot += 1 + indices_.count() / 997) {
      const int64_t row = positions[static_cast<size_t>(slot)];
      if (sorted_indices_.data()[slot] != row) return false;
      const T* token = tokens_.data() + slot / case_.topk * case_.hidden;
      if (std::memcmp(permuted_.data() + row * case_.hidden, token,
                      static_cast<size_t>(case_.hidden) * sizeof(T)) != 0) {
        return false;
      }
    }
    return true;
  }

 private:
  Case case_;
  aclrtStream stream_;
  DeviceTensor<T> tokens_;
  DeviceTensor<int32_t> indices_;
  DeviceTensor<T> permuted_;
  DeviceTensor<int32_t> sorted_indices_;
  void* workspace_ = nullptr;
  uint64_t workspace_size_ = 0;
  aclOpExecutor* executor_ = nullptr;
};

// Without a stream: ids of 32768 slots on one thread.
template <class ID>
void build_one_rank(benchmark::State& state) {
  const auto experts = draw_experts(32768);
  std::vector<ID> ids(experts.begin(), experts.end());
  std::vector<int32_t> rank(ids.size());
  Ledger ledger;
  IndexPlan plan;
  const auto slots = static_cast<int64_t>(ids.size());
  plan_index(slots, ledger, plan);
  plan.threads = 1;
  std::vector<char> workspace(static_cast<size_t>(ledger.bytes()));
  const Matrix matrix{ids.data(), slots, 1, 1, 1, kDType<ID>};
  for (auto _ : state) {
    build_rank(plan, matrix, {rank.data(), slots, 1, DType::kInt32}, workspace.data());
  }
  if (rank != positions_of(experts)) state.SkipWithError("wrong result");
}

}  // namespace

void add_permute_benches(aclrtStream stream) {
  add_benches<PermuteBench>("permute", stream);
  benchmark::RegisterBenchmark("index/int32/slots:32768/threads:1", &build_one_rank<int32_t>)
      ->Unit(benchmark::kMicrosecond);
  benchmark::RegisterBenchmark("index/int64/slots:32768/threads:1", &build_one_rank<int64_t>)
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace npuless::moe_token_permute
