// Strides, offsets and distances beyond 32 bits: cases G3, G4, A6, A7, and E4 and F8, whose sizes
// leave other limits behind.
#include "moe_token_permute/test_layout.h"
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {
namespace {

constexpr Case kShapes[] = {{5, 3, 65}, {7, 8, 16}, {1, 2, 1}, {3, 1, 33}};

template <class T, class P>
void expect_model_on_every_level(const UnpermuteCall& call, const std::string& what) {
  const UnpermuteProblem<T, P> problem(call);
  for_each_level([&](const char* level) {
    ASSERT_TRUE(set_num_threads(3).ok());
    problem.poison_outputs();
    problem.run();
    problem.run_grad();
    problem.expect_model(what + ", " + level);
    problem.expect_grad_model(what + ", " + level);
  });
}

void expect_every_layout(UnpermuteCall call) {
  for (size_t in = 0; in < std::size(kInputLayouts); ++in) {
    for (size_t out = 0; out < std::size(kOutputLayouts); ++out) {
      call.inputs = kInputLayouts[in];
      call.outputs = kOutputLayouts[out];
      const std::string what =
          "input layout " + std::to_string(in) + ", output layout " + std::to_string(out);
      expect_model_on_every_level<float, bf16>(call, what);
      expect_model_on_every_level<f16, float>(call, what);
      expect_model_on_every_level<bf16, f16>(call, what);
    }
  }
}

TEST(Unpermute, HonoursEveryLayout_G3_G4) {
  for (const Case& shape : kShapes) expect_every_layout(UnpermuteCall(shape));
}

TEST(UnpermuteWithEp, HonoursEveryLayout_G3_G4) {
  for (const Case& shape : kShapes) {
    UnpermuteCall call(shape);
    call.expert_parallel = true;
    call.range = Range{call.slots() / 4, call.slots()};
    call.probs = false;
    expect_every_layout(call);
  }
}

// Streamed stores begin at any element of a cache line.
template <class T>
void expect_streamed(int64_t offset) {
  const UnpermuteProblem<T, float> problem(UnpermuteCall({3, 2, 190}));
  const TestTensor rows(kDType<T>, {6, 190}, {{190 + offset % 7, 1}, offset});
  for_each_level([&](const char* level) {
    UnpermuteGradPlan plan{};
    ASSERT_TRUE(plan_unpermute_grad(unpack_unpermute_grad(problem.grad_tensors()), plan).ok());
    plan.stream = true;
    plan.args.permuted_grad = tensor::as_matrix(*rows.handle());
    const Workspace workspace(static_cast<uint64_t>(plan.workspace_bytes));
    ASSERT_TRUE(run_unpermute_grad(plan, workspace.data()).ok());
    problem.permuted_grad.write(rows.read<T>());
    problem.expect_grad_model(std::string(level) + ", offset " + std::to_string(offset));
  });
}

TEST(UnpermuteGrad, StreamsToAnyAlignment) {
  for (int64_t offset = 0; offset < 64; ++offset) {
    for_each_type([&]<class T>(T) { expect_streamed<T>(offset); });
  }
}

void unpermute(const TestTensor& permuted, const TestTensor& indices, const TestTensor* probs,
               int64_t topk, const TestTensor& out) {
  Planned planned;
  launch(aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(permuted.handle(), indices.handle(),
                                                      probs == nullptr ? nullptr : probs->handle(),
                                                      topk, nullptr, false, nullptr, out.handle(),
                                                      &planned.workspace_size, &planned.executor),
         planned, &aclnnMoeTokenUnpermuteWithEp);
}

// 448000 rows of 7168; pages are not backed by memory until touched.
TEST(Unpermute, ReadsRowsBeyond32BitOffsets_A6) {
  constexpr int64_t kHidden = 7168;
  const TestTensor permuted(DType::kBfloat16, {448000, kHidden});
  const TestTensor indices(DType::kInt32, {8});
  const TestTensor probs(DType::kFloat32, {1, 8});
  const TestTensor out(DType::kBfloat16, {1, kHidden});
  for (int64_t j = 0; j < 8; ++j) {
    const int64_t row = 299593 + j * 21200;
    indices.at<int32_t>(j) = static_cast<int32_t>(row);
    probs.at<float>(j) = 0.5f;
    for (int64_t h = 0; h < kHidden; ++h) {
      permuted.at<bf16>(row * kHidden + h) = narrow<bf16>(static_cast<float>(1 << j));
    }
  }
  for_each_level([&](const char*) {
    unpermute(permuted, indices, &probs, 8, out);
    for (const bf16 sum : out.read<bf16>()) ASSERT_EQ(widen(sum), 127.5f);
  });
}

Layout far_apart(const std::vector<int64_t>& dims) {
  constexpr int64_t kFar = (int64_t{1} << 31) + 11;
  if (dims.size() == 1) return {{kFar / 2}, 0};
  return {{kFar, kFar / 8 + 5}, 0};
}

// Every tensor with every distance, those of indices and probabilities as well.
TEST(Unpermute, SpansDistancesBeyond32Bits_A7) {
  const UnpermuteProblem<f16, f16> near(UnpermuteCall({2, 2, 3}));
  // Not a problem with far layouts, whose comparisons would touch every page in between.
  const auto permuted = TestTensor(DType::kFloat16, {4, 3}, far_apart({4, 3}));
  const auto grad = TestTensor(DType::kFloat16, {2, 3}, far_apart({2, 3}));
  const auto indices = TestTensor(DType::kInt32, {4}, far_apart({4}));
  const auto probs = TestTensor(DType::kFloat16, {2, 2}, far_apart({2, 2}));
  const auto out = TestTensor(DType::kFloat16, {2, 3}, far_apart({2, 3}));
  const auto permuted_grad = TestTensor(DType::kFloat16, {4, 3}, far_apart({4, 3}));
  const auto probs_grad = TestTensor(DType::kFloat16, {2, 2}, far_apart({2, 2}));
  permuted.write(near.permuted.read<f16>());
  grad.write(near.grad.read<f16>());
  indices.write(near.indices.read<int32_t>());
  probs.write(near.probs.read<f16>());
  unpermute(permuted, indices, &probs, 2, out);
  Planned planned;
  launch(
      aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
          permuted.handle(), grad.handle(), indices.handle(), probs.handle(), false, nullptr,
          permuted_grad.handle(), probs_grad.handle(), &planned.workspace_size, &planned.executor),
      planned, &aclnnMoeTokenUnpermuteGrad);
  near.out.write(out.read<f16>());
  near.permuted_grad.write(permuted_grad.read<f16>());
  near.probs_grad.write(probs_grad.read<f16>());
  near.expect_model("far apart");
  near.expect_grad_model("far apart");
}

// Beyond the 2^24 − 1 slots that upstream's fp32 ids can tell apart.
TEST(Unpermute, TakesMoreSlotsThan24BitsCount_E4) {
  constexpr int64_t kTokens = 32769;
  const TestTensor permuted(DType::kBfloat16, {kTokens * kMaxTopk, 1});
  const TestTensor indices(DType::kInt32, {kTokens * kMaxTopk});
  const TestTensor out(DType::kBfloat16, {kTokens, 1});
  for (int64_t slot = 0; slot < indices.count(); ++slot) {
    indices.at<int32_t>(slot) = static_cast<int32_t>(slot);
    permuted.at<bf16>(slot) = narrow<bf16>(slot >> 24 == 0 ? 0.25f : 0.5f);
  }
  unpermute(permuted, indices, nullptr, kMaxTopk, out);
  EXPECT_EQ(widen(out.at<bf16>(kTokens - 2)), 128.0f);
  EXPECT_EQ(widen(out.at<bf16>(kTokens - 1)), 256.0f);
}

TEST(Unpermute, TakesAnyHiddenSize_F8) {
  expect_model_on_every_level<bf16, float>(UnpermuteCall({3, 2, 65544}), "hidden 65544");
}

}  // namespace
}  // namespace npuless::moe_token_permute
