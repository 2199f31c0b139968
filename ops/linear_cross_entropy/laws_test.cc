// Laws of the gradient, and inputs that other implementations got wrong: public bug reports, named
// by the letter and number that the project's case list gives them (A2, A8, B4, B6, C2, E1).
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Options> all_modes() {
  std::vector<Options> modes;
  for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
    for (const bool softmax_mode : {false, true}) {
      modes.push_back({.dtype = dtype, .softmax_mode = softmax_mode});
    }
  }
  return modes;
}

uint16_t bits_at(TestTensor& tensor, int64_t i, int64_t j) {
  return tensor.at<uint16_t>(i, j);
}

void expect_row_zero(TestTensor& tensor, int64_t row) {
  for (int64_t j = 0; j < tensor.dim(1); ++j) {
    ASSERT_EQ(bits_at(tensor, row, j) & 0x7FFF, 0) << "row " << row << ", column " << j;
  }
}

// Two tokens, H = 1, W = e_5, X = 1: z = onehot(5), max 1, sum 1 + 127/e. Token 0 owns target 5.
TEST(GradLaws, WorkedNumbers) {
  Problem p({2, 1, 128}, {});
  for (int64_t v = 0; v < 128; ++v) p.weight.put(v, 0, v == 5 ? 1.0 : 0.0);
  const double sum = 1.0 + 127.0 / std::exp(1.0);
  for (int64_t n = 0; n < 2; ++n) {
    p.input.put(n, 0, 1.0);
    p.grad.put(n, 0, 1.0);
    p.max.put(n, 0, 1.0);
    p.sum.put(n, 0, sum);
  }
  p.target.put(0, 0, 5);
  p.target.put(1, 0, 0);
  p.mask.at<uint8_t>(0) = 0xFE;
  p.run();
  const double own = 1.0 / sum;
  EXPECT_NEAR(p.input_grad.get(0, 0), own - 1.0, std::ldexp(1.0, -8));
  EXPECT_NEAR(p.input_grad.get(1, 0), own, std::ldexp(own, -8));
  EXPECT_NEAR(p.weight_grad.get(5, 0), 2 * own - 1.0, std::ldexp(1.0, -8));
  EXPECT_NEAR(p.weight_grad.get(6, 0), 2 * own / std::exp(1.0), std::ldexp(own, -7));
  p.expect_close();
}

// A2: the upstream gradient is per token, and grad[0] = 0 silences token 0 only.
TEST(GradLaws, EachTokenHasItsOwnGrad) {
  for (const Options& o : all_modes()) {
    Problem p({8, 10, 128}, o);
    for (int64_t n = 0; n < 8; ++n) p.grad.put(n, 0, static_cast<double>(n));
    p.run();
    p.expect_close();
    expect_row_zero(p.input_grad, 0);
    EXPECT_NE(bits_at(p.input_grad, 1, 0) & 0x7FFF, 0);
  }
}

// A8: d at a target of probability p is p − 1, to the output's rounding, however close p is to 1.
TEST(GradLaws, ConfidentTargetsKeepTheirPrecision) {
  for (const double probability : {0.9, 0.99, 0.999, 0.9999}) {
    for (const DType dtype : {DType::kBfloat16, DType::kFloat16}) {
      const int64_t vocab = 32000;
      Problem p({1, 1, vocab}, {.dtype = dtype});
      const double logit =
          std::log(probability * static_cast<double>(vocab - 1) / (1 - probability));
      for (int64_t v = 0; v < vocab; ++v) p.weight.put(v, 0, 0.0);
      p.input.put(0, 0, 1.0);
      const double stored = p.weight.put(7, 0, logit);
      p.grad.put(0, 0, 1.0);
      p.target.put(0, 0, 7);
      p.set_masked(0, false);
      p.max.put(0, 0, stored);
      const double sum = p.sum.put(0, 0, 1.0 + static_cast<double>(vocab - 1) * std::exp(-stored));
      p.run();
      // weightGrad[7] = d · X with X = 1, so only d's and the output's roundings remain.
      const double want = (1.0 - sum) / sum;
      const double roundoff = dtype == DType::kBfloat16 ? 0x1p-8 : 0x1p-11;
      EXPECT_LE(std::fabs(p.weight_grad.get(7, 0) / want - 1.0), roundoff * (1 + 0x1p-8))
          << probability << " " << dtype_name(dtype);
    }
  }
}

// B4: NaN or infinity in one token's X makes that token NaN and poisons the sums over tokens, but
// no other token changes by a bit.
TEST(GradLaws, NonFiniteTokensStayAlone) {
  for (const Options& o : all_modes()) {
    for (const double poison : {kNan, kInfinity}) {
      Problem p({33, 31, 251}, o);
      for (int64_t n = 0; n < 33; ++n) p.grad.put(n, 0, 0.5);
      p.run();
      std::vector<uint16_t> clean;
      for (int64_t n = 0; n < 33; ++n) clean.push_back(bits_at(p.input_grad, n, 4));
      p.input.put(9, 2, poison);
      p.run();
      for (int64_t n = 0; n < 33; ++n) {
        if (n == 9) continue;
        EXPECT_EQ(bits_at(p.input_grad, n, 4), clean[static_cast<size_t>(n)]) << n;
      }
      EXPECT_TRUE(std::isnan(p.weight_grad.get(3, 2)) || std::isinf(p.weight_grad.get(3, 2)));
      if (o.softmax_mode) continue;
      EXPECT_TRUE(std::isnan(p.input_grad.get(9, 4)));
    }
  }
}

// B6, and decision 19: grad = 0 contributes exactly 0, whatever the token's row or logits hold.
TEST(GradLaws, ZeroGradIsExactlyZero) {
  for (const Options& o : all_modes()) {
    Problem p({19, 7, 130}, o);
    for (int64_t n = 0; n < 19; ++n) p.grad.put(n, 0, n % 2 == 0 ? 0.0 : -0.0);
    p.run();
    for (int64_t n = 0; n < 19; ++n) expect_row_zero(p.input_grad, n);
    for (int64_t v = 0; v < 130; ++v) expect_row_zero(p.weight_grad, v);
  }
}

TEST(GradLaws, SilentTokensHideNonFiniteInputs) {
  for (const Options& o : all_modes()) {
    Problem p({19, 7, 130}, o);
    p.grad.put(4, 0, 0.0);
    p.run();
    const std::vector<unsigned char> weight_grad = p.weight_grad.bytes();
    const std::vector<unsigned char> input_grad = p.input_grad.bytes();
    p.input.put(4, 0, kNan);
    p.input.put(4, 3, -kInfinity);
    p.max.put(4, 0, kNan);
    p.sum.put(4, 0, 0.0);
    if (o.softmax_mode) p.softmax.put(4, 11, kInfinity);
    p.run();
    EXPECT_EQ(p.weight_grad.bytes(), weight_grad);
    EXPECT_EQ(p.input_grad.bytes(), input_grad);
  }
}

// A weight row that is not finite reaches every token but the silent ones.
TEST(GradLaws, SilentTokensIgnoreNonFiniteWeights) {
  Problem p({6, 5, 128}, {.softmax_mode = true});
  for (int64_t n = 0; n < 6; ++n) p.grad.put(n, 0, n == 2 ? 0.0 : 1.0);
  p.weight.put(100, 1, kInfinity);
  p.run();
  expect_row_zero(p.input_grad, 2);
  EXPECT_TRUE(std::isinf(p.input_grad.get(1, 1)) || std::isnan(p.input_grad.get(1, 1)));
}

// Decision 19: a power of two in grad is a power of two in the results, down to where the outputs
// themselves underflow.
TEST(GradLaws, PowersOfTwoInGradCostNothing) {
  for (const Options& o : all_modes()) {
    Problem p({40, 9, 300}, o);
    for (int64_t v = 0; v < 300; ++v) {
      for (int64_t h = 0; h < 9; ++h) p.weight.put(v, h, 64.0 * p.weight.get(v, h));
    }
    for (int64_t n = 0; n < 40; ++n) p.input.put(n, 0, p.input.get(n, 0) / 64.0);
    p.derive();
    p.run();
    std::vector<double> before;
    for (int64_t n = 0; n < 40; ++n) before.push_back(p.input_grad.get(n, 0));
    const double factor = o.dtype == DType::kBfloat16 ? 0x1p-60 : 0x1p-4;
    for (int64_t n = 0; n < 40; ++n) p.grad.put(n, 0, p.grad.get(n) * factor);
    p.run();
    for (int64_t n = 0; n < 40; ++n) {
      const double old = before[static_cast<size_t>(n)];
      const double limit = o.dtype == DType::kBfloat16 ? 0 : 0x1p-25;
      EXPECT_LE(std::fabs(p.input_grad.get(n, 0) - old * factor), limit);
    }
  }
}

// E1: ids outside the shard subtract nothing and read nothing.
TEST(GradLaws, TargetsOutsideSubtractNothing) {
  constexpr int64_t kIds[] = {128, 129, -1, -2, -100, 2147483647, -2147483648};
  for (const bool wide : {false, true}) {
    Problem p({static_cast<int64_t>(std::size(kIds)), 5, 128}, {.wide_index = wide});
    Problem masked({static_cast<int64_t>(std::size(kIds)), 5, 128}, {.wide_index = wide});
    for (int64_t n = 0; n < p.shape.tokens; ++n) {
      p.target.put(n, 0, static_cast<double>(kIds[n]));
      p.set_masked(n, false);
      masked.set_masked(n, true);
    }
    if (wide) p.target.at<int64_t>(0) = int64_t{1} << 40;
    if (wide) p.target.at<int64_t>(1) = std::numeric_limits<int64_t>::min();
    p.run();
    masked.run();
    EXPECT_EQ(p.input_grad.bytes(), masked.input_grad.bytes());
    EXPECT_EQ(p.weight_grad.bytes(), masked.weight_grad.bytes());
    p.expect_close();
  }
}

// The bits of the last byte past N are never read, nor are further bytes of a longer mask.
TEST(GradLaws, MaskTailIsNotRead) {
  Problem p({13, 5, 128}, {});
  p.run();
  const std::vector<unsigned char> expected = p.input_grad.bytes();
  p.mask.at<uint8_t>(1) = static_cast<uint8_t>(p.mask.at<uint8_t>(1) & 0x1F);
  p.run();
  EXPECT_EQ(p.input_grad.bytes(), expected);
}

// Decision 20: inputGrad of a token is the same bits in any batch and at any position. Few tokens
// and many take different ways through the products; hidden and vocabulary pass a block of k.
TEST(GradLaws, TokensDoNotDependOnTheBatch) {
  constexpr int64_t kHidden = 250;
  for (const Options& o : all_modes()) {
    Problem all({150, kHidden, 2100}, o);
    all.run();
    for (const int64_t first : {int64_t{0}, int64_t{1}, int64_t{77}, int64_t{149}}) {
      const int64_t count = std::min<int64_t>(first == 77 ? 70 : 1, 150 - first);
      Problem part({count, kHidden, 2100}, o);
      for (int64_t v = 0; v < 2100; ++v) {
        for (int64_t h = 0; h < kHidden; ++h) part.weight.put(v, h, all.weight.get(v, h));
      }
      for (int64_t n = 0; n < count; ++n) {
        for (int64_t h = 0; h < kHidden; ++h) part.input.put(n, h, all.input.get(first + n, h));
        part.grad.put(n, 0, all.grad.get(first + n));
        part.max.put(n, 0, all.max.get(first + n));
        part.sum.put(n, 0, all.sum.get(first + n));
        part.target.put(n, 0, all.target.get(first + n));
        part.set_masked(n, all.is_masked(first + n));
        for (int64_t v = 0; o.softmax_mode && v < 2100; ++v) {
          part.softmax.put(n, v, all.softmax.get(first + n, v));
        }
      }
      part.run();
      for (int64_t n = 0; n < count; ++n) {
        for (int64_t h = 0; h < kHidden; ++h) {
          ASSERT_EQ(bits_at(part.input_grad, n, h), bits_at(all.input_grad, first + n, h));
        }
      }
    }
  }
}

// Adding a constant to every logit changes nothing. The constant is one more hidden unit, X = 1 and
// W = 64; all numbers are small integers, so logits are exact either way.
TEST(GradLaws, CommonOffsetOfLogitsChangesNothing) {
  Problem plain({9, 6, 140}, {});
  Problem shifted({9, 7, 140}, {});
  for (int64_t n = 0; n < 9; ++n) {
    for (int64_t h = 0; h < 6; ++h) {
      shifted.input.put(n, h, plain.input.put(n, h, static_cast<double>((n + 2 * h) % 5 - 2)));
    }
    shifted.input.put(n, 6, 1.0);
  }
  for (int64_t v = 0; v < 140; ++v) {
    for (int64_t h = 0; h < 6; ++h) {
      shifted.weight.put(v, h, plain.weight.put(v, h, static_cast<double>((v * 3 + h) % 3 - 1)));
    }
    shifted.weight.put(v, 6, 64.0);
  }
  plain.derive();
  for (int64_t n = 0; n < 9; ++n) {
    shifted.max.put(n, 0, plain.max.get(n) + 64.0);
    shifted.sum.put(n, 0, plain.sum.get(n));
  }
  plain.run();
  shifted.run();
  for (int64_t h = 0; h < 6; ++h) {
    for (int64_t n = 0; n < 9; ++n) {
      ASSERT_EQ(bits_at(shifted.input_grad, n, h), bits_at(plain.input_grad, n, h));
    }
    for (int64_t v = 0; v < 140; ++v) {
      ASSERT_EQ(bits_at(shifted.weight_grad, v, h), bits_at(plain.weight_grad, v, h));
    }
  }
}

// C2: odd sizes of other projects' tests, whole.
TEST(GradLaws, OddSizes) {
  for (const Case& c : {Case{252, 507, 131}, Case{188, 31, 163}, Case{61, 1, 2003}}) {
    Problem p(c, {});
    p.run();
    p.expect_close();
  }
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
