// What the loss operators are timed on; benchmarks/driver.cc runs it.
#include <string>

#include "linear_cross_entropy/bench_problem.h"
#include "work.h"
#ifdef NPULESS_HAVE_DNNL
#include "unfused_loss.h"
#endif

namespace npuless::linear_cross_entropy {
namespace {

enum class Kind { kMaxSum, kGradSaving, kGradSoftmax, kLossSoftmax, kStepSaving, kStepSoftmax };

bool uses_softmax(Kind kind) {
  return kind == Kind::kGradSoftmax || kind == Kind::kLossSoftmax || kind == Kind::kStepSoftmax;
}

#ifdef NPULESS_HAVE_DNNL

template <class T>
class LossBaseline : public bench::Baseline {
 public:
  LossBaseline(const BenchProblem<T>& problem, Kind kind)
      : problem_(problem),
        kind_(kind),
        unfused_({problem.c.tokens, problem.c.hidden, problem.c.vocab, kDType<T>,
                  problem.input.data(), problem.weight.data(), problem.target.data(),
                  problem.grad.data()}) {
    const auto tokens = static_cast<size_t>(problem.c.tokens);
    std::copy_n(problem.max.data(), tokens, unfused_.max.data());
    std::copy_n(problem.sum.data(), tokens, unfused_.sum.data());
  }

  void run() override {
    if (kind_ == Kind::kGradSoftmax) return unfused_.grad_from_softmax(problem_.softmax->data());
    unfused_.compute_logits();
    if (kind_ != Kind::kGradSaving) unfused_.reduce();
    if (kind_ != Kind::kMaxSum) unfused_.grad_from_logits();
  }

  int64_t output_bytes() const override {
    return (problem_.input_grad.bytes() + problem_.weight_grad.bytes());
  }

  bool agrees() const override {
    if (kind_ == Kind::kMaxSum) {
      const auto i = static_cast<size_t>(problem_.c.tokens / 2);
      return std::fabs(unfused_.sum[i] / problem_.sum.data()[i] - 1.0f) < 1e-3f;
    }
    return same_rows(unfused_.input_grad, problem_.input_grad) &&
           same_rows(unfused_.weight_grad, problem_.weight_grad);
  }

 private:
  // To 2 % of the largest of a thousand elements.
  static bool same_rows(const std::vector<uint16_t>& other, const bench::DeviceTensor<T>& own) {
    float worst = 0, largest = 0;
    const int64_t step = 1 + own.count() / 1009;
    for (int64_t i = 0; i < own.count(); i += step) {
      const float mine = widen(own.data()[i]);
      const float error = std::fabs(mine - widen(T{other[static_cast<size_t>(i)]}));
      if (!(error <= worst)) worst = error;
      largest = std::fmax(largest, std::fabs(mine));
    }
    return worst <= 0.02f * largest;
  }

  const BenchProblem<T>& problem_;
  Kind kind_;
  bench::UnfusedLoss unfused_;
};

#endif

template <class T>
class LossWork : public bench::Work {
 public:
  LossWork(const Case& c, Kind kind, aclrtStream stream)
      : problem_(c, uses_softmax(kind)),
        kind_(kind),
        max_sum_(&aclnnFusedLinearOnlineMaxSum, stream),
        loss_(&aclnnFusedCrossEntropyLossWithMaxSum, stream),
        grad_(&aclnnFusedLinearCrossEntropyLossGrad, stream) {
    problem_.plan_max_sum(max_sum_);
    problem_.plan_loss(loss_);
    problem_.plan_grad(grad_);
    // What the operator under test reads.
    if (kind_ != Kind::kMaxSum && !is_step()) max_sum_.run();
    if (kind_ == Kind::kGradSoftmax) loss_.run();
  }

  void run() override {
    if (kind_ == Kind::kMaxSum || is_step()) max_sum_.run();
    if (kind_ == Kind::kLossSoftmax || is_step()) loss_.run();
    if (has_grad()) grad_.run();
  }

  bool right() const override {
    return problem_.max_sum_right() && (kind_ != Kind::kLossSoftmax || problem_.loss_right()) &&
           (!has_grad() || problem_.grad_right());
  }

  uint64_t workspace_bytes() const override {
    if (kind_ == Kind::kMaxSum) return max_sum_.workspace_size;
    if (kind_ == Kind::kLossSoftmax) return loss_.workspace_size;
    return is_step() ? std::max(max_sum_.workspace_size, grad_.workspace_size)
                     : grad_.workspace_size;
  }

#ifdef NPULESS_HAVE_DNNL
  std::unique_ptr<bench::Baseline> make_baseline() override {
    // A compiler does not vectorise the widening of fp16.
    if (kind_ == Kind::kLossSoftmax || std::is_same_v<T, f16>) return nullptr;
    return std::make_unique<LossBaseline<T>>(problem_, kind_);
  }
#endif

 private:
  bool is_step() const {
    return kind_ == Kind::kStepSaving || kind_ == Kind::kStepSoftmax;
  }
  bool has_grad() const {
    return kind_ != Kind::kMaxSum && kind_ != Kind::kLossSoftmax;
  }

  BenchProblem<T> problem_;
  Kind kind_;
  bench::Launcher max_sum_, loss_, grad_;
};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kMaxSum:
      return "online_max_sum";
    case Kind::kGradSaving:
      return "grad/saving";
    case Kind::kGradSoftmax:
      return "grad/softmax";
    case Kind::kLossSoftmax:
      return "loss/softmax";
    case Kind::kStepSaving:
      return "step/saving";
    case Kind::kStepSoftmax:
      return "step/softmax";
  }
  return "";
}

// Products of N × H × V; the loss reads N × V logits and writes N × V floats.
double amount_of(Kind kind, const Case& c) {
  const double product = 2.0 * static_cast<double>(c.tokens) * static_cast<double>(c.hidden) *
                         static_cast<double>(c.vocab);
  switch (kind) {
    case Kind::kMaxSum:
      return product;
    case Kind::kGradSaving:
      return 3 * product;
    case Kind::kGradSoftmax:
      return 2 * product;
    case Kind::kLossSoftmax:
      return 6.0 * static_cast<double>(c.tokens) * static_cast<double>(c.vocab);
    case Kind::kStepSaving:  // recomputes the logits, which is no use to anyone: a fourth product
      return 3 * product;
    case Kind::kStepSoftmax:
      return 3 * product;
  }
  return 0;
}

// An estimate from above: operands, gradients, the matrices of the softmax mode, workspace, and
// the baseline's copies in fp32.
int64_t bytes_of(const Case& c) {
  const int64_t operands = (c.tokens + c.vocab) * c.hidden;
  return operands * (4 + 10) + c.tokens * c.vocab * (6 + 8) + c.tokens * c.hidden * 8 +
         (int64_t{256} << 20);
}

template <class T>
bench::Entry entry(Kind kind, const char* type, const Case& c, const std::string& suffix = "",
                   int threads = 0) {
  const double amount = amount_of(kind, c);
  bench::Entry result{
      std::string("loss/") + name_of(kind) + "/" + type + "/" + std::to_string(c.tokens) + "x" +
          std::to_string(c.hidden) + "x" + std::to_string(c.vocab) + suffix,
      kind == Kind::kLossSoftmax ? bench::Roof::kMemory : bench::Roof::kFlops,
      kDType<T>,
      amount,
      bytes_of(c),
      amount > 2e11,
      threads,
      [=](aclrtStream stream) { return std::make_unique<LossWork<T>>(c, kind, stream); }};
  // With few tokens the time goes into reading the weight, and small results stay in a cache.
  if (c.tokens <= 16) result.roof = bench::Roof::kNone;
  result.mix = {1, 2};  // of the loss with softmax: 16 bits read, 32 written
  return result;
}

}  // namespace

void add_entries(bench::Entries& entries) {
  constexpr Kind kAll[] = {Kind::kMaxSum,      Kind::kGradSaving, Kind::kGradSoftmax,
                           Kind::kLossSoftmax, Kind::kStepSaving, Kind::kStepSoftmax};
  for (const Case& c : kBenchCases) {
    for (const Kind kind : kAll) entries.push_back(entry<bf16>(kind, "bf16", c));
  }
  for (const Kind kind : kAll) entries.push_back(entry<f16>(kind, "fp16", kBenchCases[0]));
  for (const Kind kind : {Kind::kMaxSum, Kind::kGradSaving, Kind::kGradSoftmax}) {
    entries.push_back(entry<bf16>(kind, "bf16", kBenchCases[0], "/threads:1", 1));
  }
  for (const Case& c : kVocabSeries) {
    entries.push_back(entry<bf16>(Kind::kGradSaving, "bf16", c, "/by_vocab"));
  }
  for (const Case& c : kTokensSeries) {
    entries.push_back(entry<bf16>(Kind::kGradSaving, "bf16", c, "/by_tokens"));
  }
}

}  // namespace npuless::linear_cross_entropy
