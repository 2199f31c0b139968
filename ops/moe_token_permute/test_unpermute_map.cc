// The unpermute with a routing map and its gradient: against the scalar model, by laws and by known
// answers. Cases B11, B13, D5, D6R, G3, G4, H7, I5, I6R, J6.
#include "moe_token_permute/test_layout.h"
#include "moe_token_permute/test_unpermute_map_problem.h"

namespace npuless::moe_token_permute {
namespace {

// Tokens that choose fewer than K and more; experts a power of two and not; one list beyond what
// a kernel takes at once.
constexpr MapUnpermuteCall kCalls[] = {
    {1, 1, 1, 1},          {5, 4, 2, 3},         {7, 9, 3, 33},         {13, 8, 8, 65},
    {3, 600, 512, 2},      {31, 64, 6, 17},      {2, 5, 5, 7169},       {5, 4, 2, 3, true},
    {7, 9, 3, 33, true},   {13, 8, 5, 65, true}, {2, 1100, 2, 3, true}, {31, 64, 4, 17, true},
    {4, 3, 4, 2880, true},
};

template <class T, class P>
void expect_model_on_every_level(const MapUnpermuteCall& call) {
  const MapUnpermuteProblem<T, P> problem(call);
  for_each_level([&](const char* level) {
    for (const int threads : {1, 2, 3, 7}) {
      ASSERT_TRUE(set_num_threads(threads).ok());
      problem.poison_outputs();
      problem.run();
      problem.run_grad();
      problem.expect_model(describe(call) + ", " + level);
    }
  });
}

TEST(UnpermuteWithRoutingMap, GivesTheModelsBits_D5_I5_I6R_J6) {
  for (MapUnpermuteCall call : kCalls) {
    for_each_map_types([&]<class T, class P>(T, P) { expect_model_on_every_level<T, P>(call); });
    call.probs = false;
    for_each_type([&]<class T>(T) { expect_model_on_every_level<T, float>(call); });
  }
}

TEST(UnpermuteWithRoutingMap, HonoursEveryLayout_G3_G4) {
  for (const bool padded : {false, true}) {
    for (const LayoutOf in : {contiguous, padded_rows, every_second, transposed}) {
      for (const LayoutOf out : {contiguous, padded_rows, every_second, transposed}) {
        MapUnpermuteCall call{5, 4, 3, 35, padded};
        call.inputs = in;
        call.outputs = out;
        expect_model_on_every_level<bf16, float>(call);
        expect_model_on_every_level<f16, f16>(call);
      }
    }
  }
}

// One token in four experts: added one by one in bf16 the sum would stay 1.
TEST(UnpermuteWithRoutingMap, SumsInFp32_H7) {
  const MapUnpermuteProblem<bf16, bf16> problem(MapUnpermuteCall{4, 4, 4, 33, true});
  for (int64_t row = 0; row < 16; ++row) {
    for (int64_t h = 0; h < 33; ++h) {
      problem.permuted.at<bf16>(row * 33 + h) = narrow<bf16>(row < 4 ? 1.0f : 0x1.8p-9f);
    }
    problem.indices.at<int32_t>(row) = static_cast<int32_t>(row % 4);
  }
  problem.probs.write(std::vector<bf16>(16, narrow<bf16>(1)));
  problem.run();
  for (const bf16 sum : problem.out.read<bf16>()) ASSERT_EQ(widen(sum), 1.0078125f);
}

// Rows 0: the outputs are zeros, in both phases.
TEST(UnpermuteWithRoutingMap, WithoutRowsIsZero_B11_B13) {
  for (const bool padded : {false, true}) {
    for (const bool probs : {false, true}) {
      const MapUnpermuteProblem<float, float> problem(MapUnpermuteCall{4, 3, 0, 8, padded, probs});
      problem.run();
      problem.run_grad();
      EXPECT_TRUE(matches(problem.out, std::vector<float>(32, 0.0f), false));
      const std::vector<float> no_grads(probs ? 12 : 0, 0.0f);
      EXPECT_TRUE(matches(problem.probs_grad, no_grads, false));
    }
  }
}

TEST(UnpermuteWithRoutingMap, TakesEmptyTensors_B13) {
  for (const bool padded : {false, true}) {
    const MapUnpermuteProblem<bf16, float> hidden(MapUnpermuteCall{4, 3, 2, 0, padded});
    hidden.run();
    hidden.run_grad();
    hidden.expect_model("hidden 0");
    const MapUnpermuteProblem<bf16, float> tokens(MapUnpermuteCall{0, 3, 0, 5, padded});
    tokens.run();
    tokens.run_grad();
  }
}

template <class T>
void write_ordinary(const TestTensor& tensor, std::mt19937& random) {
  for (int64_t i = 0; i < tensor.count(); ++i) {
    tensor.at<T>(i) = narrow<T>((static_cast<float>(random() % 8191) - 4095.0f) * 0x1p-11f);
  }
}

template <class T>
std::vector<double> doubles(const TestTensor& tensor) {
  std::vector<double> out;
  for (const T value : tensor.read<T>()) out.push_back(static_cast<double>(widen(value)));
  return out;
}

// 1100 rows for each of two tokens, more than a kernel takes at once; those of probability 0 hold
// NaN.
TEST(UnpermuteWithRoutingMap, SumsLongLists) {
  for_each_map_types([]<class T, class P>(T, P) {
    MapUnpermuteProblem<T, P> problem(MapUnpermuteCall{2, 1100, 2, 3, true});
    std::mt19937 random(12);
    write_ordinary<T>(problem.permuted, random);
    write_ordinary<T>(problem.grad, random);
    write_ordinary<P>(problem.probs, random);
    for (int64_t row = 0; row < 2200; ++row) {
      const int64_t token = row % 2;
      problem.indices.template at<int32_t>(row) = static_cast<int32_t>(token);
      if (row % 7 != 0) continue;
      problem.probs.template at<P>(token * 1100 + row / 2) = P{};
      problem.permuted.template at<T>(row * 3 + 1) = narrow<T>(NAN);
    }
    problem.compute_model();
    problem.run();
    problem.run_grad();
    for (const T sum : problem.out.template read<T>()) ASSERT_TRUE(std::isfinite(widen(sum)));
    problem.expect_model("long lists");
  });
}

// The central difference by one parameter, and the same of all magnitudes, which bounds partial
// sums. Exact but for rounding in double: the loss is linear in each parameter.
struct Difference {
  double value;
  double magnitude;
};

Difference differentiate(const RefMapUnpermute& ref, std::vector<double> rows,
                         std::vector<double> probs, std::vector<double> grad, bool by_row,
                         size_t which) {
  const auto difference = [&] {
    double& parameter = by_row ? rows[which] : probs[which];
    const double at = parameter;
    parameter = at + 0.125;
    const double above = map_loss(ref, rows, probs, grad);
    parameter = at - 0.125;
    const double below = map_loss(ref, rows, probs, grad);
    parameter = at;
    return (above - below) * 4;
  };
  const double value = difference();
  for (auto* values : {&rows, &probs, &grad}) {
    for (double& x : *values) x = std::abs(x);
  }
  return {value, difference()};
}

template <class T, class P>
void expect_differences(const MapUnpermuteCall& call) {
  SCOPED_TRACE(describe(call));
  MapUnpermuteProblem<T, P> problem(call);
  std::mt19937 random(11);
  write_ordinary<T>(problem.permuted, random);
  write_ordinary<T>(problem.grad, random);
  write_ordinary<P>(problem.probs, random);
  // A row belongs to one slot, or the gradient of a repeated one would not be the loss's.
  std::vector<int32_t> indices(static_cast<size_t>(call.rows()));
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int32_t>(i);
  if (!call.padded) std::shuffle(indices.begin(), indices.end(), random);
  for (int32_t& index : indices) {
    if (call.padded) index = static_cast<int32_t>(random() % static_cast<unsigned>(call.tokens));
  }
  problem.indices.write(indices);
  problem.run();
  problem.run_grad();
  const RefMapUnpermute ref = problem.ref();
  const auto rows = doubles<T>(problem.permuted);
  const auto probs = doubles<P>(problem.probs);
  const auto grad = doubles<T>(problem.grad);
  const auto row_grads = doubles<T>(problem.permuted_grad);
  for (size_t i = 0; i < row_grads.size(); ++i) {
    const Difference want = differentiate(ref, rows, probs, grad, true, i);
    ASSERT_LE(std::abs(row_grads[i] - want.value),
              rounding_bound<T>(want.value, want.magnitude, 1));
  }
  if (!call.probs) return;
  const auto prob_grads = doubles<P>(problem.probs_grad);
  for (size_t i = 0; i < prob_grads.size(); ++i) {
    const Difference want = differentiate(ref, rows, probs, grad, false, i);
    ASSERT_LE(std::abs(prob_grads[i] - want.value),
              rounding_bound<P>(want.value, want.magnitude, call.hidden + 4 + call.per_unit));
  }
}

// Tokens choose any number of experts, fewer than K and more.
TEST(UnpermuteWithRoutingMap, ItsGradientsAreTheDifferences_D6R) {
  for_each_map_types([]<class T, class P>(T, P) {
    for (const bool padded : {false, true}) {
      for (const bool probs : {false, true}) {
        expect_differences<T, P>(MapUnpermuteCall{5, 6, 3, 9, padded, probs});
      }
    }
  });
}

// Row 1 of two names for it keeps the last.
TEST(UnpermuteWithRoutingMapGrad, TheLastNameOfARowCounts) {
  const MapUnpermuteProblem<float, float> problem(MapUnpermuteCall{3, 3, 1, 2, true, false});
  problem.grad.write<float>({1, 1, 2, 2, 3, 3});
  problem.out_index.write<int32_t>({1, 1, -5});
  problem.token_id.write<int32_t>({0, 2, 1});
  problem.run_grad();
  EXPECT_EQ(problem.permuted_grad.read<float>(), (std::vector<float>{0, 0, 3, 3, 0, 0}));
}

}  // namespace
}  // namespace npuless::moe_token_permute
