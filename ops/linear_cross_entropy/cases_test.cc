// Inputs from public bug reports of similar systems, named by their ids in the project's case list.
//
// Elsewhere: A2, A8, B4, B6, C2, E1 in laws_test.cc; A13 (and A14, the same), A17, A18, B4, B7, D6,
// D7, C1 of the max-sum in forward_test.cc; B5, C1 of the loss in loss_test.cc; B2, C5, C8, C9, F12
// in refusal_test.cc, F12 in forward_refusal_test.cc and platform_test.cc; F2 and F11 in the loops
// over ISA levels and threads of test.cc and forward_test.cc.
// Do not apply, since the operators have no such argument or leave it to the caller:
//   A1 bias; A6, A7, A11 reductions over tokens; A15 softcap; A19 z-loss; A22, D1, D5, D10 what the
//   ranks exchange; D3, D4 reducing inputGrad over ranks; D8 gathering its layout; B1, E2, E3, E4,
//   E6 ignored targets, class weights and smoothing (a caller silences a token with grad = 0: B6);
//   A23 the unfused loss; F1, F3, F4, F5, F7, F8, F9, F10, C7 autograd, compilers, other types.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>

#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

using npuless::testing::FarMatrix;

struct Replacement {
  size_t argument;
  aclTensor* view;
};

// Runs `problem` with some arguments replaced by other views.
void run_with(Problem& problem, const std::vector<Replacement>& replacements) {
  Problem::Handles handles(problem);
  for (const Replacement& r : replacements) handles.given[r.argument] = r.view;
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  ASSERT_EQ(handles.phase1(&bytes, &executor), 0) << aclGetRecentErrMsg();
  std::vector<unsigned char> workspace(bytes);
  ASSERT_EQ(aclrtSetDevice(0), 0);
  ASSERT_EQ(aclnnFusedLinearCrossEntropyLossGrad(workspace.data(), bytes, executor, nullptr), 0);
  ASSERT_EQ(aclrtSynchronizeStream(nullptr), 0);
  ASSERT_EQ(aclrtResetDevice(0), 0);
}

// The same for one argument; destroys the view.
void run_with(Problem& problem, size_t argument, aclTensor* view) {
  run_with(problem, {{argument, view}});
  aclDestroyTensor(view);
}

aclTensor* view_of(DType dtype, std::vector<int64_t> dims, std::vector<int64_t> strides,
                   void* data) {
  return aclCreateTensor(dims.data(), dims.size(), static_cast<aclDataType>(dtype), strides.data(),
                         0, ACL_FORMAT_ND, dims.data(), dims.size(), data);
}

// A3: grad expanded from one number (stride 0), and every second element of a longer vector.
TEST(GradCases, A3ExpandedAndSteppedGrad) {
  Problem p({24, 6, 140}, {});
  std::vector<float> values(48, NAN);
  for (size_t i = 0; i < 48; i += 2) values[i] = 0.25f;
  for (int64_t n = 0; n < 24; ++n) p.grad.put(n, 0, 0.25);
  p.run();
  const std::vector<unsigned char> expected = p.weight_grad.bytes();
  for (const int64_t stride : {0, 2}) {
    p.weight_grad.poison();
    run_with(p, 0, view_of(DType::kFloat32, {24}, {stride}, values.data()));
    EXPECT_EQ(p.weight_grad.bytes(), expected) << "stride " << stride;
  }
}

// A5: X a slice of a wider matrix, X a transposed matrix, W with a long row stride.
TEST(GradCases, A5SlicedAndTransposedOperands) {
  const Case c = {19, 13, 150};
  Problem p(c, {});
  p.run();
  const std::vector<unsigned char> expected = p.weight_grad.bytes();
  std::vector<bf16> wide(static_cast<size_t>(c.tokens * 2 * c.hidden));
  std::vector<bf16> turned(static_cast<size_t>(c.tokens * c.hidden));
  for (int64_t n = 0; n < c.tokens; ++n) {
    for (int64_t h = 0; h < c.hidden; ++h) {
      wide[static_cast<size_t>(n * 2 * c.hidden + h)] = p.input.at<bf16>(n, h);
      turned[static_cast<size_t>(h * c.tokens + n)] = p.input.at<bf16>(n, h);
    }
  }
  std::vector<bf16> rows(static_cast<size_t>(c.vocab * 3 * c.hidden));
  for (int64_t v = 0; v < c.vocab; ++v) {
    for (int64_t h = 0; h < c.hidden; ++h) {
      rows[static_cast<size_t>(v * 3 * c.hidden + h)] = p.weight.at<bf16>(v, h);
    }
  }
  const auto expect_same = [&](size_t argument, aclTensor* view) {
    p.weight_grad.poison();
    run_with(p, argument, view);
    EXPECT_EQ(p.weight_grad.bytes(), expected);
  };
  expect_same(1, view_of(DType::kBfloat16, {c.tokens, c.hidden}, {2 * c.hidden, 1}, wide.data()));
  expect_same(1, view_of(DType::kBfloat16, {c.tokens, c.hidden}, {1, c.tokens}, turned.data()));
  expect_same(2, view_of(DType::kBfloat16, {c.vocab, c.hidden}, {3 * c.hidden, 1}, rows.data()));
}

// A9: inputGrad summed over 100000 columns, each adding the same little: within two units of the
// result, not the sum of as many bf16 roundings.
TEST(GradCases, A9LongSumsStayInFloat32) {
  const int64_t vocab = 100000;
  Problem p({2, 3, vocab}, {.softmax_mode = true});
  for (int64_t v = 0; v < vocab; ++v) {
    for (int64_t h = 0; h < 3; ++h) p.weight.put(v, h, 1.0);
    for (int64_t n = 0; n < 2; ++n) p.softmax.put(n, v, 0x1p-10);
  }
  for (int64_t n = 0; n < 2; ++n) {
    p.grad.put(n, 0, 1.0);
    p.set_masked(n, true);
  }
  p.run();
  const double want = 0x1p-10 * static_cast<double>(vocab);
  for (int64_t h = 0; h < 3; ++h) EXPECT_NEAR(p.input_grad.get(1, h), want, 0x1p-7 * want);
}

// A12: a small vocabulary in exact arithmetic: nothing is filtered.
TEST(GradCases, A12SmallVocabularyIsExact) {
  Problem p({1024, 32, 128}, {});
  p.run();
  p.expect_close();
}

// A21: both modes on the same numbers.
TEST(GradCases, A21ModesAgree) {
  const Case c = {40, 21, 600};
  Problem saving(c, {});
  Problem given(c, {.softmax_mode = true});
  saving.run();
  given.run();
  given.expect_close();
  const ref::GradOutputs want = ref::grad(saving.reference_inputs(), saving.precision());
  Problem::expect_close("inputGradOut of the other mode", given.input_grad, want.input_grad,
                        want.input_bound);
}

// C1: rows 2^24 elements apart in every matrix, so that offsets pass 2^31 elements.
TEST(GradCases, C1OffsetsBeyond32Bits) {
  for (const bool softmax_mode : {false, true}) {
    const Case c = {150, 3, 150};
    Problem p(c, {.softmax_mode = softmax_mode});
    p.run();
    const FarMatrix input(DType::kBfloat16, p.input);
    const FarMatrix weight(DType::kBfloat16, p.weight);
    const FarMatrix input_grad(DType::kBfloat16, c.tokens, c.hidden);
    const FarMatrix weight_grad(DType::kBfloat16, c.vocab, c.hidden);
    std::vector<Replacement> far = {{1, input.handle()},
                                    {2, weight.handle()},
                                    {8, input_grad.handle()},
                                    {9, weight_grad.handle()}};
    if (!softmax_mode) {
      run_with(p, far);
    } else {
      const FarMatrix softmax(DType::kFloat32, p.softmax);
      far.push_back({7, softmax.handle()});
      run_with(p, far);
    }
    EXPECT_EQ(input_grad.elements(), p.input_grad.bytes());
    EXPECT_EQ(weight_grad.elements(), p.weight_grad.bytes());
  }
}

// Instrumented or emulated, that many exponentials take minutes.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(NPULESS_EMULATE_AVX512)
// C1: more than 2^31 logits. Every token is that of a small problem, so each row of inputGrad is
// its row, and weightGrad is so many times its weightGrad. Both are rounded once to bf16, after an
// fp32 sum of as many terms as there are tokens.
TEST(GradCases, C1MoreLogitsThan32BitsCount) {
  constexpr int64_t kTokens = 70000;
  Problem one({1, 8, 32768}, {.bool_mask = true});
  one.run();
  const std::vector<unsigned char> row = one.input_grad.bytes();
  std::vector<double> weight_grad;
  for (int64_t i = 0; i < 32768 * 8; ++i) weight_grad.push_back(one.weight_grad.get(i / 8, i % 8));

  std::vector<bf16> rows(kTokens * 8);
  std::vector<Replacement> many = {
      {0, view_of(DType::kFloat32, {kTokens}, {0}, &one.grad.at<float>(0))},
      {1, view_of(DType::kBfloat16, {kTokens, 8}, {0, 1}, &one.input.at<bf16>(0))},
      {3, view_of(DType::kBool, {kTokens}, {0}, &one.mask.at<uint8_t>(0))},
      {4, view_of(DType::kInt32, {kTokens}, {0}, &one.target.at<int32_t>(0))},
      {5, view_of(DType::kFloat32, {kTokens}, {0}, &one.max.at<float>(0))},
      {6, view_of(DType::kFloat32, {kTokens}, {0}, &one.sum.at<float>(0))},
      {8, view_of(DType::kBfloat16, {kTokens, 8}, {8, 1}, rows.data())}};
  one.weight_grad.poison();
  run_with(one, many);
  for (const Replacement& r : many) aclDestroyTensor(r.view);
  for (int64_t n = 0; n < kTokens; ++n) {
    ASSERT_EQ(std::memcmp(&rows[static_cast<size_t>(n * 8)], row.data(), row.size()), 0) << n;
  }
  constexpr double kRelative = 2 * 0x1p-8 * (1 + 0x1p-7) + kTokens * 0x1p-24;
  for (int64_t i = 0; i < 32768 * 8; ++i) {
    const double want = kTokens * weight_grad[static_cast<size_t>(i)];
    ASSERT_LE(std::fabs(one.weight_grad.get(i / 8, i % 8) - want), kRelative * std::fabs(want));
  }
}
#endif

// C4: vocabularies and hidden sizes beyond other systems' tiles.
TEST(GradCases, C4LargeVocabularyAndHidden) {
  for (const Case& c : {Case{1, 16384, 128}, Case{1, 65535, 128}, Case{2, 1, 300000}}) {
    Problem p(c, {});
    p.run();
    p.expect_close();
  }
}

// F11: the same bits on every run.
TEST(GradCases, F11TwentyRuns) {
  Problem p({70, 33, 500}, {});
  p.run();
  const std::vector<unsigned char> input_grad = p.input_grad.bytes();
  const std::vector<unsigned char> weight_grad = p.weight_grad.bytes();
  for (int i = 0; i < 20; ++i) {
    p.run();
    ASSERT_EQ(p.input_grad.bytes(), input_grad);
    ASSERT_EQ(p.weight_grad.bytes(), weight_grad);
  }
}

// Operators run in the default floating-point environment, whatever the caller's: a rounding mode
// set before the stream exists would reach its thread.
TEST(GradCases, CallersRoundingModeDoesNotMatter) {
  Problem p({33, 31, 251}, {});
  p.run();
  const std::vector<unsigned char> expected = p.input_grad.bytes();
  ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
  p.run();
  ASSERT_EQ(std::fesetround(FE_TONEAREST), 0);
  EXPECT_EQ(p.input_grad.bytes(), expected);
}

// --- the reference itself ------------------------------------------------------------------------

// Σ_n grad[n] · (log Σ_v exp z − z[target]), or without the target's logit where there is none.
double total_loss(const ref::GradInputs& in) {
  double total = 0;
  for (int64_t n = 0; n < in.tokens; ++n) {
    double sum = 0;
    double own = 0;
    for (int64_t v = 0; v < in.vocab; ++v) {
      double z = 0;
      for (int64_t h = 0; h < in.hidden; ++h) {
        z += in.input[static_cast<size_t>(n * in.hidden + h)] *
             in.weight[static_cast<size_t>(v * in.hidden + h)];
      }
      sum += std::exp(z);
      if (in.target[static_cast<size_t>(n)] == v) own = z;
    }
    total += in.grad[static_cast<size_t>(n)] * (std::log(sum) - own);
  }
  return total;
}

// ref.h against central differences of the loss: error of order step², so 1e-8 at 1e-4.
TEST(GradReference, AgreesWithCentralDifferences) {
  Problem p({5, 4, 128}, {});
  ref::GradInputs in = p.reference_inputs();
  for (size_t n = 0; n < 5; ++n) {
    in.max[n] = 0;
    in.sum[n] = 0;
    for (int64_t v = 0; v < 128; ++v) {
      double z = 0;
      for (size_t h = 0; h < 4; ++h)
        z += in.input[n * 4 + h] * in.weight[static_cast<size_t>(v) * 4 + h];
      in.sum[n] += std::exp(z);
    }
  }
  const ref::GradOutputs out = ref::grad(in, p.precision());
  constexpr double kStep = 1e-4;
  const auto slope = [&](double& x) {
    const double at = x;
    x = at + kStep;
    const double above = total_loss(in);
    x = at - kStep;
    const double below = total_loss(in);
    x = at;
    return (above - below) / (2 * kStep);
  };
  for (size_t i = 0; i < 20; ++i) ASSERT_NEAR(out.input_grad[i], slope(in.input[i]), 1e-6);
  for (size_t i = 0; i < 512; i += 7) ASSERT_NEAR(out.weight_grad[i], slope(in.weight[i]), 1e-6);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
