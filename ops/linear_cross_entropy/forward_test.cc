// The forward pass against the double-precision reference: cases × ISA levels × types × threads
// (F2, F11); its laws; inputs that other implementations got wrong (A13, A17, A18, B4, B7, C1, D6,
// D7).
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/parallel.h"
#include "isa/level.h"
#include "linear_cross_entropy/test_forward.h"

namespace npuless::linear_cross_entropy {
namespace {

using Threads = std::vector<int>;
const Threads kThreads = {1, 2, 3, 7};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class MaxSum : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const isa::Level level : isa::kAllLevels) {
      if (!isa::available(level)) continue;
      ASSERT_TRUE(isa::set_level(level).ok());
    }
    ASSERT_TRUE(set_num_threads(2).ok());
  }
};

std::vector<std::vector<unsigned char>> bytes_of(ForwardProblem& p) {
  std::vector<std::vector<unsigned char>> all;
  for (TestTensor* out : p.outputs()) all.push_back(out->bytes());
  return all;
}

void check(const Case& c, const ForwardOptions& o, const Threads& counts = kThreads) {
  SCOPED_TRACE(std::to_string(c.tokens) + "x" + std::to_string(c.hidden) + "x" +
               std::to_string(c.vocab) + " " + dtype_name(o.dtype));
  ForwardProblem p(c, o);
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    SCOPED_TRACE(isa::level_name(level));
    ASSERT_TRUE(isa::set_level(level).ok());
    std::vector<std::vector<unsigned char>> first;
    for (const int threads : counts) {
      ASSERT_TRUE(set_num_threads(threads).ok());
      ASSERT_NO_FATAL_FAILURE(p.run());
      if (first.empty()) {
        ASSERT_NO_FATAL_FAILURE(p.expect_close());
        first = bytes_of(p);
      }
      ASSERT_EQ(bytes_of(p), first) << threads << " threads";
    }
  }
}

constexpr Case kTiny[] = {{1, 1, 1}, {3, 2, 7}, {9, 0, 5}, {7, 5, 2}};

// More threads than pieces, for few tokens and past two blocks of them.
TEST_F(MaxSum, ManyThreads) {
  for (const Case& c : {Case{3, 17, 4001}, Case{257, 5, 4001}}) check(c, {}, {1, 100});
}

TEST_F(MaxSum, Bfloat16) {
  for (const Case& c : kCases) check(c, {});
  for (const Case& c : kTiny) check(c, {});
}

TEST_F(MaxSum, Float16WithLogits) {
  const ForwardOptions o{.dtype = DType::kFloat16, .wide_index = true, .with_logits = true};
  for (const Case& c : kCases) check(c, o);
  for (const Case& c : kTiny) check(c, o);
}

TEST_F(MaxSum, StridesAndOffsetsEverywhere) {
  for (const Case& c : {Case{33, 31, 251}, Case{129, 65, 481}, Case{3, 17, 4001}}) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
      for (const bool flag : {false, true}) {
        check(c, {.dtype = dtype, .wide_index = flag, .spread = true, .with_logits = flag});
      }
    }
  }
}

// A18: asking for the logits changes no other output by a bit. Data differ with the shape.
TEST_F(MaxSum, LogitsOnOrOffChangesNothing) {
  std::vector<Case> cases = {{13, 9, 700}, {1, 3, 130}, {130, 33, 2000}};
  for (int64_t tokens = 1; tokens <= 100; ++tokens) cases.push_back({tokens, 9, 130 + tokens * 7});
  for (const Case& c : cases) {
    ForwardProblem off(c, {});
    ForwardProblem on(c, {.with_logits = true});
    off.run();
    on.run();
    for (size_t i = 0; i < 5; ++i) {
      ASSERT_EQ(off.outputs()[i]->bytes(), on.outputs()[i]->bytes()) << i;
    }
  }
}

// A13: padding must not count. Every logit is −50, so max is −50 and sum is V exactly.
TEST_F(MaxSum, PaddingDoesNotCount) {
  for (const int64_t vocab : {1, 2, 31, 33, 127, 129, 479, 481, 1000, 1921}) {
    ForwardProblem p({4, 1, vocab}, {});
    for (int64_t n = 0; n < 4; ++n) p.input.put(n, 0, 1.0);
    for (int64_t v = 0; v < vocab; ++v) p.weight.put(v, 0, -50.0);
    p.run();
    for (int64_t n = 0; n < 4; ++n) {
      EXPECT_EQ(p.max.get(n), -50.0);
      EXPECT_EQ(p.sum.get(n), static_cast<double>(vocab));
    }
  }
}

// A17 and D6: the range's end is exclusive, ids compare as 64-bit integers.
TEST_F(MaxSum, OwnershipAtTheEdges) {
  const int64_t start = (int64_t{1} << 40) + 3;
  const int64_t ids[] = {start - 1,
                         start,
                         start + 127,
                         start + 128,
                         3,
                         start - (int64_t{1} << 32),
                         std::numeric_limits<int64_t>::min(),
                         std::numeric_limits<int64_t>::max(),
                         -1};
  ForwardProblem p({9, 4, 128}, {.wide_index = true}, start);
  for (int64_t n = 0; n < 9; ++n) p.target.at<int64_t>(n) = ids[n];
  p.run();
  for (int64_t n = 0; n < 9; ++n) EXPECT_EQ(p.mask_bit(n), n != 1 && n != 2) << n;
  EXPECT_EQ(p.masked_target.at<int64_t>(1), 0);
  EXPECT_EQ(p.masked_target.at<int64_t>(2), 127);
  EXPECT_EQ(p.mask.at<uint8_t>(1), 0xFF);
}

// D7: a weight with more rows than the range: all rows enter max and sum.
TEST_F(MaxSum, RowsBeyondTheRangeCount) {
  ForwardProblem p({6, 4, 50}, {});
  p.end = p.start + 2;
  p.run();
  p.expect_close();
}

// D7: a range longer than the weight, which the page allows and nothing reads beyond: an owned id
// without a row is infinitely improbable.
TEST_F(MaxSum, OwnedTargetsWithoutARow) {
  ForwardProblem p({3, 4, 50}, {.wide_index = true}, 0);
  p.end = std::numeric_limits<int64_t>::max();
  p.target.at<int64_t>(0) = 49;
  p.target.at<int64_t>(1) = 50;
  p.target.at<int64_t>(2) = int64_t{1} << 62;
  p.run();
  EXPECT_TRUE(std::isfinite(p.predicted.get(0)));
  EXPECT_EQ(p.predicted.get(1), static_cast<double>(-kInfinity));
  EXPECT_EQ(p.predicted.get(2), static_cast<double>(-kInfinity));
  EXPECT_EQ(p.masked_target.at<int64_t>(2), int64_t{1} << 62);
}

// B4, B7 and infinities: a token's trouble stays its own.
TEST_F(MaxSum, NonFiniteAndLargeLogits) {
  ForwardProblem p({12, 3, 600}, {});
  p.run();
  const auto clean = bytes_of(p);
  std::vector<double> sums;
  for (int64_t n = 0; n < 12; ++n) sums.push_back(p.sum.get(n));
  p.input.put(5, 1, std::numeric_limits<double>::quiet_NaN());
  p.run();
  for (int64_t n = 0; n < 12; ++n) {
    if (n == 5) continue;
    EXPECT_EQ(p.sum.get(n), sums[static_cast<size_t>(n)]);
  }
  EXPECT_TRUE(std::isnan(p.max.get(5)));
  EXPECT_TRUE(std::isnan(p.sum.get(5)));
  for (int64_t h = 0; h < 3; ++h) p.input.put(5, h, 1000.0);
  p.run();
  p.expect_close();
}

TEST_F(MaxSum, MinusInfinityEverywhereSumsToZero) {
  ForwardProblem p({2, 1, 1000}, {});
  for (int64_t n = 0; n < 2; ++n) p.input.put(n, 0, 1.0);
  for (int64_t v = 0; v < 1000; ++v) p.weight.put(v, 0, static_cast<double>(-kInfinity));
  p.run();
  EXPECT_EQ(p.max.get(0), static_cast<double>(-kInfinity));
  EXPECT_EQ(p.sum.get(0), 0.0);
  p.weight.put(700, 0, 3.0);
  p.run();
  EXPECT_EQ(p.max.get(0), 3.0);
  EXPECT_EQ(p.sum.get(0), 1.0);
}

// Runs `count` of the tokens of `all` alone: the same bits.
void expect_same_alone(ForwardProblem& all, int64_t first, int64_t count) {
  const Case& c = all.shape;
  ForwardProblem part({count, c.hidden, c.vocab}, {});
  for (int64_t v = 0; v < c.vocab; ++v) {
    for (int64_t h = 0; h < c.hidden; ++h) part.weight.put(v, h, all.weight.get(v, h));
  }
  for (int64_t n = 0; n < count; ++n) {
    for (int64_t h = 0; h < c.hidden; ++h) part.input.put(n, h, all.input.get(first + n, h));
    part.target.put(n, 0, all.target.get(first + n));
  }
  part.run();
  for (int64_t n = 0; n < count; ++n) {
    ASSERT_EQ(part.max.get(n), all.max.get(first + n));
    ASSERT_EQ(part.sum.get(n), all.sum.get(first + n));
    ASSERT_EQ(part.predicted.get(n), all.predicted.get(first + n));
  }
}

// Every output of a token is the same bits in any batch and at any position; as in GradLaws, hidden
// passes every block of k.
TEST_F(MaxSum, TokensDoNotDependOnTheBatch) {
  ForwardProblem all({150, 490, 2100}, {});
  all.run();
  expect_same_alone(all, 0, 1);
  expect_same_alone(all, 77, 70);
  expect_same_alone(all, 149, 1);
}

// C1: more than 2^31 logits.
TEST_F(MaxSum, MoreLogitsThan32BitsCount) {
  ForwardProblem all({70000, 8, 32768}, {});
  all.run();
  expect_same_alone(all, 69997, 3);
}

// C1: rows 2^24 elements apart in every matrix, so that offsets pass 2^31 elements.
TEST_F(MaxSum, OffsetsBeyond32Bits) {
  ForwardProblem p({150, 3, 150}, {.with_logits = true});
  p.run();
  const auto near = bytes_of(p);
  const testing::FarMatrix input(DType::kBfloat16, p.input);
  const testing::FarMatrix weight(DType::kBfloat16, p.weight);
  const testing::FarMatrix logits(DType::kBfloat16, 150, 150);
  ForwardProblem::Handles handles(p);
  handles.given[0] = input.handle();
  handles.given[1] = weight.handle();
  handles.given[8] = logits.handle();
  for (TestTensor* out : p.outputs()) out->poison();
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(handles.phase1(&bytes, &executor), 0) << aclGetRecentErrMsg();
  run_to_the_end(&aclnnFusedLinearOnlineMaxSum, bytes, executor);
  EXPECT_EQ(logits.elements(), near[5]);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(p.outputs()[i]->bytes(), near[i]) << i;
}

TEST_F(MaxSum, NoTokensIsNoWork) {
  ForwardProblem p({0, 5, 128}, {});
  p.run();
  EXPECT_EQ(p.workspace_bytes, 0u);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
