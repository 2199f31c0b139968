// Laws of the unpermutes that hold whatever the numbers.
#include "aclnnop/aclnn_moe_token_permute.h"
#include "moe_token_permute/test_refused.h"
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {
namespace {

using Floats = std::vector<float>;

// Small integers, of which every sum of products is exact in fp32.
Floats small_integers(int64_t count, std::mt19937& random) {
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 33) - 16);
  return values;
}

std::vector<int32_t> some_order(int64_t slots, std::mt19937& random) {
  std::vector<int32_t> indices(static_cast<size_t>(slots));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  std::shuffle(indices.begin(), indices.end(), random);
  return indices;
}

void write_integers(const UnpermuteProblem<float, float>& problem, std::mt19937& random) {
  problem.permuted.write(small_integers(problem.permuted.count(), random));
  problem.grad.write(small_integers(problem.grad.count(), random));
  problem.probs.write(small_integers(problem.probs.count(), random));
  problem.indices.write(some_order(problem.call().slots(), random));
}

Floats read(const TestTensor& tensor) {
  return tensor.read<float>();
}

// The other way round: each token gets its row back as often as its probabilities say.
TEST(Unpermute, OfPermutedTokensIsTheProbabilitiesSumTimesTheTokens) {
  const Case shape{41, 6, 23};
  std::mt19937 random(5);
  const UnpermuteProblem<float, float> problem{UnpermuteCall(shape)};
  write_integers(problem, random);
  const TestTensor tokens(DType::kFloat32, {shape.tokens, shape.hidden});
  const TestTensor experts(DType::kInt32, {shape.tokens, shape.topk});
  tokens.write(small_integers(tokens.count(), random));
  for (int64_t i = 0; i < experts.count(); ++i) {
    experts.at<int32_t>(i) = static_cast<int32_t>(random() % 7);
  }
  Planned planned;
  launch(aclnnMoeTokenPermuteGetWorkspaceSize(tokens.handle(), experts.handle(), 0, false,
                                              problem.permuted.handle(), problem.indices.handle(),
                                              &planned.workspace_size, &planned.executor),
         planned, &aclnnMoeTokenPermute);
  problem.run();
  for (int64_t t = 0; t < shape.tokens; ++t) {
    float weight = 0;
    for (int64_t j = 0; j < shape.topk; ++j) {
      weight += problem.probs.at<float>(t * shape.topk + j);
    }
    for (int64_t h = 0; h < shape.hidden; ++h) {
      ASSERT_EQ(problem.out.at<float>(t * shape.hidden + h),
                weight * tokens.at<float>(t * shape.hidden + h));
    }
  }
}

struct Outputs {
  Floats out;
  Floats permuted_grad;
  Floats probs_grad;
};

// One rank, of which `whole` holds all positions.
Outputs run_rank(const UnpermuteProblem<float, float>& whole, Range range) {
  UnpermuteCall call(whole.call().shape);
  call.expert_parallel = true;
  call.range = range;
  const UnpermuteProblem<float, float> problem(call);
  const Floats rows = read(whole.permuted);
  const auto first = rows.begin() + range.begin * call.shape.hidden;
  problem.permuted.write(Floats(first, first + problem.permuted.count()));
  problem.grad.write(read(whole.grad));
  problem.probs.write(read(whole.probs));
  problem.indices.write(whole.indices.read<int32_t>());
  problem.run();
  problem.run_grad();
  return {read(problem.out), read(problem.permuted_grad), read(problem.probs_grad)};
}

void add(const Floats& from, Floats& to) {
  to.resize(from.size());
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// Sums of outputs and probabilities' gradients, and permuted gradients one after another.
TEST(UnpermuteWithEp, RanksThatShareThePositionsMakeTheWhole) {
  const UnpermuteProblem<float, float> whole{UnpermuteCall(Case{37, 6, 19})};
  std::mt19937 random(3);
  write_integers(whole, random);
  whole.run();
  whole.run_grad();
  Outputs sum;
  int64_t begin = 0;
  for (const int64_t end : {int64_t{1}, int64_t{1}, int64_t{90}, int64_t{200}, int64_t{222}}) {
    const Outputs part = run_rank(whole, {begin, end});
    add(part.out, sum.out);
    add(part.probs_grad, sum.probs_grad);
    sum.permuted_grad.insert(sum.permuted_grad.end(), part.permuted_grad.begin(),
                             part.permuted_grad.end());
    begin = end;
  }
  EXPECT_EQ(sum.out, read(whole.out));
  EXPECT_EQ(sum.probs_grad, read(whole.probs_grad));
  EXPECT_EQ(sum.permuted_grad, read(whole.permuted_grad));
}

double dot(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return sum;
}

// <unpermute(x), g> = <x, gradient of x> = <p, gradient of p>
TEST(UnpermuteGrad, IsTheAdjointOfUnpermute) {
  const UnpermuteProblem<float, float> problem{UnpermuteCall(Case{41, 4, 23})};
  std::mt19937 random(4);
  write_integers(problem, random);
  problem.run();
  problem.run_grad();
  const double loss = dot(read(problem.out), read(problem.grad));
  EXPECT_EQ(dot(read(problem.permuted), read(problem.permuted_grad)), loss);
  EXPECT_EQ(dot(read(problem.probs), read(problem.probs_grad)), loss);
}

// Null and empty ranges.
TEST(UnpermuteWithEp, WithoutARangeIsUnpermute) {
  for_each_pair_of_types([]<class T, class P>(T, P) {
    UnpermuteCall call(Case{11, 3, 33});
    const UnpermuteProblem<T, P> base(call);
    call.expert_parallel = true;
    const UnpermuteProblem<T, P> ep(call);
    base.run();
    base.run_grad();
    ep.run();
    ep.run_grad();
    EXPECT_EQ(ep.out.bytes(), base.out.bytes());
    EXPECT_EQ(ep.permuted_grad.bytes(), base.permuted_grad.bytes());
    EXPECT_EQ(ep.probs_grad.bytes(), base.probs_grad.bytes());
  });
}

TEST(UnpermuteWithEp, TakesAnEmptyRangeForNone) {
  UnpermuteCall call(Case{11, 3, 33});
  call.expert_parallel = true;
  const UnpermuteProblem<float, float> problem(call);
  const aclIntArray* empty = aclCreateIntArray(nullptr, 0);
  Planned planned;
  launch(aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
             problem.permuted.handle(), problem.indices.handle(), problem.probs.handle(), 3, empty,
             false, empty, problem.out.handle(), &planned.workspace_size, &planned.executor),
         planned, &aclnnMoeTokenUnpermuteWithEp);
  problem.expect_model("empty range");
  Planned grad;
  launch(aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
             problem.grad.handle(), problem.indices.handle(), problem.permuted.handle(),
             problem.probs.handle(), false, empty, empty, 3, problem.permuted_grad.handle(),
             problem.probs_grad.handle(), &grad.workspace_size, &grad.executor),
         grad, &aclnnMoeTokenUnpermuteWithEpGrad);
  problem.expect_grad_model("empty range");
  aclDestroyIntArray(empty);
}

// The shape comes from N, not from the rows that there are none of.
TEST(UnpermuteWithEp, ARankWithoutRowsGivesZeros_B1_B2_B6) {
  for (const bool probs : {true, false}) {
    for (const int64_t position : {0, 4, 8}) {
      for_each_type([&]<class T>(T) {
        UnpermuteCall call(Case{4, 2, 33});
        call.expert_parallel = true;
        call.range = Range{position, position};
        call.probs = probs;
        const UnpermuteProblem<T, float> problem(call);
        problem.run();
        problem.run_grad();
        const std::vector<T> zeros(4 * 33, T{});
        EXPECT_TRUE(matches(problem.out, zeros, false));
        const Floats no_grads(probs ? 8 : 0, 0.0f);
        EXPECT_TRUE(matches(problem.probs_grad, no_grads, false));
      });
    }
  }
}

// The pages of these operators do not exclude empty tensors.
TEST(Unpermute, TakesEmptyTensors_B13_B15R) {
  for (const Case& shape : {Case{0, 3, 5}, Case{4, 3, 0}, Case{0, 1, 0}}) {
    for (const bool expert_parallel : {false, true}) {
      UnpermuteCall call(shape);
      call.expert_parallel = expert_parallel;
      const UnpermuteProblem<bf16, float> problem(call);
      problem.run();
      problem.run_grad();
      problem.expect_model("empty");
      problem.expect_grad_model("empty");
    }
  }
}

TEST(Unpermute, WithoutRowsIsZero) {
  UnpermuteCall call(Case{3, 2, 5});
  call.dropped_rows = 6;
  const UnpermuteProblem<float, bf16> problem(call);
  problem.run();
  problem.run_grad();
  problem.expect_model("no rows");
  problem.expect_grad_model("no rows");
  EXPECT_EQ(problem.permuted_grad.count(), 0);
}

// Rows beyond the range that have no columns are not walked: there are more than anyone could.
TEST(UnpermuteWithEpGrad, LeavesRowsWithoutColumnsAlone) {
  const Handle grad = make({DType::kFloat32, {3, 0}});
  const Handle permuted = make({DType::kFloat32, {2, 0}});
  const Handle permuted_grad = make({DType::kFloat32, {int64_t{1} << 62, 0}});
  const TestTensor indices(DType::kInt32, {3});
  const TestTensor probs(DType::kFloat32, {3, 1});
  const TestTensor probs_grad(DType::kFloat32, {3, 1});
  indices.write<int32_t>({1, 0, 2});
  probs.write<float>({1, 1, 1});
  const IntArray range(std::vector<int64_t>{0, 2});
  Planned planned;
  launch(
      aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
          grad.get(), indices.handle(), permuted.get(), probs.handle(), false, nullptr, range.get(),
          1, permuted_grad.get(), probs_grad.handle(), &planned.workspace_size, &planned.executor),
      planned, &aclnnMoeTokenUnpermuteWithEpGrad);
  EXPECT_EQ(probs_grad.read<float>(), (std::vector<float>{0, 0, 0}));
}

// --- gradients against central differences of the formula in double ------------------------------

// Numbers that leave rounding something to do and overflow nowhere.
template <class T>
void write_ordinary(const TestTensor& tensor, std::mt19937& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    tensor.at<T>(i) = narrow<T>(std::ldexp(static_cast<float>(random() % 8191) - 4095.0f,
                                           static_cast<int>(random() % 6) - 14));
  }
}

template <class T>
std::vector<double> doubles(const TestTensor& tensor) {
  std::vector<double> out;
  for (const T value : tensor.read<T>()) out.push_back(static_cast<double>(widen(value)));
  return out;
}

std::vector<double> magnitudes(std::vector<double> values) {
  for (double& value : values) value = std::abs(value);
  return values;
}

template <class T, class P>
RefUnpermute reference(const UnpermuteProblem<T, P>& problem) {
  std::vector<double> weights(static_cast<size_t>(problem.call().slots()), 1.0);
  if (problem.call().probs) weights = doubles<P>(problem.probs);
  return {problem.ref_shape(), problem.indices.template read<int32_t>(),
          doubles<T>(problem.permuted), weights};
}

template <class T>
void expect_within(double got, double want, double magnitude, int64_t operations) {
  ASSERT_LE(std::abs(got - want), rounding_bound<T>(want, magnitude, operations))
      << got << ", not " << want;
}

// `magnitude`: the same reference with the magnitudes of all numbers, which bounds partial sums.
template <class T, class P>
void expect_forward(const UnpermuteProblem<T, P>& problem) {
  RefUnpermute ref = reference(problem);
  const std::vector<double> want = ref.out();
  ref.rows = magnitudes(ref.rows);
  ref.probs = magnitudes(ref.probs);
  const std::vector<double> magnitude = ref.out();
  const std::vector<double> got = doubles<T>(problem.out);
  for (size_t i = 0; i < got.size(); ++i) {
    expect_within<T>(got[i], want[i], magnitude[i], 2 * problem.call().shape.topk);
  }
}

// The central difference itself errs by roundings in double of numbers of the size of the loss,
// far below those of fp32 that are allowed for.
template <class T, class P>
void expect_gradients(const UnpermuteProblem<T, P>& problem) {
  RefUnpermute ref = reference(problem);
  RefUnpermute sizes = ref;
  sizes.rows = magnitudes(sizes.rows);
  sizes.probs = magnitudes(sizes.probs);
  const std::vector<double> grad = doubles<T>(problem.grad);
  const std::vector<double> grad_size = magnitudes(grad);
  const std::vector<double> row_grads = doubles<T>(problem.permuted_grad);
  for (size_t i = 0; i < row_grads.size(); ++i) {
    const double want = central_difference(ref, ref.rows[i], grad);
    const double size = central_difference(sizes, sizes.rows[i], grad_size);
    expect_within<T>(row_grads[i], want, size, 1);
  }
  if (!problem.call().probs) return;
  const std::vector<double> prob_grads = doubles<P>(problem.probs_grad);
  for (size_t i = 0; i < prob_grads.size(); ++i) {
    const double want = central_difference(ref, ref.probs[i], grad);
    const double size = central_difference(sizes, sizes.probs[i], grad_size);
    expect_within<P>(prob_grads[i], want, size, problem.call().shape.hidden + 4);
  }
}

template <class T, class P>
void expect_reference(const UnpermuteCall& call) {
  SCOPED_TRACE(describe(call));
  const UnpermuteProblem<T, P> problem(call);
  std::mt19937 random(8);
  write_ordinary<T>(problem.permuted, random);
  write_ordinary<T>(problem.grad, random);
  write_ordinary<P>(problem.probs, random);
  problem.indices.write(some_order(call.slots(), random));
  problem.run();
  problem.run_grad();
  expect_forward(problem);
  expect_gradients(problem);
}

TEST(Unpermute, FollowsItsFormulaAndItsGradientsTheDifferences_I1_I3_I8) {
  for_each_level([](const char* level) {
    SCOPED_TRACE(level);
    for_each_pair_of_types([]<class T, class P>(T, P) {
      UnpermuteCall call({5, 3, 21});
      expect_reference<T, P>(call);
      call.dropped_rows = 4;
      expect_reference<T, P>(call);
      call.expert_parallel = true;
      call.dropped_rows = 0;
      call.range = Range{3, 11};
      expect_reference<T, P>(call);
      call.probs = false;
      expect_reference<T, P>(call);
    });
  });
}

TEST(Unpermute, FollowsItsFormulaForManyTokens_I3) {
  const UnpermuteProblem<bf16, float> problem(UnpermuteCall({512, 4, 65}));
  std::mt19937 random(9);
  write_ordinary<bf16>(problem.permuted, random);
  write_ordinary<float>(problem.probs, random);
  problem.indices.write(some_order(2048, random));
  problem.run();
  expect_forward(problem);
}

}  // namespace
}  // namespace npuless::moe_token_permute
