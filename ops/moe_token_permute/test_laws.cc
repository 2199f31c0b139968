// Laws that hold whatever the numbers, and the examples and bug reports with known answers.
#include <cfenv>

#include "moe_token_permute/test_session.h"

namespace npuless::moe_token_permute {
namespace {

std::vector<float> floats(const TestTensor& tensor) {
  return tensor.read<float>();
}

// Small integers: every sum is exact in fp32, so order and rounding play no part.
std::vector<float> small_integers(int64_t count, std::mt19937& random) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 201) - 100);
  return values;
}

// Sorted positions by expert: what aclnnMoeTokenPermute would put out.
std::vector<int32_t> routed_indices(int64_t slots, unsigned experts, std::mt19937& random) {
  std::vector<unsigned> expert(static_cast<size_t>(slots));
  for (unsigned& e : expert) e = static_cast<unsigned>(random()) % experts;
  std::vector<int32_t> order(expert.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return expert[static_cast<size_t>(a)] < expert[static_cast<size_t>(b)];
  });
  std::vector<int32_t> indices(expert.size());
  for (size_t p = 0; p < order.size(); ++p) {
    indices[static_cast<size_t>(order[p])] = static_cast<int32_t>(p);
  }
  return indices;
}

struct Outputs {
  std::vector<float> tokens;
  std::vector<float> probs;
};

// The gradients of one rank, of which `grad` and `probs` hold all positions.
Outputs run_rank(const Case& shape, Range range, const std::vector<float>& grad,
                 const std::vector<float>& probs, const std::vector<int32_t>& indices) {
  Call call(shape);
  call.range = range;
  call.probs = true;
  call.extra_rows = range.begin == range.end ? 1 : 0;
  const Problem<float> problem(call);
  const int64_t rows = range.end - range.begin;
  const auto from = grad.begin() + range.begin * shape.hidden;
  problem.grad.write(std::vector<float>(from, from + rows * shape.hidden));
  problem.probs_grad.write(
      std::vector<float>(probs.begin() + range.begin, probs.begin() + range.end));
  problem.indices.write(indices);
  run(problem);
  return {floats(problem.token_grad), floats(problem.probs_out)};
}

void add(const std::vector<float>& from, std::vector<float>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// The whole being the gradient without ranges, of which each rank has its rows' share.
TEST(PermuteWithEpGrad, RanksThatShareThePositionsSumToTheWhole) {
  const Case shape{37, 6, 19};
  const int64_t slots = shape.tokens * shape.topk;
  std::mt19937 random(3);
  const auto grad = small_integers(slots * shape.hidden, random);
  const auto probs = small_integers(slots, random);
  const auto indices = routed_indices(slots, 5, random);
  const Problem<float> base{Call(shape)};
  base.grad.write(grad);
  base.indices.write(indices);
  run(base);
  const Outputs whole = run_rank(shape, {0, slots}, grad, probs, indices);
  EXPECT_EQ(whole.tokens, floats(base.token_grad));
  Outputs sum{std::vector<float>(whole.tokens.size()), std::vector<float>(whole.probs.size())};
  int64_t begin = 0;
  for (const int64_t end : {int64_t{1}, int64_t{1}, int64_t{90}, int64_t{200}, slots}) {
    const Outputs part = run_rank(shape, {begin, end}, grad, probs, indices);
    add(part.tokens, sum.tokens);
    add(part.probs, sum.probs);
    begin = end;
  }
  EXPECT_EQ(sum.tokens, whole.tokens);
  EXPECT_EQ(sum.probs, whole.probs);
}

// <permute(x), g> = <x, gradient(g)>
TEST(PermuteGrad, IsTheAdjointOfPermute) {
  const Case shape{41, 4, 23};
  const int64_t slots = shape.tokens * shape.topk;
  std::mt19937 random(4);
  const Problem<float> problem{Call(shape)};
  const auto x = small_integers(shape.tokens * shape.hidden, random);
  const auto g = small_integers(slots * shape.hidden, random);
  const auto indices = routed_indices(slots, 7, random);
  problem.grad.write(g);
  problem.indices.write(indices);
  run(problem);
  double permuted = 0;
  for (int64_t slot = 0; slot < slots; ++slot) {
    for (int64_t h = 0; h < shape.hidden; ++h) {
      const auto token = static_cast<size_t>(slot / shape.topk * shape.hidden + h);
      const auto row = static_cast<size_t>(indices[static_cast<size_t>(slot)] * shape.hidden + h);
      permuted += static_cast<double>(x[token]) * static_cast<double>(g[row]);
    }
  }
  double original = 0;
  const auto dx = floats(problem.token_grad);
  for (size_t i = 0; i < x.size(); ++i) {
    original += static_cast<double>(x[i]) * static_cast<double>(dx[i]);
  }
  EXPECT_EQ(original, permuted);
}

// Null and empty: the other operator, and nothing given for probabilities is looked at.
TEST(PermuteWithEpGrad, WithoutARangeIsPermuteGrad) {
  for_each_type([&]<class T>(T) {
    Call call(Case{11, 3, 33});
    call.probs = true;
    const Problem<T> problem(call);
    const aclIntArray* empty = aclCreateIntArray(nullptr, 0);
    const TestTensor unusable(DType::kInt8, {2, 2, 2});
    for (const aclIntArray* range : {static_cast<const aclIntArray*>(nullptr), empty}) {
      for (const aclTensor* probs_out :
           {problem.probs_out.handle(), unusable.handle(), static_cast<aclTensor*>(nullptr)}) {
        run_base(problem);
        const auto expected = problem.token_grad.bytes();
        problem.poison_outputs();
        run_ep(problem, range, probs_out);
        EXPECT_EQ(problem.token_grad.bytes(), expected);
      }
    }
    for (const unsigned char byte : problem.probs_out.bytes()) ASSERT_EQ(byte, 0xFF);
    aclDestroyIntArray(empty);
  });
}

// Case I2: no gradient of the probabilities comes in, none goes out, and that of the tokens does.
TEST(PermuteWithEpGrad, WithoutProbabilitiesLeavesTheirGradientUntouched) {
  for_each_type([&]<class T>(T) {
    Call call(Case{11, 3, 33});
    call.range = Range{4, 20};
    const Problem<T> problem(call);
    problem.poison_outputs();
    run(problem);
    problem.expect_model("probabilities null");
  });
}

// "If empty, probsGradOut is not output": also a tensor without elements.
TEST(PermuteWithEpGrad, EmptyProbabilitiesLeaveTheirGradientUntouched) {
  Call call(Case{11, 3, 33});
  call.range = Range{4, 20};
  const Problem<float> problem(call);
  const TestTensor empty(DType::kFloat32, {0});
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                problem.grad.handle(), problem.indices.handle(), empty.handle(), 3, problem.range(),
                false, problem.token_grad.handle(), problem.probs_out.handle(),
                &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, planned.executor, Session::stream()),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
  problem.expect_model("probabilities empty");
}

// Cases B1, B2, B6: a rank that received nothing has zero gradients, not missing ones.
TEST(PermuteWithEpGrad, ARankWithoutRowsHasZeroGradients) {
  for (const int64_t position : {0, 4, 8}) {
    for_each_type([&]<class T>(T) {
      Call call(Case{4, 2, 33});
      call.range = Range{position, position};
      call.probs = true;
      call.extra_rows = 3;
      const Problem<T> problem(call);
      run(problem);
      for (const T value : problem.token_grad.template read<T>()) {
        const T zero{};
        ASSERT_EQ(std::memcmp(&value, &zero, sizeof(T)), 0);
      }
      problem.expect_model("no rows");
    });
  }
}

// Cases B3, B13: the page of this operator does not exclude empty tensors.
TEST(PermuteGrad, TakesEmptyTensors) {
  for_each_type([]<class T>(T) {
    for (const Case& shape : {Case{0, 3, 5}, Case{4, 3, 0}, Case{0, 1, 0}}) {
      const Problem<T> problem{Call(shape)};
      run(problem);
      problem.expect_model("empty");
    }
  });
}

TEST(PermuteGrad, WithoutRowsIsZero) {
  const TestTensor grad(DType::kFloat32, {0, 5});
  const TestTensor indices(DType::kInt32, {6});
  const TestTensor out(DType::kFloat32, {3, 5});
  indices.write<int32_t>({0, 1, 2, 3, 4, 5});
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteGradGetWorkspaceSize(grad.handle(), indices.handle(), 2, false,
                                                     out.handle(), &planned.workspace_size,
                                                     &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(aclnnMoeTokenPermuteGrad(nullptr, 0, planned.executor, Session::stream()), ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
  EXPECT_EQ(floats(out), std::vector<float>(15, 0.0f));
}

// The page's example, with the rows it means: R of them. Case I1: probabilities have gradients.
TEST(PermuteWithEpGrad, GivesTheAnswersOfItsPage) {
  const Outputs out = run_rank({3, 2, 2}, {1, 5}, {9, 9, 2, 2, 1, 1, 3, 3, 2, 2, 9, 9},
                               {9, .2f, .5f, .4f, .4f, 9}, {2, 0, 4, 1, 5, 3});
  EXPECT_EQ(out.tokens, (std::vector<float>{1, 1, 4, 4, 3, 3}));
  EXPECT_EQ(out.probs, (std::vector<float>{.5f, 0, .4f, .2f, 0, .4f}));
}

// One token of topk rows: what it sums to, on every level.
template <class T>
void expect_sum(const std::vector<float>& rows, const std::vector<int32_t>& indices,
                float expected) {
  const auto topk = static_cast<int64_t>(indices.size());
  for (const int64_t hidden : {1, 16, 65}) {
    const Problem<T> problem(Call({1, topk, hidden}));
    std::vector<T> values;
    for (int64_t i = 0; i < problem.grad.count(); ++i) {
      values.push_back(narrow<T>(rows[static_cast<size_t>(i / hidden)]));
    }
    problem.grad.write(values);
    problem.indices.write(indices);
    for_each_level([&](const char* level) {
      problem.poison_outputs();
      run(problem);
      const T want = narrow<T>(expected);
      for (const T got : problem.token_grad.template read<T>()) {
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

// Cases H1 and H9: added one by one in bf16 the sum would stay 1.
TEST(PermuteGrad, SumsInFp32) {
  const float small = 0x1p-9f;
  expect_sum<bf16>({1, small, small, small, small, small, small, small}, {0, 1, 2, 3, 4, 5, 6, 7},
                   1.015625f);
}

// Case H16.
TEST(PermuteGrad, NarrowsToNearestEven) {
  expect_sum<bf16>({1, 0x1p-8f}, {0, 1}, 1);                        // tie, even below
  expect_sum<bf16>({1.0078125f, 0x1p-8f}, {0, 1}, 1.015625f);       // tie, even above
  expect_sum<bf16>({1, 0x1p-8f, 0x1p-20f}, {0, 1, 2}, 1.0078125f);  // just above a tie
  expect_sum<f16>({1, 0x1p-11f}, {0, 1}, 1);
  expect_sum<f16>({1 + 0x1p-10f, 0x1p-11f}, {0, 1}, 1 + 0x1p-9f);
  expect_sum<f16>({65504, 15.9921875f}, {0, 1}, 65504);
  expect_sum<f16>({65504, 16}, {0, 1}, INFINITY);  // 65520
  expect_sum<f16>({-65504, -16}, {0, 1}, -INFINITY);
  expect_sum<f16>({0x1p-24f, 0x1p-24f}, {0, 1}, 0x1p-23f);  // subnormals
  expect_sum<f16>({0x1p-14f, -0x1p-24f}, {0, 1}, 0x1p-14f - 0x1p-24f);
}

TEST(PermuteGrad, KeepsInfinityAndNan) {
  for_each_type([]<class T>(T) {
    expect_sum<T>({INFINITY, 1}, {0, 1}, INFINITY);
    expect_sum<T>({INFINITY, -INFINITY}, {0, 1}, NAN);
    expect_sum<T>({1, NAN, 2}, {0, 1, 2}, NAN);
    expect_sum<T>({1, NAN, 2}, {0, -1, 2}, 3);  // a skipped row is not multiplied by 0
    expect_sum<T>({NAN, INFINITY}, {2, -1}, 0);
  });
}

TEST(PermuteGrad, KeepsTheSignOfZeroInSlot0Only) {
  for_each_type([]<class T>(T) {
    expect_sum<T>({-0.0f, 5}, {0, -1}, -0.0f);
    expect_sum<T>({-0.0f, 5}, {-1, 0}, 0.0f);
    expect_sum<T>({-0.0f, -0.0f}, {0, 1}, -0.0f);
    expect_sum<T>({0.0f, -0.0f}, {0, 1}, 0.0f);
  });
}

// Case C13R: the row before the first is not read.
TEST(PermuteGrad, SkipsNegativeIndices) {
  expect_sum<float>({3}, {-1}, 0);
}

TEST(PermuteGrad, TakesARowAsOftenAsAsked) {
  expect_sum<float>({3, 5}, {0, 0}, 6);
}

// Case H14: whatever floating-point environment the calling thread has.
TEST(PermuteGrad, KeepsSubnormalsWhenTheCallerFlushesThem) {
#if defined(__SSE__)
  const Problem<float> problem(Call({1, 2, 33}));
  problem.grad.write(std::vector<float>(66, 1e-40f));
  problem.indices.write<int32_t>({0, 1});
  for_each_level([&](const char* level) {
    const PermuteGradPlan plan = problem.plan();
    for (const int threads : {1, 3}) {
      PermuteGradPlan mine = plan;
      mine.threads = threads;
      const unsigned before = __builtin_ia32_stmxcsr();
      __builtin_ia32_ldmxcsr(before | 0x8040u);  // flush to zero, denormals are zero
      const Status status = run_permute_grad(mine, nullptr);
      EXPECT_EQ(__builtin_ia32_stmxcsr() & 0x8040u, 0x8040u) << level;
      __builtin_ia32_ldmxcsr(before);
      ASSERT_TRUE(status.ok());
      for (const float got : floats(problem.token_grad)) ASSERT_EQ(got, 2 * 1e-40f) << level;
    }
  });
#endif
}

TEST(PermuteGrad, RoundsToNearestWhateverTheCallerRounds) {
  const Problem<float> problem(Call({1, 2, 33}));
  problem.grad.write(std::vector<float>(33, 1.0f));
  for (int64_t i = 33; i < 66; ++i) problem.grad.at<float>(i) = 0x1p-30f;
  problem.indices.write<int32_t>({0, 1});
  for_each_level([&](const char* level) {
    const PermuteGradPlan plan = problem.plan();
    std::fesetround(FE_UPWARD);
    const Status status = run_permute_grad(plan, nullptr);
    std::fesetround(FE_TONEAREST);
    ASSERT_TRUE(status.ok());
    for (const float got : floats(problem.token_grad)) ASSERT_EQ(got, 1.0f) << level;
  });
}

}  // namespace
}  // namespace npuless::moe_token_permute
