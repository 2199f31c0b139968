// The forward pass against the double-precision reference: cases × ISA levels × types × threads;
// its laws; inputs that other implementations got wrong (A13, A17, A18, B4, B7, D6).
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/parallel.h"
#include "isa/level.h"
#include "linear_cross_entropy/test_forward.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr int kThreads[] = {1, 2, 3, 7};
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

void check(const Case& c, const ForwardOptions& o) {
  SCOPED_TRACE(std::to_string(c.tokens) + "x" + std::to_string(c.hidden) + "x" +
               std::to_string(c.vocab) + " " + dtype_name(o.dtype));
  ForwardProblem p(c, o);
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    SCOPED_TRACE(isa::level_name(level));
    ASSERT_TRUE(isa::set_level(level).ok());
    std::vector<std::vector<unsigned char>> first;
    for (const int threads : kThreads) {
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

// A18: asking for the logits changes no other output by a bit.
TEST_F(MaxSum, LogitsOnOrOffChangesNothing) {
  for (const Case& c : {Case{13, 9, 700}, Case{1, 3, 130}, Case{130, 33, 2000}}) {
    ForwardProblem off(c, {});
    ForwardProblem on(c, {.with_logits = true});
    off.run();
    on.run();
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(off.outputs()[i]->bytes(), on.outputs()[i]->bytes()) << i;
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

// A weight with more rows than the range: all rows enter max and sum.
TEST_F(MaxSum, RowsBeyondTheRangeCount) {
  ForwardProblem p({6, 4, 50}, {});
  p.end = p.start + 2;
  p.run();
  p.expect_close();
}

// A range longer than the weight: an owned id without a row is infinitely improbable.
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

// Every output of a token is the same bits in any batch and at any position.
TEST_F(MaxSum, TokensDoNotDependOnTheBatch) {
  const Case whole{150, 37, 2100};
  ForwardProblem all(whole, {});
  all.run();
  for (const int64_t first : {int64_t{0}, int64_t{77}, int64_t{149}}) {
    const int64_t count = first == 77 ? 70 : 1;
    ForwardProblem part({count, 37, 2100}, {});
    for (int64_t v = 0; v < 2100; ++v) {
      for (int64_t h = 0; h < 37; ++h) part.weight.put(v, h, all.weight.get(v, h));
    }
    for (int64_t n = 0; n < count; ++n) {
      for (int64_t h = 0; h < 37; ++h) part.input.put(n, h, all.input.get(first + n, h));
      part.target.put(n, 0, all.target.get(first + n));
    }
    part.run();
    for (int64_t n = 0; n < count; ++n) {
      ASSERT_EQ(part.max.get(n), all.max.get(first + n));
      ASSERT_EQ(part.sum.get(n), all.sum.get(first + n));
      ASSERT_EQ(part.predicted.get(n), all.predicted.get(first + n));
    }
  }
}

TEST_F(MaxSum, NoTokensIsNoWork) {
  ForwardProblem p({0, 5, 128}, {});
  p.run();
  EXPECT_EQ(p.workspace_bytes, 0u);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
