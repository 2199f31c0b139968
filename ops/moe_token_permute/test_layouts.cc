// Strides, offsets and distances beyond 32 bits: cases G3, G4, A3, A7, A9, A13R.
#include "moe_token_permute/test_layout.h"
#include "moe_token_permute/test_session.h"

namespace npuless::moe_token_permute {
namespace {

constexpr Case kShapes[] = {{5, 3, 65}, {7, 8, 16}, {1, 2, 1}, {3, 1, 33}};

template <class T>
void expect_model_on_every_level(const Call& call, const std::string& what) {
  const Problem<T> problem(call);
  for_each_level([&](const char* level) {
    for (const int threads : {1, 3}) {
      ASSERT_TRUE(set_num_threads(threads).ok());
      problem.poison_outputs();
      run(problem);
      problem.expect_model(what + ", " + level);
    }
  });
}

TEST(PermuteWithEpGrad, HonoursEveryLayout) {
  for (const Case& shape : kShapes) {
    const int64_t slots = shape.tokens * shape.topk;
    for (size_t in = 0; in < std::size(kInputLayouts); ++in) {
      for (size_t out = 0; out < std::size(kOutputLayouts); ++out) {
        Call call(shape);
        call.range = Range{slots / 4, slots};
        call.probs = true;
        call.inputs = kInputLayouts[in];
        call.outputs = kOutputLayouts[out];
        const std::string what =
            "input layout " + std::to_string(in) + ", output layout " + std::to_string(out);
        for_each_type([&]<class T>(T) { expect_model_on_every_level<T>(call, what); });
      }
    }
  }
}

TEST(PermuteGrad, HonoursEveryLayout) {
  for (const LayoutOf in : kInputLayouts) {
    for (const LayoutOf out : kOutputLayouts) {
      Call call(Case{5, 3, 65});
      call.inputs = in;
      call.outputs = out;
      for_each_type([&]<class T>(T) { expect_model_on_every_level<T>(call, "base"); });
    }
  }
}

// Streamed stores begin at any element of a cache line.
TEST(PermuteGrad, StreamsToAnyAlignment) {
  for (int64_t offset = 0; offset < 64; ++offset) {
    for_each_type([&]<class T>(T) {
      const Problem<T> problem(Call({3, 2, 190}));
      const TestTensor out(kDType<T>, {3, 190}, {{190 + offset % 7, 1}, offset});
      for_each_level([&](const char* level) {
        PermuteGradPlan plan = problem.plan();
        plan.stream = true;
        plan.args.token_grad = tensor::as_matrix(*out.handle());
        ASSERT_TRUE(run_permute_grad(plan, nullptr).ok());
        problem.token_grad.write(out.read<T>());
        problem.expect_model(std::string(level) + ", offset " + std::to_string(offset));
      });
    });
  }
}

// Cases A3 and A13R: a row index times the hidden size leaves 32 bits. The buffer's pages are not
// backed by memory until touched.
constexpr int64_t kManyRows = 304000;
constexpr int64_t kHidden = 7168;

template <class T>
void expect_row(const TestTensor& tensor, int64_t row, float value) {
  for (int64_t h = 0; h < tensor.dim(1); ++h) {
    ASSERT_EQ(widen(tensor.at<T>(row * tensor.dim(1) + h)), value) << "row " << row;
  }
}

void fill_row(const TestTensor& tensor, int64_t row, float value) {
  for (int64_t h = 0; h < tensor.dim(1); ++h) {
    tensor.at<bf16>(row * tensor.dim(1) + h) = narrow<bf16>(value);
  }
}

aclnnStatus run_base(const TestTensor& grad, const TestTensor& indices, int64_t topk,
                     const TestTensor& out) {
  Planned planned;
  const aclnnStatus status = aclnnMoeTokenPermuteGradGetWorkspaceSize(
      grad.handle(), indices.handle(), topk, false, out.handle(), &planned.workspace_size,
      &planned.executor);
  if (status != ACL_SUCCESS) return status;
  const aclnnStatus launched =
      aclnnMoeTokenPermuteGrad(nullptr, 0, planned.executor, Session::stream());
  return launched != ACL_SUCCESS ? launched : aclrtSynchronizeStream(Session::stream());
}

TEST(PermuteGrad, ReadsRowsBeyond32BitOffsets) {
  const TestTensor grad(DType::kBfloat16, {kManyRows, kHidden});
  const TestTensor indices(DType::kInt32, {16});
  const TestTensor out(DType::kBfloat16, {2, kHidden});
  std::vector<int32_t> slots(16, -1);
  for (int32_t j = 0; j < 8; ++j) {
    const int32_t row = 299593 + j * 629;
    slots[static_cast<size_t>(8 + j)] = row;
    fill_row(grad, row, static_cast<float>(1 << j));
  }
  indices.write(slots);
  for_each_level([&](const char*) {
    out.poison();
    ASSERT_EQ(run_base(grad, indices, 8, out), ACL_SUCCESS);
    expect_row<bf16>(out, 0, 0.0f);
    expect_row<bf16>(out, 1, 255.0f);
  });
}

// Case A9: 32 unsigned bits do not hold the distances either.
TEST(PermuteGrad, SpansDistancesBeyond32Bits) {
  constexpr int64_t kFar = (int64_t{1} << 32) + 11;
  const TestTensor grad(DType::kFloat16, {2, 3}, {{kFar, 5}, 0});
  const TestTensor indices(DType::kInt32, {4}, {{kFar / 2}, 0});
  const TestTensor out(DType::kFloat16, {4, 3}, {{kFar / 3, 1}, 2});
  grad.write<f16>({narrow<f16>(1), narrow<f16>(2), narrow<f16>(3), narrow<f16>(4), narrow<f16>(5),
                   narrow<f16>(6)});
  indices.write<int32_t>({1, 0, 1, 7});
  const float expected[] = {4, 5, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0};
  for_each_level([&](const char*) {
    ASSERT_EQ(run_base(grad, indices, 1, out), ACL_SUCCESS);
    for (int64_t i = 0; i < 12; ++i) {
      EXPECT_EQ(widen(out.at<f16>(i)), expected[i]);
      out.at<f16>(i) = {0xFFFF};
    }
  });
}

// Case A7: nor those of the tensors beside the rows.
TEST(PermuteWithEpGrad, SpansProbabilitiesBeyond32Bits) {
  constexpr int64_t kFar = (int64_t{1} << 30) + 7;
  const TestTensor grad(DType::kFloat32, {3, 1}, {{kFar, 1}, 0});
  const TestTensor indices(DType::kInt32, {4});
  const TestTensor probs_grad(DType::kFloat32, {3}, {{kFar}, 0});
  const TestTensor out(DType::kFloat32, {2, 1});
  const TestTensor probs_out(DType::kFloat32, {2, 2}, {{kFar, kFar / 2}, 0});
  grad.write<float>({1, 2, 3});
  probs_grad.write<float>({10, 20, 30});
  indices.write<int32_t>({3, 0, 2, 1});
  const int64_t ends[] = {1, 4};
  const aclIntArray* range = aclCreateIntArray(ends, 2);
  Planned planned;
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
                grad.handle(), indices.handle(), probs_grad.handle(), 2, range, false, out.handle(),
                probs_out.handle(), &planned.workspace_size, &planned.executor),
            ACL_SUCCESS);
  ASSERT_EQ(aclnnMoeTokenPermuteWithEpGrad(nullptr, 0, planned.executor, Session::stream()),
            ACL_SUCCESS);
  ASSERT_EQ(aclrtSynchronizeStream(Session::stream()), ACL_SUCCESS);
  EXPECT_EQ(out.read<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(probs_out.read<float>(), (std::vector<float>{30, 0, 20, 10}));
  aclDestroyIntArray(range);
}

}  // namespace
}  // namespace npuless::moe_token_permute
