// Both gradients against the scalar model, bit for bit, over every shape, type, ISA level and
// number of threads.
//
// Cases of bug reports that concern these gradients and are not named here: A3, A7, A9, A13R, G3,
// G4 in test_layouts.cc; B1, B2, B3, B6, B13, C13R, H1, H9, H14, H16, I1, I2 in test_laws.cc, I1
// in test_permute_laws.cc too; C15R, E4, M5R in test_refusals.cc, L4 there and in
// test_base_refusals.cc by the types of outputs. Every model comparison compares the inputs before
// and after (G6R) and runs every ISA level into poisoned outputs (H3, I4, I5, I8, J6), over the
// shapes of cases.h: topk 129 and others, hidden 1 to 7169 (E3, E7, F1).
//
// Not of these operators: A1, A2, A4, A6, A8, A12, B11, B14R, B15R, B17R, B18R, D6R, E10, H7, H11,
// H15, I6R, L3 (permutes, unpermutes and routing maps, which have their own tests); A10R (no
// workspace); B5, C16, D7, D8, D14, D15, J1 to J3, J7 to J10 (no rows aligned or padded per
// expert); B7 to B9, D13, H5, I7, K1 to K8 (exchanges between ranks); C1, C2, C4 to C12, C17, D2
// to D4, D9 to D11, E1, E2, E6, H6, L1, L2, L5 (no expert ids, maps or counts); E8, F7 (no
// specialised topk, one kind of memory); G2, I9, I11, M1, M2 (no Python, no automatic
// differentiation, no compiler of kernels); M3R (no workspace to share).
#include "moe_token_permute/test_session.h"

namespace npuless::moe_token_permute {
namespace {

constexpr int kThreads[] = {1, 2, 3, 7};

std::string describe(const Case& c) {
  return std::to_string(c.tokens) + " tokens, topk " + std::to_string(c.topk) + ", hidden " +
         std::to_string(c.hidden);
}

// The whole order, then its middle third with probabilities and rows to spare.
Call base_call(const Case& shape) {
  return Call(shape);
}

Call ep_call(const Case& shape) {
  const int64_t slots = shape.tokens * shape.topk;
  Call call(shape);
  call.range = Range{slots / 3, slots - slots / 3};
  call.probs = true;
  call.extra_rows = 2;
  return call;
}

template <class T>
void expect_model_through_api(const Problem<T>& problem) {
  for_each_level([&](const char* level) {
    for (const int threads : kThreads) {
      ASSERT_TRUE(set_num_threads(threads).ok());
      problem.poison_outputs();
      run(problem);
      problem.expect_model(describe(problem.call().shape) + ", " + level + ", " +
                           std::to_string(threads) + " threads");
    }
  });
}

TEST(PermuteGrad, GivesTheModelsBits) {
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) { expect_model_through_api(Problem<T>(base_call(shape))); });
  }
}

// Cases F2, F3, F6 and F8: hidden sizes that others' kernels got wrong, beside those of kCases.
TEST(PermuteGrad, TakesAnyHiddenSize) {
  for (const int64_t hidden : {96, 160, 384, 1056, 3584, 65544}) {
    for_each_type([&]<class T>(T) {
      expect_model_through_api(Problem<T>(base_call(Case{3, 2, hidden})));
    });
  }
}

TEST(PermuteWithEpGrad, GivesTheModelsBits) {
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) { expect_model_through_api(Problem<T>(ep_call(shape))); });
  }
}

// Small chunks put chunk borders inside small shapes; streamed stores are otherwise for large ones.
TEST(PermuteWithEpGrad, GivesTheModelsBitsForAnyChunkAndStore) {
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) {
      const Problem<T> problem(ep_call(shape));
      for_each_level([&](const char* level) {
        for (const int64_t chunk_tokens : {1, 3}) {
          for (const bool stream : {false, true}) {
            ASSERT_TRUE(set_num_threads(3).ok());
            PermuteGradPlan plan = problem.plan();
            plan.chunk_tokens = chunk_tokens;
            plan.stream = stream;
            problem.poison_outputs();
            ASSERT_TRUE(run_permute_grad(plan, nullptr).ok());
            problem.expect_model(describe(shape) + ", " + level + (stream ? ", streamed" : ""));
          }
        }
      });
    });
  }
}

// An output large enough for streamed stores, through the public functions.
TEST(PermuteGrad, GivesTheModelsBitsForALargeOutput) {
  const Problem<bf16> problem(base_call({2621, 2, 3303}));
  EXPECT_TRUE(problem.plan().stream);
  for_each_level([&](const char* level) {
    ASSERT_TRUE(set_num_threads(3).ok());
    problem.poison_outputs();
    run(problem);
    problem.expect_model(level);
  });
}

// Case H4.
TEST(PermuteGrad, RepeatsTheSameBitsOnAnyNumberOfThreads) {
  const Problem<bf16> problem(base_call({4093, 8, 65}));
  run(problem);
  const auto expected = problem.token_grad.bytes();
  problem.expect_model("the first run");
  for (const int threads : {1, 2, 7, 64}) {
    ASSERT_TRUE(set_num_threads(threads).ok());
    for (int repeat = 0; repeat < 25; ++repeat) {
      problem.poison_outputs();
      run(problem);
      ASSERT_TRUE(problem.token_grad.bytes() == expected) << threads << " threads";
    }
  }
}

// The other way to be right: within the error that fp32 sums may have of the exact sum.
template <class T>
void expect_exact_within_tolerance(const Case& shape) {
  const Problem<T> problem(base_call(shape));
  std::mt19937 random(7);
  std::vector<T> values;
  for (int64_t i = 0; i < problem.grad.count(); ++i) {
    values.push_back(narrow<T>(std::ldexp(static_cast<float>(random() % 8191) - 4095.0f,
                                          static_cast<int>(random() % 12) - 18)));
  }
  problem.grad.write(values);
  run(problem);
  const auto exact =
      exact_token_grad(problem.ref_shape(), values, problem.indices.template read<int32_t>());
  for (size_t i = 0; i < exact.size(); ++i) {
    const auto got =
        static_cast<double>(widen(problem.token_grad.template at<T>(static_cast<int64_t>(i))));
    EXPECT_LE(std::abs(got - exact[i].value), exact[i].tolerance) << describe(shape);
  }
}

// Cases H8 and I3: H8's tokens and topk, of whose 2048 columns 33 are as good as all.
TEST(PermuteGrad, IsCloseToTheExactSum) {
  expect_exact_within_tolerance<float>({8192, 4, 33});
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) { expect_exact_within_tolerance<T>(shape); });
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
