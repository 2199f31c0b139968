// Laws that hold whatever the numbers, and the examples and bug reports with known answers.
//
// Cases of bug reports that concern sorting and copying and are elsewhere: D8, D9, D10, D11, D14,
// E1, E2, E4, H6, L1, L2, L5 and the counts of C4, C5, C6, C7, C9, D2, D7 in test_index.cc; F1, F2,
// F3, F6, F8, G2, G3, G4, H4 in test_permute.cc; C15R, E4, A10R, B17R, B18R, M5R in
// test_permute_refusals.cc; A2, A8, A12, B12, B14R, C10, C17, H5, H7, I5, J3, J6, J9, J10, L3 and
// D38 in the tests of the routing map; G6R in every test, which compares the inputs.
// Not of these operators: A6, A13R, B1, B2, B6, B11, B13, B15R, C13R, D6R, E10, I1 to I4, I6R to
// I11 (unpermutes, and gradients, which have their own tests); B5, B7, B8 (aligned groups,
// exchanges between ranks); C11, C12, C16 (experts have no bound here); D15, J1, J2, J7, J8 (no
// aligned layout); E6, E8, F7 (no limit on experts per rank, no specialised topk, one kind of
// memory); H1 to H3, H8 to H16 (nothing is computed); K1 to K8 but K6 (communication); L4
// (probabilities have the tokens' type); M1 to M3R (contracts of others).
#include "moe_token_permute/test_permute_problem.h"
#include "moe_token_permute/test_refused.h"

namespace npuless::moe_token_permute {
namespace {

struct Outputs {
  std::vector<float> rows;
  std::vector<int32_t> indices;
  std::vector<float> probs;
};

// Token t is a row of 10·t, 10·t + 1, …; slot s has the probability s / 100.
Outputs run_known(PermuteCall call, const std::vector<int64_t>& ids) {
  call.dtype = DType::kFloat32;
  const PermuteProblem problem(call);
  for (int64_t t = 0; t < call.shape.tokens; ++t) {
    for (int64_t h = 0; h < call.shape.hidden; ++h) {
      problem.tokens.at<float>(t * call.shape.hidden + h) = static_cast<float>(10 * t + h);
    }
  }
  for (int64_t slot = 0; slot < call.slots(); ++slot) {
    problem.probs.at<float>(slot) = static_cast<float>(slot) / 100;
    problem.write_id(slot, ids[static_cast<size_t>(slot)]);
  }
  problem.poison_outputs();
  run(problem);
  return {problem.permuted.read<float>(), problem.sorted_indices.read<int32_t>(),
          problem.permuted_probs.read<float>()};
}

using Floats = std::vector<float>;
using Ints = std::vector<int32_t>;

TEST(Permute, GivesThePagesExamples) {
  PermuteCall call(Case{3, 2, 1});
  const Outputs first = run_known(call, {1, 2, 3, 1, 2, 3});
  EXPECT_EQ(first.indices, (Ints{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(first.rows, (Floats{0, 10, 0, 20, 10, 20}));
  const Outputs second = run_known(PermuteCall(Case{4, 2, 1}), {2, 0, 1, 2, 0, 1, 2, 2});
  EXPECT_EQ(second.indices, (Ints{4, 0, 2, 5, 1, 3, 6, 7}));
  EXPECT_EQ(second.rows, (Floats{0, 20, 10, 20, 0, 10, 30, 30}));
}

TEST(PermuteWithEp, GivesThePagesExample) {
  PermuteCall call(Case{3, 2, 1});
  call.range = Range{1, 5};
  call.probs = true;
  const Outputs outputs = run_known(call, {1, 2, 3, 1, 2, 3});
  EXPECT_EQ(outputs.indices, (Ints{0, 2, 4, 1, 3, 5}));
  EXPECT_EQ(outputs.rows, (Floats{10, 0, 20, 10}));
  EXPECT_EQ(outputs.probs, (Floats{0.03f, 0.01f, 0.04f, 0.02f}));
}

// Cases B17R and B18R: 0 is all, below −T is none; the indices are never cut.
TEST(Permute, KeepsTheRowsThatNumOutTokensSays) {
  const Floats all{0, 10, 0, 20, 10, 20};
  struct Kept {
    int64_t num_out_tokens;
    size_t rows;
  };
  for (const Kept& kept :
       {Kept{0, 6}, Kept{4, 4}, Kept{7, 6}, Kept{-1, 5}, Kept{-6, 0}, Kept{-7, 0}}) {
    PermuteCall call(Case{3, 2, 1});
    call.num_out_tokens = kept.num_out_tokens;
    const Outputs outputs = run_known(call, {1, 2, 3, 1, 2, 3});
    EXPECT_EQ(outputs.rows, Floats(all.begin(), all.begin() + static_cast<int64_t>(kept.rows)));
    EXPECT_EQ(outputs.indices, (Ints{0, 2, 4, 1, 3, 5}));
  }
}

// Cases C1, C2: −1 sorts first, so that a range can drop it; no other token takes its place.
TEST(Permute, SortsMissingExpertsFirst) {
  PermuteCall call(Case{8, 2, 1});
  std::vector<int64_t> ids;
  for (int64_t t = 0; t < 8; ++t) ids.insert(ids.end(), {t % 3, -1});
  const Outputs all = run_known(call, ids);
  for (int64_t t = 0; t < 8; ++t)
    EXPECT_EQ(all.rows[static_cast<size_t>(t)], static_cast<float>(10 * t));
  call.range = Range{8, 16};
  const Outputs chosen = run_known(call, ids);
  EXPECT_EQ(chosen.rows, (Floats{0, 30, 60, 10, 40, 70, 20, 50}));
}

// Case C9: an id beyond the experts there are is an id like any other.
TEST(Permute, SortsAnyIdWithoutWritingElsewhere) {
  const Outputs outputs = run_known(PermuteCall(Case{4, 1, 1}), {int64_t{1} << 30, 4, 0, -5});
  EXPECT_EQ(outputs.indices, (Ints{3, 2, 1, 0}));
  EXPECT_EQ(outputs.rows, (Floats{30, 20, 10, 0}));
}

// Cases D2, D3, D4: a token that names an expert twice has two rows.
TEST(Permute, GivesEachSlotItsRow) {
  const Outputs equal = run_known(PermuteCall(Case{64, 8, 1}), std::vector<int64_t>(512, 6));
  for (size_t row = 0; row < 512; ++row) {
    ASSERT_EQ(equal.rows[row], static_cast<float>(row / 8 * 10));
  }
  const Outputs pair = run_known(PermuteCall(Case{2, 3, 1}), {1, 0, 1, 0, 0, 1});
  EXPECT_EQ(pair.rows, (Floats{0, 10, 10, 0, 0, 10}));
}

// Case D7: four tokens of one expert are four rows.
TEST(Permute, KeepsAllTokensOfOneExpert) {
  EXPECT_EQ(run_known(PermuteCall(Case{4, 1, 1}), {0, 0, 0, 0}).rows, (Floats{0, 10, 20, 30}));
}

// Cases D9, E3, E7: any topk; experts 0 … K − 1 in reverse order.
TEST(Permute, TakesAnyTopk) {
  for (const int64_t topk : {1, 2, 3, 5, 6, 7, 9, 10, 129, 512}) {
    std::vector<int64_t> ids;
    for (int64_t slot = 0; slot < 3 * topk; ++slot) ids.push_back(topk - slot % topk);
    const Outputs outputs = run_known(PermuteCall(Case{3, topk, 1}), ids);
    for (int64_t slot = 0; slot < 3 * topk; ++slot) {
      const int64_t row = (topk - 1 - slot % topk) * 3 + slot / topk;
      ASSERT_EQ(outputs.indices[static_cast<size_t>(slot)], row) << "topk " << topk;
      ASSERT_EQ(outputs.rows[static_cast<size_t>(row)], static_cast<float>(slot / topk * 10));
    }
  }
}

// Cases D13 and K6: ranks that share the positions hold, one after the other, what one rank holds;
// each row keeps its own probability.
TEST(PermuteWithEp, RangesThatTileThePositionsGiveTheWhole) {
  const int64_t slots = 37 * 6;
  std::mt19937 random(5);
  std::vector<int64_t> ids;
  for (int64_t slot = 0; slot < slots; ++slot)
    ids.push_back(static_cast<int64_t>(random() % 11) - 2);
  const Outputs plain = run_known(PermuteCall(Case{37, 6, 4}), ids);
  PermuteCall call(Case{37, 6, 4});
  call.probs = true;
  call.range = Range{0, slots};
  const Outputs whole = run_known(call, ids);
  EXPECT_EQ(whole.rows, plain.rows);
  for (const int64_t ranks : {1, 2, 3, 8, 32}) {
    Outputs joined;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      call.range = Range{slots * rank / ranks, slots * (rank + 1) / ranks};
      const Outputs part = run_known(call, ids);
      EXPECT_EQ(part.indices, plain.indices);
      joined.rows.insert(joined.rows.end(), part.rows.begin(), part.rows.end());
      joined.probs.insert(joined.probs.end(), part.probs.begin(), part.probs.end());
    }
    EXPECT_EQ(joined.rows, whole.rows) << ranks << " ranks";
    EXPECT_EQ(joined.probs, whole.probs) << ranks << " ranks";
  }
}

// Null and empty: the other operator, and nothing given for probabilities is looked at.
TEST(PermuteWithEp, WithoutARangeIsPermute) {
  PermuteCall call(Case{11, 3, 33});
  call.num_out_tokens = -4;
  const PermuteProblem problem(call);
  const IntArray empty{std::vector<int64_t>{}};
  for (const aclIntArray* range : {static_cast<const aclIntArray*>(nullptr), empty.get()}) {
    for (const aclTensor* probs_out :
         {problem.permuted_probs.handle(), static_cast<aclTensor*>(nullptr)}) {
      Planned planned;
      problem.poison_outputs();
      ASSERT_EQ(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
                    problem.tokens.handle(), problem.indices.handle(), problem.probs.handle(),
                    range, -4, false, problem.permuted.handle(), problem.sorted_indices.handle(),
                    probs_out, &planned.workspace_size, &planned.executor),
                ACL_SUCCESS);
      ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithEp, planned), ACL_SUCCESS);
      problem.expect_model("without a range");
    }
  }
}

TEST(PermuteWithEp, WithoutProbabilitiesLeavesTheirOutputUntouched) {
  PermuteCall call(Case{11, 3, 33});
  call.range = Range{4, 20};
  call.extra_rows = 3;
  const PermuteProblem problem(call);
  problem.poison_outputs();
  run(problem);
  problem.expect_model("no probabilities");
}

double dot(const TestTensor& a, const TestTensor& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    sum += static_cast<double>(a.at<float>(i)) * static_cast<double>(b.at<float>(i));
  }
  return sum;
}

// <permute(x), g> = <x, gradient(g)>; small integers, so that every sum is exact.
TEST(Permute, IsTheAdjointOfItsGradient) {
  for (const Range& range : {Range{0, 164}, Range{31, 120}}) {
    PermuteCall call(Case{41, 4, 23});
    call.dtype = DType::kFloat32;
    call.range = range;
    const PermuteProblem forward(call);
    std::mt19937 random(4);
    const auto fill = [&](const TestTensor& tensor) {
      for (int64_t i = 0; i < tensor.count(); ++i) {
        tensor.at<float>(i) = static_cast<float>(static_cast<int>(random() % 201) - 100);
      }
    };
    fill(forward.tokens);
    run(forward);
    Call backward_call(call.shape);
    backward_call.range = range;
    const Problem<float> backward(backward_call);
    fill(backward.grad);
    backward.indices.write(forward.sorted_indices.read<int32_t>());
    run(backward);
    EXPECT_EQ(dot(forward.permuted, backward.grad), dot(forward.tokens, backward.token_grad));
  }
}

// The slope of objective() in each element of `input`, by a central difference of 1.
template <class Objective>
void expect_slopes(const Objective& objective, const TestTensor& input,
                   const TestTensor& gradient) {
  for (int64_t i = 0; i < input.count(); ++i) {
    input.at<float>(i) += 1;
    const double above = objective();
    input.at<float>(i) -= 2;
    const double below = objective();
    input.at<float>(i) += 1;
    EXPECT_EQ((above - below) / 2, static_cast<double>(gradient.at<float>(i))) << i;
  }
}

void write_cycle(const TestTensor& tensor, int64_t step) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    tensor.at<float>(i) = static_cast<float>(i * step % 17 - 8);
  }
}

// f(x, p) = <permute(x, p), (g, q)>. Exact: f is linear and all numbers are small integers.
void expect_central_differences(const std::optional<Range>& range) {
  PermuteCall call(Case{5, 3, 4});
  call.dtype = DType::kFloat32;
  call.range = range;
  call.probs = range.has_value();
  const PermuteProblem forward(call);
  Call backward_call(call.shape);
  backward_call.range = range;
  backward_call.probs = call.probs;
  const Problem<float> backward(backward_call);
  write_cycle(forward.tokens, 3);
  write_cycle(forward.probs, 5);
  write_cycle(backward.grad, 7);
  write_cycle(backward.probs_grad, 11);
  run(forward);
  backward.indices.write(forward.sorted_indices.read<int32_t>());
  run(backward);
  const auto objective = [&] {
    run(forward);
    const double rows = dot(forward.permuted, backward.grad);
    return call.probs ? rows + dot(forward.permuted_probs, backward.probs_grad) : rows;
  };
  expect_slopes(objective, forward.tokens, backward.token_grad);
  if (call.probs) expect_slopes(objective, forward.probs, backward.probs_out);
}

// Case I1.
TEST(PermuteGrad, EqualsCentralDifferences) {
  expect_central_differences({});
}

TEST(PermuteWithEpGrad, EqualsCentralDifferences) {
  expect_central_differences(Range{3, 11});
}

// Cases A1, A3, A4, A7 and A9: distances beyond 32 bits in tokens, ids and outputs. Memory is
// backed where it is touched.
TEST(Permute, SpansDistancesBeyond32Bits) {
  static constexpr int64_t kFar = (int64_t{1} << 31) + 11;
  PermuteCall call(Case{3, 2, 3});
  call.dtype = DType::kInt8;
  const TestTensor tokens(DType::kInt8, {3, 3}, {{kFar, 5}, 0});
  const TestTensor indices(DType::kInt64, {3, 2}, {{kFar / 2, kFar / 5}, 0});
  const TestTensor permuted(DType::kInt8, {6, 3}, {{kFar, 1}, 0});
  const TestTensor sorted(DType::kInt32, {6}, {{kFar / 4}, 0});
  tokens.write<int8_t>({1, 2, 3, 4, 5, 6, 7, 8, 9});
  indices.write<int64_t>({5, 1, 2, 5, 1, 0});
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteGetWorkspaceSize(tokens.handle(), indices.handle(), 0, false,
                                                 permuted.handle(), sorted.handle(),
                                                 &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermute, planned), ACL_SUCCESS);
  EXPECT_EQ(sorted.read<int32_t>(), (Ints{4, 1, 3, 5, 2, 0}));
  EXPECT_EQ(permuted.read<int8_t>(),
            (std::vector<int8_t>{7, 8, 9, 1, 2, 3, 7, 8, 9, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
}

// Case A1 at its own size: the last of 262145 tokens of 8192 columns.
TEST(PermuteWithEp, ReadsTheLastOfManyTokens) {
  constexpr int64_t kTokens = 262145;
  constexpr int64_t kHidden = 8192;
  const TestTensor tokens(DType::kBfloat16, {kTokens, kHidden});
  const TestTensor indices(DType::kInt32, {kTokens}, {{0}, 0});
  const TestTensor permuted(DType::kBfloat16, {1, kHidden});
  const TestTensor sorted(DType::kInt32, {kTokens});
  const TestTensor probs_out(DType::kBfloat16, {1});
  indices.at<int32_t>(0) = 0;
  for (int64_t h = 0; h < kHidden; ++h) {
    tokens.at<uint16_t>((kTokens - 1) * kHidden + h) = static_cast<uint16_t>(h + 1);
  }
  const IntArray range{std::vector<int64_t>{kTokens - 1, kTokens}};
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(tokens.handle(), indices.handle(), nullptr,
                                                       range.get(), 0, false, permuted.handle(),
                                                       sorted.handle(), probs_out.handle(),
                                                       &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithEp, planned), ACL_SUCCESS);
  for (int64_t h = 0; h < kHidden; ++h) {
    ASSERT_EQ(permuted.at<uint16_t>(h), static_cast<uint16_t>(h + 1));
  }
}

// Cases B3, B9: nothing in, nothing out, no access.
TEST(Permute, OfNoTokensSucceeds) {
  const PermuteProblem none(PermuteCall(Case{0, 2, 16}));
  none.poison_outputs();
  run(none);
  none.expect_model("no tokens");
  const PermuteProblem narrow(PermuteCall(Case{5, 2, 0}));
  narrow.poison_outputs();
  run(narrow);
  narrow.expect_model("hidden 0");
}

// What has no elements needs no memory; the indices are written all the same.
TEST(Permute, OfEmptyTensorsNeedsNoAddress) {
  const Handle tokens = make({DType::kBfloat16, {3, 0}});
  const Handle permuted = make({DType::kBfloat16, {6, 0}});
  const TestTensor indices(DType::kInt32, {3, 2});
  const TestTensor sorted(DType::kInt32, {6});
  indices.write<int32_t>({1, 0, 1, 0, 1, 0});
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteGetWorkspaceSize(tokens.get(), indices.handle(), 0, false,
                                                 permuted.get(), sorted.handle(),
                                                 &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermute, planned), ACL_SUCCESS);
  EXPECT_EQ(sorted.read<int32_t>(), (Ints{3, 0, 4, 1, 5, 2}));
}

// Rows beyond the range that have no columns are not walked: there are more than anyone could.
TEST(PermuteWithEp, LeavesRowsWithoutColumnsAlone) {
  const Handle tokens = make({DType::kBfloat16, {3, 0}});
  const Handle permuted = make({DType::kBfloat16, {int64_t{1} << 62, 0}});
  const TestTensor indices(DType::kInt32, {3, 1});
  const TestTensor sorted(DType::kInt32, {3});
  const TestTensor probs(DType::kBfloat16, {2});
  indices.write<int32_t>({1, 0, 1});
  const IntArray range(std::vector<int64_t>{0, 2});
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
                tokens.get(), indices.handle(), nullptr, range.get(), 0, false, permuted.get(),
                sorted.handle(), probs.handle(), &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(launch_and_wait(&aclnnMoeTokenPermuteWithEp, planned), ACL_SUCCESS);
  EXPECT_EQ(sorted.read<int32_t>(), (Ints{1, 0, 2}));
}

}  // namespace
}  // namespace npuless::moe_token_permute
