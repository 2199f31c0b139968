// The unpermute and its gradients, both with probabilities.
#include <cstring>

#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/ref_unpermute.h"

namespace npuless::moe_token_permute {
namespace {

// What both directions need; executors are the derived benches'.
template <class T>
class UnpermuteData {
 public:
  explicit UnpermuteData(const Case& c)
      : case_(c),
        permuted_({c.tokens * c.topk, c.hidden}),
        indices_({c.tokens * c.topk}),
        probs_({c.tokens, c.topk}),
        tokens_({c.tokens, c.hidden}) {
    fill(permuted_);
    fill(probs_);
    const auto positions = positions_of(draw_experts(indices_.count()));
    std::copy(positions.begin(), positions.end(), indices_.data());
  }

 protected:
  // A token alone, whose rows are numbered by slot.
  RefShape one_token() const { return {1, case_.topk, case_.hidden, 0, case_.topk}; }
  std::vector<int32_t> own_rows() const {
    std::vector<int32_t> rows;
    for (int64_t j = 0; j < case_.topk; ++j) rows.push_back(static_cast<int32_t>(j));
    return rows;
  }
  const T* row_of(const DeviceTensor<T>& rows, int64_t token, int64_t j) const {
    return rows.data() + indices_.data()[token * case_.topk + j] * case_.hidden;
  }
  std::vector<T> rows_of(int64_t token) const {
    std::vector<T> rows;
    for (int64_t j = 0; j < case_.topk; ++j) {
      const T* row = row_of(permuted_, token, j);
      rows.insert(rows.end(), row, row + case_.hidden);
    }
    return rows;
  }
  std::vector<float> probs_of(int64_t token) const {
    const float* probs = probs_.data() + token * case_.topk;
    return {probs, probs + case_.topk};
  }
  std::vector<T> token(int64_t token) const {
    const T* row = tokens_.data() + token * case_.hidden;
    return {row, row + case_.hidden};
  }
  int64_t sample_step() const { return std::max<int64_t>(1, case_.tokens / 97); }
  int64_t shared_bytes() const {
    return permuted_.bytes() + indices_.bytes() + probs_.bytes() + tokens_.bytes();
  }

  Case case_;
  DeviceTensor<T> permuted_;
  DeviceTensor<int32_t> indices_;
  DeviceTensor<float> probs_;
  DeviceTensor<T> tokens_;  // the output, or its gradient
};

// A repeatable executor with its workspace.
class Launcher {
 public:
  using Phase2 = aclnnStatus (*)(void*, uint64_t, aclOpExecutor*, aclrtStream);

  Launcher(Phase2 phase2, aclrtStream stream) : phase2_(phase2), stream_(stream) {}
  ~Launcher() {
    aclDestroyAclOpExecutor(executor);
    aclrtFree(workspace_);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  void prepare() {
    must(aclSetAclOpExecutorRepeatable(executor));
    must(aclrtMalloc(&workspace_, workspace_size, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  void run() const {
    must(phase2_(workspace_, workspace_size, executor, stream_));
    must(aclrtSynchronizeStream(stream_));
  }

  uint64_t workspace_size = 0;
  aclOpExecutor* executor = nullptr;

 private:
  Phase2 phase2_;
  aclrtStream stream_;
  void* workspace_ = nullptr;
};

template <class T>
class UnpermuteBench : UnpermuteData<T> {
 public:
  UnpermuteBench(const Case& c, aclrtStream stream)
      : UnpermuteData<T>(c), launcher_(&aclnnMoeTokenUnpermute, stream) {
    must(aclnnMoeTokenUnpermuteGetWorkspaceSize(
        this->permuted_.handle(), this->indices_.handle(), this->probs_.handle(), false, nullptr,
        this->tokens_.handle(), &launcher_.workspace_size, &launcher_.executor));
    launcher_.prepare();
  }

  void run() const { launcher_.run(); }
  double bytes() const { return static_cast<double>(this->shared_bytes()); }
  bool right() const {
    for (int64_t t = 0; t < this->case_.tokens; t += this->sample_step()) {
      const auto expected =
          model_unpermute(this->one_token(), this->rows_of(t), this->probs_of(t), this->own_rows());
      const auto got = this->token(t);
      if (std::memcmp(expected.data(), got.data(), got.size() * sizeof(T)) != 0) return false;
    }
    return true;
  }

 private:
  Launcher launcher_;
};

template <class T>
class UnpermuteGradBench : UnpermuteData<T> {
 public:
  UnpermuteGradBench(const Case& c, aclrtStream stream)
      : UnpermuteData<T>(c),
        permuted_grad_({c.tokens * c.topk, c.hidden}),
        probs_grad_({c.tokens, c.topk}),
        launcher_(&aclnnMoeTokenUnpermuteGrad, stream) {
    fill(this->tokens_);
    must(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
        this->permuted_.handle(), this->tokens_.handle(), this->indices_.handle(),
        this->probs_.handle(), false, nullptr, permuted_grad_.handle(), probs_grad_.handle(),
        &launcher_.workspace_size, &launcher_.executor));
    launcher_.prepare();
  }

  void run() const { launcher_.run(); }
  double bytes() const {
    return static_cast<double>(this->shared_bytes() + permuted_grad_.bytes() + probs_grad_.bytes());
  }
  bool right() const {
    for (int64_t t = 0; t < this->case_.tokens; t += this->sample_step()) {
      if (!right(t)) return false;
    }
    return true;
  }

 private:
  bool right(int64_t t) const {
    const Case& c = this->case_;
    const auto rows = model_permuted_grad(this->one_token(), c.topk, this->token(t),
                                          this->probs_of(t), this->own_rows());
    const auto dots = model_unpermute_probs_grad<T, float>(this->one_token(), this->rows_of(t),
                                                           this->token(t), this->own_rows());
    for (int64_t j = 0; j < c.topk; ++j) {
      const auto bytes = static_cast<size_t>(c.hidden) * sizeof(T);
      if (std::memcmp(rows.data() + j * c.hidden, this->row_of(permuted_grad_, t, j), bytes) != 0) {
        return false;
      }
      if (probs_grad_.data()[t * c.topk + j] != dots[static_cast<size_t>(j)]) return false;
    }
    return true;
  }

  DeviceTensor<T> permuted_grad_;
  DeviceTensor<float> probs_grad_;
  Launcher launcher_;
};

}  // namespace

void add_unpermute_benches(aclrtStream stream) {
  add_benches<UnpermuteBench>("unpermute", stream);
  add_benches<UnpermuteGradBench>("unpermute_grad", stream);
}

}  // namespace npuless::moe_token_permute
