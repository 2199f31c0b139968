// Unpermute and its gradients against the scalar model, bit for bit, over every shape, pair of
// types, ISA level and number of threads.
//
// Reported bugs that concern the unpermutes carry their ids in the names of tests; besides:
//   E3, F1, F2, F6      shapes of cases.h: topk 129; hidden 1 to 7169, 3584, ragged tails
//   F7                  UnpermuteGrad.StreamsToAnyAlignment, HonoursEveryLayout
//   G6R                 every model comparison compares the inputs' bytes before and after
//   H3, I8, J6          every model comparison runs every ISA level into poisoned outputs
//   J9                  every run has a workspace of the exact size, before a guard page
//   L4                  types of outputs: the refusals
// Those that do not apply:
//   A1–A4, A8–A13R, B14R, B17R, B18R, C1, C15R, D2–D4, H6, H8, I2, L1, L2  the permutes' direction
//   B3, I7, I9, I11, M1                        automatic differentiation, which C functions lack
//   B5, C16, D7, D8, D14, D15, J1, J2, J7, J8, J10   buffers aligned or padded per expert
//   B7–B9, H5, K1–K8                           exchanges between ranks
//   C4–C7, C9–C12, C17, D9–D11, D13, E1, E2, E6, L5  expert ids, which the unpermutes never see
//   E7, E8, F3          kernels specialised for some topk, or for fp8, of which there are none
//   G2                  a Python front end
//   M2, M3R             compilers of others; a workspace per call is what two phases are
#include "moe_token_permute/kernel_arguments.h"
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {
namespace {

constexpr int kThreads[] = {1, 2, 3, 7};

// All rows but the last fifth, which the slots still name.
UnpermuteCall base_call(const Case& shape) {
  UnpermuteCall call(shape);
  call.dropped_rows = call.slots() / 5;
  return call;
}

// The middle third of the order, with rows to spare.
UnpermuteCall ep_call(const Case& shape) {
  UnpermuteCall call(shape);
  call.expert_parallel = true;
  call.range = Range{call.slots() / 3, call.slots() - call.slots() / 3};
  call.extra_rows = 2;
  return call;
}

UnpermuteCall unweighted(UnpermuteCall call) {
  call.probs = false;
  return call;
}

template <class T, class P>
void expect_model_through_api(const UnpermuteProblem<T, P>& problem) {
  for_each_level([&](const char* level) {
    for (const int threads : kThreads) {
      const std::string what =
          describe(problem.call()) + ", " + level + ", " + std::to_string(threads) + " threads";
      ASSERT_TRUE(set_num_threads(threads).ok());
      problem.poison_outputs();
      problem.run();
      problem.run_grad();
      problem.expect_model(what);
      problem.expect_grad_model(what);
    }
  });
}

TEST(Unpermute, GivesTheModelsBits_L3) {
  for (const Case& shape : kCases) {
    for_each_pair_of_types([&]<class T, class P>(T, P) {
      expect_model_through_api(UnpermuteProblem<T, P>(base_call(shape)));
    });
  }
}

TEST(UnpermuteWithEp, GivesTheModelsBits_L3) {
  for (const Case& shape : kCases) {
    for_each_pair_of_types([&]<class T, class P>(T, P) {
      expect_model_through_api(UnpermuteProblem<T, P>(ep_call(shape)));
    });
  }
}

TEST(Unpermute, GivesTheModelsBitsWithoutProbabilities) {
  for (Case shape : kCases) {
    shape.topk = 1;
    for_each_type([&]<class T>(T) {
      expect_model_through_api(UnpermuteProblem<T, float>(unweighted(base_call(shape))));
    });
  }
}

// Several slots per token, which only this form has without probabilities.
TEST(UnpermuteWithEp, GivesTheModelsBitsWithoutProbabilities) {
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) {
      expect_model_through_api(UnpermuteProblem<T, float>(unweighted(ep_call(shape))));
    });
  }
}

// Small chunks put chunk borders inside small shapes; streamed stores are otherwise for large ones.
constexpr int64_t kChunks[] = {1, 3};
constexpr int kWorkers = 3;

template <class T, class P>
void expect_model_of_plan(const UnpermuteProblem<T, P>& problem, int64_t chunk, bool stream,
                          const std::string& what) {
  const int64_t scalars = kWorkers * chunk * problem.call().shape.topk;
  UnpermutePlan plan{};
  ASSERT_TRUE(plan_unpermute(unpack_unpermute(problem.tensors()), plan).ok());
  UnpermuteGradPlan grad_plan{};
  ASSERT_TRUE(plan_unpermute_grad(unpack_unpermute_grad(problem.grad_tensors()), grad_plan).ok());
  plan.chunk_tokens = grad_plan.chunk_tokens = chunk;
  plan.stream = grad_plan.stream = grad_plan.copy.stream = stream;
  Ledger ledger;
  plan.weights = grad_plan.weights = ledger.book<float>(scalars);
  grad_plan.dots = ledger.book<float>(scalars);
  grad_plan.writers = ledger.book<int32_t>(grad_plan.writers.count);
  const Workspace workspace(static_cast<uint64_t>(ledger.bytes()));
  problem.poison_outputs();
  ASSERT_TRUE(run_unpermute(plan, workspace.data()).ok());
  ASSERT_TRUE(run_unpermute_grad(grad_plan, workspace.data()).ok());
  problem.expect_model(what);
  problem.expect_grad_model(what);
}

template <class T>
void expect_model_for_any_plan(const UnpermuteCall& call) {
  const UnpermuteProblem<T, float> problem(call);
  for_each_level([&](const char* level) {
    ASSERT_TRUE(set_num_threads(kWorkers).ok());
    for (const int64_t chunk : kChunks) {
      for (const bool stream : {false, true}) {
        expect_model_of_plan(problem, chunk, stream,
                             describe(call) + ", " + level + (stream ? ", streamed" : ""));
      }
    }
  });
}

TEST(UnpermuteWithEp, GivesTheModelsBitsForAnyChunkAndStore) {
  for (const Case& shape : kCases) {
    for_each_type([&]<class T>(T) {
      expect_model_for_any_plan<T>(ep_call(shape));
      expect_model_for_any_plan<T>(unweighted(ep_call(shape)));
    });
  }
}

// Workers take tokens in any order, so which of several slots writes a row must not depend on it.
TEST(UnpermuteGrad, WritesTheSameRowsWhateverTokenComesLast) {
  const UnpermuteProblem<float, float> problem(UnpermuteCall({29, 3, 33}));
  const UnpermuteGradArgs args = unpack_unpermute_grad(problem.grad_tensors());
  const auto indices = problem.indices.read<int32_t>();
  const auto weights = problem.probs.read<float>();
  std::vector<int32_t> writers(indices.size(), -1);
  for (size_t slot = 0; slot < indices.size(); ++slot) {
    if (!problem.ref_shape().selects(indices[slot])) continue;
    writers[static_cast<size_t>(indices[slot])] = static_cast<int32_t>(slot);
  }
  for_each_level([&](const char* level) {
    isa::Level active{};
    ASSERT_TRUE(isa::active_level(active).ok());
    problem.permuted_grad.write(std::vector<float>(29 * 3 * 33, 0.0f));
    for (int64_t token = 28; token >= 0; --token) {
      const Slots slots{indices.data(), 1, 3, 0, args.permuted.rows};
      const Spread spread{source_of(args.grad),
                          source_of(args.permuted),
                          target_of(args.permuted_grad),
                          33,
                          false,
                          writers.data(),
                          weights.data() + token * 3,
                          &problem.probs_grad.at<float>(token * 3)};
      kernels_for(active).spread_rows[kFloat32](slots, spread, token, token + 1);
    }
    problem.expect_grad_model(level);
  });
}

// Outputs large enough for streamed stores, through the public functions.
TEST(Unpermute, GivesTheModelsBitsForLargeOutputs) {
  const UnpermuteProblem<bf16, float> problem(UnpermuteCall({2621, 2, 3303}));
  UnpermutePlan plan{};
  ASSERT_TRUE(plan_unpermute(unpack_unpermute(problem.tensors()), plan).ok());
  EXPECT_TRUE(plan.stream);
  for_each_level([&](const char* level) {
    ASSERT_TRUE(set_num_threads(3).ok());
    problem.poison_outputs();
    problem.run();
    problem.run_grad();
    problem.expect_model(level);
    problem.expect_grad_model(level);
  });
}

TEST(Unpermute, RepeatsTheSameBitsOnAnyNumberOfThreads_H4) {
  const UnpermuteProblem<bf16, bf16> problem(UnpermuteCall({1021, 8, 65}));
  for (const int threads : {1, 2, 7, 64}) {
    ASSERT_TRUE(set_num_threads(threads).ok());
    for (int repeat = 0; repeat < 25; ++repeat) {
      problem.poison_outputs();
      problem.run();
      problem.run_grad();
      problem.expect_model(std::to_string(threads) + " threads");
      problem.expect_grad_model(std::to_string(threads) + " threads");
    }
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
