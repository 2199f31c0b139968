// Known answers of the unpermutes and their gradients: the pages' examples and bug reports.
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {
namespace {

template <class T>
std::vector<T> narrowed(const std::vector<float>& values) {
  std::vector<T> out;
  for (const float value : values) out.push_back(narrow<T>(value));
  return out;
}

template <class T>
std::vector<float> widened(const TestTensor& tensor) {
  std::vector<float> out;
  for (const T value : tensor.read<T>()) out.push_back(widen(value));
  return out;
}

using Floats = std::vector<float>;

// One token of topk slots whose rows hold one number each, in every hidden size around a vector:
// what it sums to on every level.
template <class T>
void expect_sum(const Floats& rows, const Floats& weights, const std::vector<int32_t>& indices,
                float expected) {
  for (const int64_t hidden : {1, 16, 65}) {
    UnpermuteCall call(Case{1, static_cast<int64_t>(indices.size()), hidden});
    call.dropped_rows = call.slots() - static_cast<int64_t>(rows.size());
    const UnpermuteProblem<T, float> problem(call);
    for (int64_t i = 0; i < problem.permuted.count(); ++i) {
      problem.permuted.template at<T>(i) = narrow<T>(rows[static_cast<size_t>(i / hidden)]);
    }
    problem.probs.write(weights);
    problem.indices.write(indices);
    for_each_level([&](const char* level) {
      problem.poison_outputs();
      problem.run();
      const T want = narrow<T>(expected);
      for (const T got : problem.out.template read<T>()) {
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(widen(got))) << level;
        } else {
          ASSERT_EQ(std::memcmp(&got, &want, sizeof(T)), 0)
              << level << ": " << widen(got) << ", not " << expected;
        }
      }
    });
  }
}

struct Example {
  Floats rows = {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60};
  Floats probs = {.5f, .5f, .25f, .75f, 1, 0};
  Floats grad = {1, 2, 3, 4, 5, 6};
  std::vector<int32_t> indices = {0, 2, 4, 1, 3, 5};

  template <class T, class P>
  void write(const UnpermuteProblem<T, P>& problem, int64_t first_row) const {
    const auto x = narrowed<T>(rows);
    problem.permuted.write(std::vector<T>(x.begin() + first_row * 2,
                                          x.begin() + first_row * 2 + problem.permuted.count()));
    problem.probs.write(narrowed<P>(probs));
    problem.grad.write(narrowed<T>(grad));
    problem.indices.write(indices);
  }
};

TEST(Unpermute, GivesTheAnswersOfItsPage_E10) {
  for_each_pair_of_types([]<class T, class P>(T, P) {
    const UnpermuteProblem<T, P> problem(UnpermuteCall({3, 2, 2}));
    Example().write(problem, 0);
    problem.run();
    EXPECT_EQ(widened<T>(problem.out), (Floats{2, 20, 2.75f, 27.5f, 4, 40}));
  });
}

// Probability 0 has a gradient, 390.
TEST(UnpermuteGrad, GivesTheAnswersOfItsPage_I1) {
  for_each_type([]<class T>(T) {
    const UnpermuteProblem<T, float> problem(UnpermuteCall({3, 2, 2}));
    Example().write(problem, 0);
    problem.run_grad();
    EXPECT_EQ(widened<T>(problem.permuted_grad),
              (Floats{.5f, 1, 2.25f, 3, .5f, 1, 5, 6, .75f, 1, 0, 0}));
    EXPECT_EQ(widened<float>(problem.probs_grad), (Floats{21, 63, 215, 86, 260, 390}));
  });
}

TEST(UnpermuteWithEp, GivesTheAnswersOfItsPage) {
  UnpermuteCall call({3, 2, 2});
  call.expert_parallel = true;
  call.range = Range{1, 5};
  const UnpermuteProblem<float, float> problem(call);
  Example().write(problem, 1);
  problem.run();
  problem.run_grad();
  EXPECT_EQ(widened<float>(problem.out), (Floats{1.5f, 15, 2.75f, 27.5f, 4, 40}));
  EXPECT_EQ(widened<float>(problem.permuted_grad), (Floats{2.25f, 3, .5f, 1, 5, 6, .75f, 1}));
  EXPECT_EQ(widened<float>(problem.probs_grad), (Floats{0, 63, 215, 86, 260, 0}));
}

// Added one by one in bf16 the sum would stay 1.
TEST(Unpermute, SumsInFp32_H1_H9) {
  const float small = 0x1p-9f;
  const Floats ones(8, 1.0f);
  expect_sum<bf16>({1, small, small, small, small, small, small, small}, ones,
                   {0, 1, 2, 3, 4, 5, 6, 7}, 1.015625f);
}

// A fused multiply-add would keep the product's last bits: (1 + 2^-12)^2 − 1 − 2^-11 = 2^-24.
TEST(Unpermute, RoundsProductsBeforeAddingThem) {
  const float x = 1 + 0x1p-12f;
  expect_sum<float>({-1 - 0x1p-11f, x}, {1, x}, {0, 1}, 0);
}

TEST(Unpermute, NarrowsToNearestEven_H16) {
  expect_sum<bf16>({1, 0x1p-8f}, {1, 1}, {0, 1}, 1);                   // tie, even below
  expect_sum<bf16>({1.0078125f, 0x1p-8f}, {1, 1}, {0, 1}, 1.015625f);  // tie, even above
  expect_sum<f16>({1, 1}, {0x1p-11f, 1}, {0, 1}, 1);                   // likewise in fp16
  expect_sum<f16>({65504, 1}, {1, 15.9921875f}, {0, 1}, 65504);        // below the overflow
  expect_sum<f16>({65504, 1}, {1, 16}, {0, 1}, INFINITY);              // 65520
  expect_sum<f16>({65504, 65504}, {1, -1}, {0, 1}, 0);                 // through large sums
}

TEST(Unpermute, SkipsSlotsOfProbability0_H15) {
  for_each_type([]<class T>(T) {
    for (const float none : {0.0f, -0.0f}) {
      expect_sum<T>({NAN, 2}, {none, 1}, {0, 1}, 2);
      expect_sum<T>({INFINITY, -INFINITY}, {none, none}, {0, 1}, 0);
    }
    expect_sum<T>({NAN, 2}, {1, 1}, {0, 1}, NAN);
    expect_sum<T>({1, 2}, {NAN, 1}, {0, 1}, NAN);
  });
}

TEST(Unpermute, SkipsSlotsWithoutARowWhateverTheirProbability_H11_C2_C13R) {
  for_each_type([]<class T>(T) {
    for (const int32_t nowhere : {-1, 2, INT32_MIN, INT32_MAX}) {
      expect_sum<T>({3, 5}, {NAN, 2}, {nowhere, 1}, 10);
      expect_sum<T>({3, 5}, {INFINITY, NAN}, {nowhere, nowhere}, 0);
    }
  });
}

TEST(Unpermute, KeepsTheSignOfZeroInSlot0Only) {
  for_each_type([]<class T>(T) {
    expect_sum<T>({-0.0f, 5}, {2, 1}, {0, -1}, -0.0f);
    expect_sum<T>({0.0f, 5}, {-2, 1}, {0, -1}, -0.0f);
    expect_sum<T>({-0.0f, 5}, {1, 2}, {-1, 0}, 0.0f);
    expect_sum<T>({5, -0.0f}, {0, 2}, {0, 1}, 0.0f);
  });
}

TEST(Unpermute, SlotsWithoutRowsLeaveZeros_J3) {
  for_each_type([]<class T>(T) {
    const UnpermuteProblem<T, float> problem(UnpermuteCall({5, 4, 33}));
    problem.indices.write(std::vector<int32_t>(20, -1));
    problem.run();
    problem.run_grad();
    EXPECT_EQ(widened<T>(problem.out), Floats(5 * 33, 0.0f));
    EXPECT_EQ(widened<T>(problem.permuted_grad), Floats(20 * 33, 0.0f));
    EXPECT_EQ(widened<float>(problem.probs_grad), Floats(20, 0.0f));
  });
}

TEST(UnpermuteGrad, TheLastOfSeveralSlotsWritesARow) {
  for (const bool probs : {true, false}) {
    UnpermuteCall call({4, probs ? 2 : 1, 3});
    call.probs = probs;
    const UnpermuteProblem<float, float> problem(call);
    problem.grad.write<float>({1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4});
    problem.probs.write(Floats(static_cast<size_t>(call.slots()), 1.0f));
    std::vector<int32_t> indices(static_cast<size_t>(call.slots()), 1);
    indices.back() = -1;
    problem.indices.write(indices);
    problem.run_grad();
    const float last = probs ? 4 : 3;
    for (int64_t h = 0; h < 3; ++h) {
      EXPECT_EQ(problem.permuted_grad.at<float>(3 + h), last);
      EXPECT_EQ(problem.permuted_grad.at<float>(h), 0.0f);
    }
  }
}

// Every expert but one empty, no NaN among the inputs, none in the gradients.
TEST(UnpermuteGrad, IsFiniteForSkewedRouting_I4_I5) {
  const UnpermuteProblem<bf16, float> problem(UnpermuteCall({64, 8, 65}));
  for (int64_t i = 0; i < problem.permuted.count(); ++i) {
    problem.permuted.at<bf16>(i) = narrow<bf16>(static_cast<float>(i % 7) - 3);
  }
  for (int64_t i = 0; i < problem.grad.count(); ++i) {
    problem.grad.at<bf16>(i) = narrow<bf16>(static_cast<float>(i % 5) - 2);
  }
  problem.probs.write(Floats(512, 0.125f));
  std::vector<int32_t> identity(512);
  for (size_t i = 0; i < identity.size(); ++i) identity[i] = static_cast<int32_t>(i);
  problem.indices.write(identity);
  problem.poison_outputs();
  problem.run_grad();
  for (const float x : widened<bf16>(problem.permuted_grad)) ASSERT_TRUE(std::isfinite(x));
  for (const float x : widened<float>(problem.probs_grad)) ASSERT_TRUE(std::isfinite(x));
}

#if defined(__SSE__)
// Whatever floating-point environment the calling thread has.
TEST(Unpermute, KeepsSubnormalsWhenTheCallerFlushesThem_H14) {
  const UnpermuteProblem<float, float> problem(UnpermuteCall({1, 2, 33}));
  problem.permuted.write(Floats(66, 1e-40f));
  problem.grad.write(Floats(33, 1e-40f));
  problem.probs.write<float>({1, 1});
  problem.indices.write<int32_t>({0, 1});
  for_each_level([&](const char* level) {
    UnpermutePlan plan{};
    ASSERT_TRUE(plan_unpermute(unpack_unpermute(problem.tensors()), plan).ok());
    UnpermuteGradPlan grad_plan{};
    const auto grad_args = unpack_unpermute_grad(problem.grad_tensors());
    ASSERT_TRUE(plan_unpermute_grad(grad_args, grad_plan).ok());
    const Workspace workspace(static_cast<uint64_t>(grad_plan.workspace_bytes));
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u);  // flush to zero, denormals are zero
    const Status status = run_unpermute(plan, workspace.data());
    const Status grad_status = run_unpermute_grad(grad_plan, workspace.data());
    __builtin_ia32_ldmxcsr(before);
    ASSERT_TRUE(status.ok() && grad_status.ok());
    EXPECT_EQ(widened<float>(problem.out), Floats(33, 2 * 1e-40f)) << level;
    EXPECT_EQ(widened<float>(problem.permuted_grad), Floats(66, 1e-40f)) << level;
  });
}
#endif

}  // namespace
}  // namespace npuless::moe_token_permute
