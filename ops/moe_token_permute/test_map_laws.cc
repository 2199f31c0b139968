// Laws of the permute with a routing map and its gradient, and the examples and bug reports with
// known answers. Cases C17, D8, D9, D10, D14, E1, G3, G4, H4, H5, J9 and L3 are in test_map.cc;
// test_permute_laws.cc lists those that concern neither.
#include "moe_token_permute/test_map_problem.h"
#include "moe_token_permute/test_refused.h"

namespace npuless::moe_token_permute {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

MapCall float_call(int64_t tokens, int64_t experts, int64_t hidden, int64_t rows, bool padded) {
  MapCall call{tokens, experts, hidden, rows, padded};
  call.dtype = call.probs_dtype = DType::kFloat32;
  return call;
}

// Token t is a row of t, probability (t, e) is 100 t + e.
void write_known(const MapProblem& problem, const std::vector<bool>& chosen) {
  const MapCall& call = problem.call();
  std::mt19937 random(1);
  write_map(problem.map, chosen, random);
  for (int64_t i = 0; i < problem.tokens.count(); ++i) {
    problem.tokens.at<float>(i) = static_cast<float>(i / call.hidden);
  }
  for (int64_t i = 0; i < problem.probs.count(); ++i) {
    problem.probs.at<float>(i) = static_cast<float>(100 * (i / call.experts) + i % call.experts);
  }
  problem.poison_outputs();
  run(problem);
}

const std::vector<bool> kExample{true,  false, true,  false,  // token 0: experts 0 and 2
                                 false, true,  true,  false,  // token 1: experts 1 and 2
                                 true,  false, false, true};  // token 2: experts 0 and 3

TEST(PermuteWithRoutingMap, GivesThePagesExamples) {
  const MapProblem indexed(float_call(3, 4, 1, 6, false));
  write_known(indexed, kExample);
  EXPECT_EQ(indexed.sorted_indices.read<int32_t>(), (Ints{0, 3, 2, 4, 1, 5}));
  EXPECT_EQ(indexed.permuted.read<float>(), (Floats{0, 2, 1, 0, 1, 2}));
  EXPECT_EQ(indexed.permuted_probs.read<float>(), (Floats{0, 200, 101, 2, 102, 203}));
  const MapProblem padded(float_call(3, 4, 1, 8, true));
  write_known(padded, kExample);
  EXPECT_EQ(padded.sorted_indices.read<int32_t>(), (Ints{0, 2, 1, 0, 0, 1, 2, 0}));
  EXPECT_EQ(padded.permuted.read<float>(), (Floats{0, 2, 1, 0, 0, 1, 2, 0}));
  EXPECT_EQ(padded.permuted_probs.read<float>(), (Floats{0, 200, 101, 1, 2, 102, 203, 3}));
}

// Case C10: more tokens chosen than there are rows. Those beyond are dropped.
TEST(PermuteWithRoutingMap, DropsRowsBeyondTheOutput) {
  const MapProblem problem(float_call(16, 4, 2, 16, false));
  write_known(problem, std::vector<bool>(64, true));
  Ints first(16);
  std::iota(first.begin(), first.end(), 0);
  EXPECT_EQ(problem.sorted_indices.read<int32_t>(), first);
  for (int64_t row = 0; row < 16; ++row) {
    EXPECT_EQ(problem.permuted.at<float>(2 * row), static_cast<float>(row));
    EXPECT_EQ(problem.permuted_probs.at<float>(row), static_cast<float>(100 * row));
  }
}

// Cases J3, J6, J10: fewer than there are rows. The rest is −1 and zeros.
TEST(PermuteWithRoutingMap, FillsWhatNoTokenChose) {
  const MapProblem problem(float_call(3, 2, 1, 6, false));
  write_known(problem, {false, true, false, false, true, true});
  EXPECT_EQ(problem.sorted_indices.read<int32_t>(), (Ints{1, -1, -1, -1, 0, 2}));
  EXPECT_EQ(problem.permuted.read<float>(), (Floats{2, 0, 2, 0, 0, 0}));
  EXPECT_EQ(problem.permuted_probs.read<float>(), (Floats{200, 1, 201, 0, 0, 0}));
}

// A token that chose more than topk: all its rows, topk of their indices, all its probabilities'
// gradients.
TEST(PermuteWithRoutingMap, KeepsTheFirstIndicesOfATokenThatChoseMore) {
  const MapProblem problem(float_call(3, 3, 1, 6, false));
  write_known(problem, {true, true, true, false, false, true, false, false, false});
  EXPECT_EQ(problem.sorted_indices.read<int32_t>(), (Ints{0, 1, 3, -1, -1, -1}));
  EXPECT_EQ(problem.permuted.read<float>(), (Floats{0, 0, 0, 1, 0, 0}));
}

// Case A8 and A12: a map of more than 2^31 bytes. Memory is backed where it is written.
TEST(PermuteWithRoutingMap, TakesMapsBeyond32Bits) {
  constexpr int64_t kTokens = 8388609;
  constexpr int64_t kExperts = 256;
  const TestTensor tokens(DType::kBfloat16, {kTokens, 1}, {{0, 1}, 0});
  const TestTensor map(DType::kBool, {kTokens, kExperts});
  const TestTensor probs(DType::kBfloat16, {kTokens, kExperts});
  const TestTensor permuted(DType::kBfloat16, {kTokens, 1});
  const TestTensor permuted_probs(DType::kBfloat16, {kTokens});
  const TestTensor indices(DType::kInt32, {kTokens});
  tokens.at<uint16_t>(0) = 0x4000;
  const int64_t last = kTokens * kExperts - 1;
  map.at<unsigned char>(0) = map.at<unsigned char>(last) = 1;
  probs.at<uint16_t>(0) = 17;
  probs.at<uint16_t>(last) = 23;
  Planned planned;
  ASSERT_EQ(
      aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
          tokens.handle(), map.handle(), probs.handle(), kTokens, false, permuted.handle(),
          permuted_probs.handle(), indices.handle(), &planned.workspace_size, &planned.executor),
      ACL_SUCCESS);
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMap, planned), ACL_SUCCESS);
  EXPECT_EQ(indices.at<int32_t>(0), 0);
  EXPECT_EQ(indices.at<int32_t>(1), -1);
  EXPECT_EQ(indices.at<int32_t>(kTokens - 1), 1);
  EXPECT_EQ(permuted_probs.at<uint16_t>(0), 17);
  EXPECT_EQ(permuted_probs.at<uint16_t>(1), 23);
  EXPECT_EQ(permuted_probs.at<uint16_t>(2), 0);
  EXPECT_EQ(permuted.at<uint16_t>(1), 0x4000);
  EXPECT_EQ(permuted.at<uint16_t>(kTokens - 1), 0);
}

// Case A2: a row number times the hidden size leaves 32 bits.
TEST(PermuteWithRoutingMapGrad, SpansDistancesBeyond32Bits) {
  constexpr int64_t kFar = (int64_t{1} << 31) + 11;
  const TestTensor grad(DType::kFloat16, {4, 2}, {{kFar, 1}, 0});
  const TestTensor probs(DType::kFloat16, {4});
  const TestTensor indices(DType::kInt32, {4}, {{kFar / 2}, 0});
  const TestTensor map(DType::kBool, {2, 2}, {{kFar, 5}, 0});
  const TestTensor out(DType::kFloat16, {2, 2}, {{kFar / 3, 1}, 2});
  const TestTensor probs_out(DType::kFloat16, {2, 2}, {{kFar, kFar / 2}, 0});
  std::vector<f16> rows;
  for (int i = 1; i <= 8; ++i) rows.push_back(narrow<f16>(static_cast<float>(i)));
  for (const bool padded : {false, true}) {
    grad.write(rows);
    probs.write<uint16_t>({10, 20, 30, 40});
    indices.write<int32_t>(padded ? Ints{0, 1, 1, 0} : Ints{0, 2, 1, 3});
    map.write<unsigned char>({1, 1, 1, 1});
    Planned planned;
    ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
                  grad.handle(), probs.handle(), indices.handle(), map.handle(), 2, 2, padded,
                  out.handle(), probs_out.handle(), &planned.workspace_size, &planned.executor),
              ACL_SUCCESS);
    ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMapGrad, planned), ACL_SUCCESS);
    std::vector<float> sums;
    for (const f16 x : out.read<f16>()) sums.push_back(widen(x));
    EXPECT_EQ(sums, padded ? (Floats{8, 10, 8, 10}) : (Floats{6, 8, 10, 12}));
    EXPECT_EQ(probs_out.read<uint16_t>(), padded ? (std::vector<uint16_t>{10, 40, 20, 30})
                                                 : (std::vector<uint16_t>{10, 30, 20, 40}));
  }
}

// Cases B14R and I5 (D28): without rows the gradients are zeros, not what was there before.
TEST(PermuteWithRoutingMapGrad, OfNoRowsIsZero) {
  for (const bool padded : {false, true}) {
    for (const int64_t hidden : {0, 8}) {
      MapCall call{4, 3, hidden, 0, padded};
      call.choice = Choice::kAny;
      expect_map_model(MapGradProblem<bf16>(call), describe(call));
    }
  }
}

// Case B12 and its like: nothing in, nothing out, no access.
TEST(PermuteWithRoutingMap, OfNothingSucceeds) {
  for (const bool padded : {false, true}) {
    for (const MapCall& call :
         {MapCall{0, 4, 8, 0, padded}, MapCall{4, 0, 8, 0, padded}, MapCall{4, 4, 0, 8, padded},
          MapCall{0, 0, 0, 0, padded}, MapCall{4, 4, 8, 3, padded}}) {
      expect_map_model(MapProblem(call), describe(call));
    }
  }
}

// <permute(x, p), (g, q)> = <(x, p), gradient(g, q)>; small integers, so that every sum is exact.
TEST(PermuteWithRoutingMap, IsTheAdjointOfItsGradient) {
  for (const bool padded : {false, true}) {
    for (const Choice choice : {Choice::kExact, Choice::kFewer}) {
      MapCall call = float_call(37, 6, 11, padded ? 66 : 74, padded);
      call.choice = choice;
      const MapProblem forward(call);
      const MapGradProblem<float> backward(call);
      std::mt19937 random(4);
      for (const TestTensor* t :
           {&forward.tokens, &forward.probs, &backward.grad, &backward.probs_grad}) {
        for (int64_t i = 0; i < t->count(); ++i) {
          t->at<float>(i) = static_cast<float>(static_cast<int>(random() % 201) - 100);
        }
      }
      run(forward);
      backward.indices.write(forward.sorted_indices.read<int32_t>());
      run(backward);
      const auto dot = [](const TestTensor& a, const TestTensor& b) {
        double sum = 0;
        for (int64_t i = 0; i < a.count(); ++i) {
          sum += static_cast<double>(a.at<float>(i)) * static_cast<double>(b.at<float>(i));
        }
        return sum;
      };
      EXPECT_EQ(dot(forward.permuted, backward.grad), dot(forward.tokens, backward.token_grad));
      EXPECT_EQ(dot(forward.permuted_probs, backward.probs_grad),
                dot(forward.probs, backward.probs_out));
    }
  }
}

// f(x, p) = <permute(x, p), (g, q)> by central differences of 1 in each input: exact, since f is
// linear and all numbers are small integers.
TEST(PermuteWithRoutingMapGrad, EqualsCentralDifferences) {
  for (const bool padded : {false, true}) {
    MapCall call = float_call(4, 3, 2, padded ? 9 : 8, padded);
    call.choice = Choice::kFewer;
    const MapProblem forward(call);
    const MapGradProblem<float> backward(call);
    const auto fill = [](const TestTensor& t, int step) {
      for (int64_t i = 0; i < t.count(); ++i) {
        t.at<float>(i) = static_cast<float>(static_cast<int>(i) * step % 17 - 8);
      }
    };
    fill(forward.tokens, 3);
    fill(forward.probs, 5);
    fill(backward.grad, 7);
    fill(backward.probs_grad, 11);
    run(backward);
    const auto objective = [&] {
      run(forward);
      double sum = 0;
      for (int64_t i = 0; i < forward.permuted.count(); ++i) {
        sum += static_cast<double>(forward.permuted.at<float>(i) * backward.grad.at<float>(i));
      }
      for (int64_t i = 0; i < forward.permuted_probs.count(); ++i) {
        sum += static_cast<double>(forward.permuted_probs.at<float>(i) *
                                   backward.probs_grad.at<float>(i));
      }
      return sum;
    };
    const auto expect_slope = [&](const TestTensor& input, const TestTensor& gradient) {
      for (int64_t i = 0; i < input.count(); ++i) {
        input.at<float>(i) += 1;
        const double above = objective();
        input.at<float>(i) -= 2;
        const double below = objective();
        input.at<float>(i) += 1;
        EXPECT_EQ((above - below) / 2, static_cast<double>(gradient.at<float>(i)));
      }
    };
    expect_slope(forward.tokens, backward.token_grad);
    expect_slope(forward.probs, backward.probs_out);
  }
}

// Case H7: one token in four experts, values that bf16 sums step by step would lose.
TEST(PermuteWithRoutingMapGrad, SumsInFp32) {
  MapCall call{1, 8, 1, 8, true};
  call.choice = Choice::kAll;
  call.probs = false;
  const MapGradProblem<bf16> problem(call);
  std::vector<bf16> rows(8, narrow<bf16>(0x1p-9f));
  rows[0] = narrow<bf16>(1.0f);
  problem.grad.write(rows);
  run(problem);
  EXPECT_EQ(widen(problem.token_grad.at<bf16>(0)), 1.015625f);
}

// What has no elements needs no memory: rows of no columns, a map of no experts, no rows.
TEST(PermuteWithRoutingMapGrad, OfEmptyTensorsNeedsNoAddress) {
  const Handle grad = make({DType::kBfloat16, {0, 0}});
  const Handle probs = make({DType::kBfloat16, {0}});
  const Handle indices = make({DType::kInt32, {0}});
  const Handle token_grad = make({DType::kBfloat16, {4, 0}});
  const TestTensor map(DType::kBool, {4, 3});
  const TestTensor probs_out(DType::kBfloat16, {4, 3});
  for (const bool padded : {false, true}) {
    probs_out.poison();
    Planned planned;
    ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
                  grad.get(), probs.get(), indices.get(), map.handle(), 3, 4, padded,
                  token_grad.get(), probs_out.handle(), &planned.workspace_size, &planned.executor),
              ACL_SUCCESS);
    ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMapGrad, planned), ACL_SUCCESS);
    EXPECT_EQ(probs_out.read<uint16_t>(), std::vector<uint16_t>(12, 0));
  }
}

TEST(PermuteWithRoutingMap, OfEmptyTensorsNeedsNoAddress) {
  for (const bool padded : {false, true}) {
    const Handle tokens = make({DType::kBfloat16, {4, 0}});
    const Handle map = make({DType::kBool, {4, 0}});
    const Handle permuted = make({DType::kBfloat16, {0, 0}});
    const Handle indices = make({DType::kInt32, {0}});
    Planned planned;
    ASSERT_EQ(aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
                  tokens.get(), map.get(), nullptr, 0, padded, permuted.get(), nullptr,
                  indices.get(), &planned.workspace_size, &planned.executor),
              ACL_SUCCESS);
    EXPECT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithRoutingMap, planned), ACL_SUCCESS);
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
