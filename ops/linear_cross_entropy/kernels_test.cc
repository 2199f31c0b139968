// The row kernels of each level against libm in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "isa/level.h"
#include "linear_cross_entropy/op.h"

namespace npuless::linear_cross_entropy {
namespace {

template <class Body>
void for_each_level(Body body) {
  for (const isa::Level level : isa::kAllLevels) {
    if (!isa::available(level)) continue;
    SCOPED_TRACE(isa::level_name(level));
    body(kernels_for(level));
  }
}

std::vector<float> exp_of(const Kernels& kernels, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  kernels.exp(x.data(), static_cast<int64_t>(x.size()), y.data());
  return y;
}

// Every 5003rd fp32 value: relative error below 2^-22 where the result is normal, one subnormal
// step where it is not.
TEST(Kernels, ExpIsAccurateEverywhere) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 5003) {
    const auto word = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    x.push_back(value);
  }
  for_each_level([&](const Kernels& kernels) {
    const std::vector<float> y = exp_of(kernels, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(static_cast<double>(x[i]));
      const auto got = static_cast<double>(y[i]);
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(y[i]));
      } else if (want >= 0x1.ffffffp127) {
        ASSERT_TRUE(std::isinf(y[i])) << x[i];
      } else {
        ASSERT_LE(std::fabs(got - want), std::fmax(std::ldexp(want, -22), 0x1p-149)) << x[i];
      }
    }
  });
}

TEST(Kernels, ExpAtTheEdges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0.0f,      -0.0f,     -kInfinity, kInfinity,
                                88.72283f, 88.72284f, -103.97f,   -104.0f};
  for_each_level([&](const Kernels& kernels) {
    const std::vector<float> y = exp_of(kernels, x);
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    EXPECT_EQ(y[2], 0.0f);
    EXPECT_EQ(y[3], kInfinity);
    EXPECT_TRUE(std::isfinite(y[4]));
    EXPECT_EQ(y[5], kInfinity);
    EXPECT_EQ(y[6], 0x1p-149f);
    EXPECT_EQ(y[7], 0.0f);
  });
}

// sum and 1 / sum outside the normal range take the dividing path: same quotient, no 0 · ∞.
TEST(Kernels, SubnormalSumsDivide) {
  const float logits[] = {0.0f, -1.0f, -2.0f};
  for (const float sum : {0x1p-130f, 0x1p127f, std::numeric_limits<float>::max()}) {
    for_each_level([&](const Kernels& kernels) {
      float out[3];
      const TokenRow row{0.0f, sum, 1.0f / sum, true, 1.0f};
      kernels.grad_from_logits[kGradFloat32](logits, 3, row, kNoTarget, out);
      for (int i = 0; i < 3; ++i) {
        const double want = std::exp(static_cast<double>(logits[i])) / static_cast<double>(sum);
        if (want > static_cast<double>(std::numeric_limits<float>::max())) {
          EXPECT_TRUE(std::isinf(out[i]));
        } else {
          EXPECT_NEAR(static_cast<double>(out[i]), want,
                      std::fmax(std::ldexp(want, -21), 0x1p-149));
        }
      }
    });
  }
}

// exp / ∞ is 0, so the target's d is −1.
TEST(Kernels, InfiniteSumAtTheTarget) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float logits[] = {1.0f, 0.5f};
  for_each_level([&](const Kernels& kernels) {
    float out[2];
    kernels.grad_from_logits[kGradFloat32](logits, 2, {1.0f, kInfinity, 0.0f, true, 1.0f}, 0, out);
    EXPECT_EQ(out[0], -1.0f);
    EXPECT_EQ(out[1], 0.0f);
  });
}

// Rows of every length up to two vectors: nothing past the end is written, in any output type.
TEST(Kernels, TailsStopAtTheEnd) {
  for_each_level([&](const Kernels& kernels) {
    for (int64_t n = 1; n <= 33; ++n) {
      std::vector<float> in(static_cast<size_t>(n), 1.5f);
      std::vector<uint16_t> out(static_cast<size_t>(n) + 1, 0xABCD);
      kernels.narrow[kBfloat16](in.data(), n, 2.0f, out.data());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], 0x4040);
      ASSERT_EQ(out[static_cast<size_t>(n)], 0xABCD);
      kernels.narrow[kFloat16](in.data(), n, 2.0f, out.data());
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(out[static_cast<size_t>(i)], 0x4200);
      ASSERT_EQ(out[static_cast<size_t>(n)], 0xABCD);
    }
  });
}

// Past the caches or through them, at any length and alignment: the same bits and no others.
TEST(Kernels, StreamedSoftmaxIsTheStoredOne) {
  const TokenRow row{0.5f, 3.0f, 1.0f / 3.0f, false, 1.0f};
  for_each_level([&](const Kernels& kernels) {
    for (int64_t n = 1; n <= 70; ++n) {
      for (int64_t start = 0; start < 17; ++start) {
        std::vector<float> logits;
        for (int64_t j = 0; j < n; ++j) logits.push_back(static_cast<float>(j % 13) * -0.75f);
        std::vector<float> stored(static_cast<size_t>(n + 34), -1.0f);
        std::vector<float> streamed = stored;
        kernels.softmax[kLogitsFloat32](logits.data(), n, row, false, stored.data() + start);
        kernels.softmax[kLogitsFloat32](logits.data(), n, row, true, streamed.data() + start);
        ASSERT_EQ(streamed, stored) << n << " from " << start;
        ASSERT_EQ(stored[static_cast<size_t>(start + n)], -1.0f);
        ASSERT_NE(stored[static_cast<size_t>(start + n - 1)], -1.0f);
      }
    }
  });
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
