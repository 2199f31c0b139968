#include "aclnnop/aclnn_moe_token_permute_with_ep_grad.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/ref.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
class PermuteGradBaseline : public bench::Baseline {
 public:
  PermuteGradBaseline(const BenchCase& c, const bench::DeviceTensor<T>& grad,
                      const bench::DeviceTensor<int32_t>& rows,
                      const bench::DeviceTensor<T>& token_grad)
      : case_(c),
        grad_(grad),
        rows_(rows),
        own_(token_grad),
        gathered_(static_cast<size_t>(grad.count())),
        token_grad_(static_cast<size_t>(token_grad.count())) {}

  void run() override {
    bench::two_pass_unpermute<T>(shape_of(case_), grad_.data(), rows_.data(), nullptr,
                                 gathered_.data(), token_grad_.data());
  }
  bool agrees() const override { return close(own_, token_grad_, kTolerance<T>); }
  int64_t output_bytes() const override { return own_.bytes(); }

 private:
  BenchCase case_;
  const bench::DeviceTensor<T>& grad_;
  const bench::DeviceTensor<int32_t>& rows_;
  const bench::DeviceTensor<T>& own_;
  std::vector<T> gathered_, token_grad_;
};

// With probabilities and the whole range.
template <class T>
class PermuteGradWork : public bench::Work {
 public:
  PermuteGradWork(const BenchCase& c, aclrtStream stream)
      : case_(c),
        grad_({c.tokens * c.topk, c.hidden}),
        rows_({c.tokens * c.topk}),
        probs_grad_({c.tokens * c.topk}),
        token_grad_({c.tokens, c.hidden}),
        probs_out_({c.tokens, c.topk}),
        launcher_(&aclnnMoeTokenPermuteWithEpGrad, stream) {
    fill(grad_);
    fill(probs_grad_);
    poison(token_grad_);
    const auto rows = positions_of(draw_experts(rows_.count(), c.experts));
    std::copy(rows.begin(), rows.end(), rows_.data());
    const int64_t ends[] = {0, c.tokens * c.topk};
    const aclIntArray* range = aclCreateIntArray(ends, 2);
    bench::must(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        grad_.handle(), rows_.handle(), probs_grad_.handle(), c.topk, range, false,
        token_grad_.handle(), probs_out_.handle(), &launcher_.workspace_size, &launcher_.executor));
    aclDestroyIntArray(range);
    launcher_.prepare();
  }

  static bench::Mix mix(const BenchCase& c) { return {static_cast<int>(c.topk), 1}; }
  static int64_t amount(const BenchCase& c) {
    const int64_t slots = c.tokens * c.topk;
    const auto element = static_cast<int64_t>(sizeof(T));
    return (c.tokens + slots) * c.hidden * element + 2 * slots * element + slots * 4;
  }

  void run() override { launcher_.run(); }
  uint64_t workspace_bytes() const override { return launcher_.workspace_size; }
  std::unique_ptr<bench::Baseline> make_baseline() override {
    // A compiler does not vectorise conversions of fp16.
    if constexpr (std::is_same_v<T, f16>) return nullptr;
    return std::make_unique<PermuteGradBaseline<T>>(case_, grad_, rows_, token_grad_);
  }

  // About a hundred tokens bit for bit.
  bool right() const override {
    const int64_t step = std::max<int64_t>(1, case_.tokens / 97);
    for (int64_t token = 0; token < case_.tokens; token += step) {
      if (!token_right(token)) return false;
    }
    return true;
  }

 private:
  bool token_right(int64_t token) const {
    const RefShape shape{1, case_.topk, case_.hidden, 0, case_.topk};
    std::vector<T> rows;
    std::vector<int32_t> slots;
    for (int64_t j = 0; j < case_.topk; ++j) {
      const T* row = grad_.data() + rows_.data()[token * case_.topk + j] * case_.hidden;
      rows.insert(rows.end(), row, row + case_.hidden);
      slots.push_back(static_cast<int32_t>(j));
    }
    const auto expected = model_token_grad(shape, rows, slots);
    return std::memcmp(expected.data(), token_grad_.data() + token * case_.hidden,
                       expected.size() * sizeof(T)) == 0;
  }

  BenchCase case_;
  bench::DeviceTensor<T> grad_;
  bench::DeviceTensor<int32_t> rows_;
  bench::DeviceTensor<T> probs_grad_;
  bench::DeviceTensor<T> token_grad_;
  bench::DeviceTensor<T> probs_out_;
  bench::Launcher launcher_;
};

}  // namespace

void add_permute_grad_entries(bench::Entries& entries) {
  add_operator<PermuteGradWork>(entries, "permute_grad");
}

}  // namespace npuless::moe_token_permute
