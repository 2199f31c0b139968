// The loss operator (cases B5 and C1), and the three operators together: a vocabulary cut over
// shards with the global step between gives the uncut loss and gradients; a constant added to all
// logits changes no loss.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "base/parallel.h"
#include "isa/level.h"
#include "linear_cross_entropy/test_forward.h"
#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

// One call of aclnnFusedCrossEntropyLossWithMaxSum.
struct LossProblem {
  LossProblem(int64_t n, int64_t v, DType logits_type, bool spread, bool given)
      : tokens(n),
        vocab(v),
        has_logits(given),
        max(TestTensor::make(DType::kFloat32, {n}, spread)),
        sum(TestTensor::make(DType::kFloat32, {n}, spread)),
        predicted(TestTensor::make(DType::kFloat32, {n}, spread)),
        logits(TestTensor::make(logits_type, {n, v}, spread)),
        loss(TestTensor::make(DType::kFloat32, {n}, spread)),
        softmax(TestTensor::make(DType::kFloat32, {n, v}, spread)) {
    for (int64_t i = 0; i < n; ++i) {
      max.put(i, 0, 3.0 + static_cast<double>(i % 4));
      sum.put(i, 0, 1.0 + static_cast<double>(i * i));
      predicted.put(i, 0, -0.37 * static_cast<double>(i % 9));
      for (int64_t j = 0; j < v; ++j) {
        logits.put(i, j, max.get(i) - static_cast<double>((i * 31 + j * 17) % 97) / 8.0);
      }
    }
  }

  aclnnStatus phase1(uint64_t* bytes, aclOpExecutor** executor, float smoothing = 0.0f) {
    aclTensor* t[] = {max.create(),    sum.create(),  predicted.create(),
                      logits.create(), loss.create(), softmax.create()};
    const aclnnStatus status = aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
        t[0], t[1], t[2], smoothing, nullptr, nullptr, has_logits ? t[3] : nullptr, t[4], t[5],
        bytes, executor);
    for (aclTensor* tensor : t) aclDestroyTensor(tensor);
    return status;
  }

  void run() {
    loss.poison();
    softmax.poison();
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    ASSERT_EQ(phase1(&bytes, &executor), 0) << aclGetRecentErrMsg();
    run_to_the_end(&aclnnFusedCrossEntropyLossWithMaxSum, bytes, executor);
  }

  void expect_close() {
    for (int64_t i = 0; i < tokens; ++i) {
      const double log_sum = std::log(sum.get(i));
      const double want = log_sum - predicted.get(i);
      ASSERT_LE(std::fabs(loss.get(i) - want), 0x1p-24 * (std::fabs(log_sum) + std::fabs(want)));
      for (int64_t j = 0; has_logits && j < vocab; ++j) {
        const double shifted = logits.get(i, j) - max.get(i);
        const double p = std::exp(shifted) / sum.get(i);
        // exp 2^-22, the difference's rounding, the quotient's two.
        ASSERT_LE(std::fabs(softmax.get(i, j) - p),
                  p * (0x1p-22 + 0x1p-24 * std::fabs(shifted) + 0x1p-23) + 0x1p-149);
      }
    }
  }

  int64_t tokens, vocab;
  bool has_logits;
  TestTensor max, sum, predicted, logits, loss, softmax;
};

TEST(Loss, EveryTypeLevelAndStride) {
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    ASSERT_TRUE(isa::set_level(level).ok());
    for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
      for (const bool spread : {false, true}) {
        for (const Case& c : {Case{1, 0, 1}, Case{7, 0, 33}, Case{3, 0, 4097}, Case{40, 0, 250}}) {
          LossProblem p(c.tokens, c.vocab, type, spread, true);
          std::vector<unsigned char> first;
          for (const int threads : {1, 2, 3, 7}) {
            ASSERT_TRUE(set_num_threads(threads).ok());
            p.run();
            p.expect_close();
            if (first.empty()) first = p.softmax.bytes();
            ASSERT_EQ(p.softmax.bytes(), first);
          }
        }
      }
    }
  }
  ASSERT_TRUE(set_num_threads(2).ok());
}

// More than 16 MiB of softmax are written past the caches; more than 1024 losses are shared out.
TEST(Loss, LargeOutputs) {
  LossProblem wide(3, 1500001, DType::kBfloat16, false, true);
  LossProblem many(2500, 1, DType::kFloat32, true, false);
  for (const int threads : {1, 2, 7}) {
    ASSERT_TRUE(set_num_threads(threads).ok());
    wide.run();
    wide.expect_close();
    many.run();
    many.expect_close();
  }
  ASSERT_TRUE(set_num_threads(2).ok());
}

// Without logits the softmax tensor may be given and is not touched.
TEST(Loss, WithoutLogitsSoftmaxIsUntouched) {
  LossProblem p(5, 9, DType::kFloat32, false, false);
  p.run();
  p.expect_close();
  for (const unsigned char byte : p.softmax.bytes()) ASSERT_EQ(byte, 0xFF);
}

TEST(Loss, CallersRoundingModeDoesNotMatter) {
  LossProblem p(50, 1, DType::kFloat32, false, false);
  p.run();
  const std::vector<unsigned char> expected = p.loss.bytes();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  p.run();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_EQ(p.loss.bytes(), expected);
}

TEST(Loss, NoTokens) {
  LossProblem p(0, 9, DType::kFloat32, false, true);
  p.run();
}

TEST(Loss, SmoothingIsRefused) {
  LossProblem p(5, 9, DType::kFloat32, false, true);
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  EXPECT_EQ(p.phase1(&bytes, &executor, 0.1f), 161002);
  EXPECT_EQ(p.phase1(&bytes, &executor, std::nanf("")), 161002);
}

// B5: logits [10, 0, −100], target 2: the loss is 110.000045…, from max 10, sum 1 + e^-10.
TEST(Loss, FarTargets) {
  LossProblem p(1, 1, DType::kFloat32, false, false);
  p.max.put(0, 0, 10.0);
  p.sum.put(0, 0, 1.0 + std::exp(-10.0) + std::exp(-110.0));
  p.predicted.put(0, 0, -110.0);
  p.run();
  EXPECT_NEAR(p.loss.get(0), 110.0000454, 110 * 0x1p-24);
}

// C1: rows of logits and softmax 2^24 elements apart, so that offsets pass 2^31 elements.
TEST(Loss, OffsetsBeyond32Bits) {
  LossProblem p(150, 9, DType::kBfloat16, false, true);
  p.run();
  const testing::FarMatrix logits(DType::kBfloat16, p.logits);
  const testing::FarMatrix softmax(DType::kFloat32, 150, 9);
  aclTensor* t[] = {p.max.create(), p.sum.create(), p.predicted.create(), p.loss.create()};
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(aclnnFusedCrossEntropyLossWithMaxSumGetWorkspaceSize(
                t[0], t[1], t[2], 0.0f, nullptr, nullptr, logits.handle(), t[3], softmax.handle(),
                &bytes, &executor),
            0);
  run_to_the_end(&aclnnFusedCrossEntropyLossWithMaxSum, bytes, executor);
  for (aclTensor* tensor : t) aclDestroyTensor(tensor);
  EXPECT_EQ(softmax.elements(), p.softmax.bytes());
}

// --- the three operators over a cut vocabulary ---------------------------------------------------

struct Global {
  std::vector<double> max, sum, predicted;
};

// The caller's global step, as a pair of all-reduces would do it in fp32.
Global combine(std::vector<ForwardProblem>& shards) {
  Global g;
  for (int64_t n = 0; n < shards[0].shape.tokens; ++n) {
    float top = -std::numeric_limits<float>::infinity();
    for (ForwardProblem& s : shards) top = std::fmax(top, s.max.at<float>(n));
    float sum = 0;
    float predicted = 0;
    for (ForwardProblem& s : shards) {
      const float shift = s.max.at<float>(n) - top;
      sum += s.sum.at<float>(n) * std::exp(shift);
      if (!s.mask_bit(n)) predicted += s.predicted.at<float>(n) + shift;
    }
    g.max.push_back(static_cast<double>(top));
    g.sum.push_back(static_cast<double>(sum));
    g.predicted.push_back(static_cast<double>(predicted));
  }
  return g;
}

// Shard `rank` of `whole`, which owns ids [0, V).
ForwardProblem shard_of(ForwardProblem& whole, int64_t first, int64_t rows) {
  ForwardProblem shard({whole.shape.tokens, whole.shape.hidden, rows}, whole.options, first);
  for (int64_t n = 0; n < whole.shape.tokens; ++n) {
    shard.target.put(n, 0, whole.target.get(n));
    for (int64_t h = 0; h < whole.shape.hidden; ++h) shard.input.put(n, h, whole.input.get(n, h));
  }
  for (int64_t v = 0; v < rows; ++v) {
    for (int64_t h = 0; h < whole.shape.hidden; ++h) {
      shard.weight.put(v, h, whole.weight.get(first + v, h));
    }
  }
  return shard;
}

std::vector<double> losses(const Global& g) {
  const auto tokens = static_cast<int64_t>(g.max.size());
  LossProblem p(tokens, 1, DType::kFloat32, false, false);
  for (int64_t n = 0; n < tokens; ++n) {
    const auto i = static_cast<size_t>(n);
    p.max.put(n, 0, g.max[i]);
    p.sum.put(n, 0, g.sum[i]);
    p.predicted.put(n, 0, g.predicted[i]);
  }
  p.run();
  std::vector<double> all;
  for (int64_t n = 0; n < tokens; ++n) all.push_back(p.loss.get(n));
  return all;
}

// The gradient of one shard from the global numbers and the forward pass's mask and targets.
Problem gradient_of(ForwardProblem& f, const Global& g) {
  Problem p({f.shape.tokens, f.shape.hidden, f.shape.vocab}, {.dtype = f.options.dtype});
  for (int64_t n = 0; n < f.shape.tokens; ++n) {
    p.grad.put(n, 0, 1.0);
    p.max.put(n, 0, g.max[static_cast<size_t>(n)]);
    p.sum.put(n, 0, g.sum[static_cast<size_t>(n)]);
    p.set_masked(n, f.mask_bit(n));
    p.target.put(n, 0, f.masked_target.get(n));
    for (int64_t h = 0; h < f.shape.hidden; ++h) p.input.put(n, h, f.input.get(n, h));
  }
  for (int64_t v = 0; v < f.shape.vocab; ++v) {
    for (int64_t h = 0; h < f.shape.hidden; ++h) p.weight.put(v, h, f.weight.get(v, h));
  }
  p.run();
  return p;
}

class CutVocabulary : public ::testing::TestWithParam<int> {};

TEST_P(CutVocabulary, EqualsTheUncutOne) {
  constexpr int64_t kTokens = 23;
  constexpr int64_t kHidden = 29;
  constexpr int64_t kVocab = 1100;
  ForwardProblem whole({kTokens, kHidden, kVocab}, {}, 0);
  for (int64_t n = 0; n < kTokens; ++n)
    whole.target.put(n, 0, static_cast<double>(n * 47 % kVocab));
  std::vector<ForwardProblem> uncut;
  uncut.push_back(std::move(whole));
  uncut[0].run();
  const Global global = combine(uncut);
  const std::vector<double> uncut_loss = losses(global);
  Problem uncut_grad = gradient_of(uncut[0], global);

  const int64_t ranks = GetParam();
  std::vector<ForwardProblem> shards;
  for (int64_t r = 0; r < ranks; ++r) {
    const int64_t first = kVocab * r / ranks;
    shards.push_back(shard_of(uncut[0], first, kVocab * (r + 1) / ranks - first));
    shards.back().run();
  }
  const Global cut = combine(shards);
  const std::vector<double> cut_loss = losses(cut);
  for (size_t n = 0; n < kTokens; ++n) {
    EXPECT_EQ(cut.max[n], global.max[n]);
    EXPECT_NEAR(cut.sum[n], global.sum[n], global.sum[n] * 0x1p-20);
    EXPECT_NEAR(cut_loss[n], uncut_loss[n], 0x1p-20 * (1 + std::fabs(uncut_loss[n])));
  }
  std::vector<double> input_grad(kTokens * kHidden), magnitude(kTokens * kHidden);
  for (ForwardProblem& shard : shards) {
    Problem part = gradient_of(shard, cut);
    for (int64_t v = 0; v < part.shape.vocab; ++v) {
      for (int64_t h = 0; h < kHidden; ++h) {
        const double want = uncut_grad.weight_grad.get(shard.start + v, h);
        ASSERT_LE(std::fabs(part.weight_grad.get(v, h) - want), 0x1p-7 * std::fabs(want) + 0x1p-16);
      }
    }
    for (int64_t i = 0; i < kTokens * kHidden; ++i) {
      const double value = part.input_grad.get(i / kHidden, i % kHidden);
      input_grad[static_cast<size_t>(i)] += value;
      magnitude[static_cast<size_t>(i)] += std::fabs(value);
    }
  }
  for (int64_t i = 0; i < kTokens * kHidden; ++i) {
    const auto at = static_cast<size_t>(i);
    ASSERT_LE(std::fabs(input_grad[at] - uncut_grad.input_grad.get(i / kHidden, i % kHidden)),
              0x1p-7 * magnitude[at] + 0x1p-16);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, CutVocabulary, ::testing::Values(1, 2, 3, 7));

// Adding a constant to every logit changes no loss. The constant is one more hidden unit, X = 1 and
// W = 64; all numbers are small integers, so logits are exact either way.
TEST(CommonOffset, OfLogitsChangesNoLoss) {
  std::vector<ForwardProblem> plain, shifted;
  plain.emplace_back(Case{9, 6, 140}, ForwardOptions{}, 0);
  shifted.emplace_back(Case{9, 7, 140}, ForwardOptions{}, 0);
  for (int64_t n = 0; n < 9; ++n) {
    shifted[0].target.put(n, 0, plain[0].target.get(n));
    for (int64_t h = 0; h < 6; ++h) {
      const auto x = static_cast<double>((n + 2 * h) % 5 - 2);
      shifted[0].input.put(n, h, plain[0].input.put(n, h, x));
    }
    shifted[0].input.put(n, 6, 1.0);
  }
  for (int64_t v = 0; v < 140; ++v) {
    for (int64_t h = 0; h < 6; ++h) {
      const auto w = static_cast<double>((v * 3 + h) % 3 - 1);
      shifted[0].weight.put(v, h, plain[0].weight.put(v, h, w));
    }
    shifted[0].weight.put(v, 6, 64.0);
  }
  plain[0].run();
  shifted[0].run();
  for (int64_t n = 0; n < 9; ++n) {
    EXPECT_EQ(shifted[0].max.get(n), plain[0].max.get(n) + 64.0);
    EXPECT_EQ(shifted[0].predicted.get(n), plain[0].predicted.get(n));
  }
  EXPECT_EQ(losses(combine(shifted)), losses(combine(plain)));
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
