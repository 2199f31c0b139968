// The unpermute and its gradients, both with probabilities.
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "aclnnop/aclnn_moe_token_unpermute_grad.h"
#include "moe_token_permute/bench_problem.h"
#include "moe_token_permute/ref_unpermute.h"

namespace npuless::moe_token_permute {
namespace {

// What both directions need.
template <class T>
struct UnpermuteData {
  explicit UnpermuteData(const BenchCase& bench_case)
      : c(bench_case),
        permuted({c.tokens * c.topk, c.hidden}),
        rows({c.tokens * c.topk}),
        probs({c.tokens, c.topk}),
        tokens({c.tokens, c.hidden}) {
    fill(permuted);
    fill(probs);
    const auto positions = positions_of(draw_experts(rows.count(), c.experts));
    std::copy(positions.begin(), positions.end(), rows.data());
  }

  static int64_t amount(const BenchCase& c) {
    const int64_t slots = c.tokens * c.topk;
    return (c.tokens + slots) * c.hidden * static_cast<int64_t>(sizeof(T)) + slots * 8;
  }

  // A token alone, whose rows are numbered by slot.
  RefShape one_token() const { return {1, c.topk, c.hidden, 0, c.topk}; }
  std::vector<int32_t> own_rows() const {
    std::vector<int32_t> numbers;
    for (int64_t j = 0; j < c.topk; ++j) numbers.push_back(static_cast<int32_t>(j));
    return numbers;
  }
  const T* row_of(const bench::DeviceTensor<T>& from, int64_t token, int64_t j) const {
    return from.data() + rows.data()[token * c.topk + j] * c.hidden;
  }
  std::vector<T> rows_of(int64_t token) const {
    std::vector<T> values;
    for (int64_t j = 0; j < c.topk; ++j) {
      const T* row = row_of(permuted, token, j);
      values.insert(values.end(), row, row + c.hidden);
    }
    return values;
  }
  std::vector<float> probs_of(int64_t token) const {
    const float* own = probs.data() + token * c.topk;
    return {own, own + c.topk};
  }
  std::vector<T> token(int64_t token) const {
    const T* row = tokens.data() + token * c.hidden;
    return {row, row + c.hidden};
  }
  // About a hundred tokens.
  template <class Check>
  bool sampled(Check check) const {
    const int64_t step = std::max<int64_t>(1, c.tokens / 97);
    for (int64_t t = 0; t < c.tokens; t += step) {
      if (!check(t)) return false;
    }
    return true;
  }

  BenchCase c;
  bench::DeviceTensor<T> permuted;
  bench::DeviceTensor<int32_t> rows;
  bench::DeviceTensor<float> probs;
  bench::DeviceTensor<T> tokens;  // the output, or its gradient
};

template <class T>
class UnpermuteBaseline : public bench::Baseline {
 public:
  explicit UnpermuteBaseline(const UnpermuteData<T>& data)
      : data_(data),
        gathered_(static_cast<size_t>(data.permuted.count())),
        tokens_(static_cast<size_t>(data.tokens.count())) {}
  void run() override {
    bench::two_pass_unpermute(shape_of(data_.c), data_.permuted.data(), data_.rows.data(),
                              data_.probs.data(), gathered_.data(), tokens_.data());
  }
  bool agrees() const override { return close(data_.tokens, tokens_, kTolerance<T>); }
  int64_t output_bytes() const override { return data_.tokens.bytes(); }

 private:
  const UnpermuteData<T>& data_;
  std::vector<T> gathered_, tokens_;
};

template <class T>
class UnpermuteWork : public bench::Work {
 public:
  UnpermuteWork(const BenchCase& c, aclrtStream stream)
      : data_(c), launcher_(&aclnnMoeTokenUnpermute, stream) {
    poison(data_.tokens);
    bench::must(aclnnMoeTokenUnpermuteGetWorkspaceSize(
        data_.permuted.handle(), data_.rows.handle(), data_.probs.handle(), false, nullptr,
        data_.tokens.handle(), &launcher_.workspace_size, &launcher_.executor));
    launcher_.prepare();
  }

  static bench::Mix mix(const BenchCase& c) { return {static_cast<int>(c.topk), 1}; }
  static int64_t amount(const BenchCase& c) { return UnpermuteData<T>::amount(c); }
  void run() override { launcher_.run(); }
  uint64_t workspace_bytes() const override { return launcher_.workspace_size; }
  std::unique_ptr<bench::Baseline> make_baseline() override {
    // A compiler does not vectorise conversions of fp16.
    if constexpr (std::is_same_v<T, f16>) return nullptr;
    return std::make_unique<UnpermuteBaseline<T>>(data_);
  }

  bool right() const override {
    return data_.sampled([&](int64_t t) {
      const auto expected =
          model_unpermute(data_.one_token(), data_.rows_of(t), data_.probs_of(t), data_.own_rows());
      const auto got = data_.token(t);
      return std::memcmp(expected.data(), got.data(), got.size() * sizeof(T)) == 0;
    });
  }

 private:
  UnpermuteData<T> data_;
  bench::Launcher launcher_;
};

template <class T>
class UnpermuteGradBaseline : public bench::Baseline {
 public:
  UnpermuteGradBaseline(const UnpermuteData<T>& data, const bench::DeviceTensor<T>& permuted_grad)
      : data_(data),
        own_(permuted_grad),
        permuted_grad_(static_cast<size_t>(permuted_grad.count())),
        probs_grad_(static_cast<size_t>(data.probs.count())) {}
  void run() override {
    bench::two_pass_unpermute_grad(shape_of(data_.c), data_.permuted.data(), data_.tokens.data(),
                                   data_.rows.data(), data_.probs.data(), permuted_grad_.data(),
                                   probs_grad_.data());
  }
  bool agrees() const override { return close(own_, permuted_grad_, kTolerance<T>); }
  int64_t output_bytes() const override { return own_.bytes() + data_.probs.bytes(); }

 private:
  const UnpermuteData<T>& data_;
  const bench::DeviceTensor<T>& own_;
  std::vector<T> permuted_grad_;
  std::vector<float> probs_grad_;
};

template <class T>
class UnpermuteGradWork : public bench::Work {
 public:
  UnpermuteGradWork(const BenchCase& c, aclrtStream stream)
      : data_(c),
        permuted_grad_({c.tokens * c.topk, c.hidden}),
        probs_grad_({c.tokens, c.topk}),
        launcher_(&aclnnMoeTokenUnpermuteGrad, stream) {
    fill(data_.tokens);
    poison(permuted_grad_);
    bench::must(aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
        data_.permuted.handle(), data_.tokens.handle(), data_.rows.handle(), data_.probs.handle(),
        false, nullptr, permuted_grad_.handle(), probs_grad_.handle(), &launcher_.workspace_size,
        &launcher_.executor));
    launcher_.prepare();
  }

  static bench::Mix mix(const BenchCase& c) {
    return {static_cast<int>(c.topk) + 1, static_cast<int>(c.topk)};
  }
  static int64_t amount(const BenchCase& c) {
    const int64_t slots = c.tokens * c.topk;
    return UnpermuteData<T>::amount(c) + slots * c.hidden * static_cast<int64_t>(sizeof(T)) +
           slots * 4;
  }
  void run() override { launcher_.run(); }
  uint64_t workspace_bytes() const override { return launcher_.workspace_size; }
  std::unique_ptr<bench::Baseline> make_baseline() override {
    // A compiler does not vectorise conversions of fp16.
    if constexpr (std::is_same_v<T, f16>) return nullptr;
    return std::make_unique<UnpermuteGradBaseline<T>>(data_, permuted_grad_);
  }
  bool right() const override {
    return data_.sampled([&](int64_t t) { return token_right(t); });
  }

 private:
  bool token_right(int64_t t) const {
    const int64_t topk = data_.c.topk, hidden = data_.c.hidden;
    const auto rows = model_permuted_grad(data_.one_token(), topk, data_.token(t),
                                          data_.probs_of(t), data_.own_rows());
    const auto dots = model_unpermute_probs_grad<T, float>(data_.one_token(), data_.rows_of(t),
                                                           data_.token(t), data_.own_rows());
    for (int64_t j = 0; j < topk; ++j) {
      const auto bytes = static_cast<size_t>(hidden) * sizeof(T);
      const T* got = data_.row_of(permuted_grad_, t, j);
      if (std::memcmp(rows.data() + j * hidden, got, bytes) != 0) return false;
      if (probs_grad_.data()[t * topk + j] != dots[static_cast<size_t>(j)]) return false;
    }
    return true;
  }

  UnpermuteData<T> data_;
  bench::DeviceTensor<T> permuted_grad_;
  bench::DeviceTensor<float> probs_grad_;
  bench::Launcher launcher_;
};

}  // namespace

void add_unpermute_entries(bench::Entries& entries) {
  add_operator<UnpermuteWork>(entries, "unpermute");
  add_operator<UnpermuteGradWork>(entries, "unpermute_grad");
}

}  // namespace npuless::moe_token_permute
