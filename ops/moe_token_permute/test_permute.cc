// Both permutes against the model, bit for bit, over every shape, type, routing, layout, ISA level
// and number of threads.
#include "moe_token_permute/test_layout.h"
#include "moe_token_permute/test_permute_problem.h"

namespace npuless::moe_token_permute {
namespace {

constexpr DType kTypesOfTokens[] = {DType::kBfloat16, DType::kFloat16, DType::kFloat32,
                                    DType::kInt8};
constexpr DType kTypesOfIds[] = {DType::kInt32, DType::kInt64};

std::string describe(const PermuteCall& call) {
  return std::to_string(call.shape.tokens) + " tokens, topk " + std::to_string(call.shape.topk) +
         ", hidden " + std::to_string(call.shape.hidden) + ", " + dtype_name(call.dtype) + ", " +
         dtype_name(call.ids) + ", routing " + std::to_string(static_cast<int>(call.routing));
}

// A middle part of the order with probabilities and rows to spare.
PermuteCall ranged(PermuteCall call) {
  call.range = Range{call.slots() / 3, call.slots() - call.slots() / 3};
  call.probs = true;
  call.extra_rows = 2;
  return call;
}

TEST(Permute, GivesTheModelsBits) {
  int turn = 0;
  for (const Case& shape : kCases) {
    for (const DType dtype : kTypesOfTokens) {
      PermuteCall call(shape);
      call.dtype = dtype;
      call.ids = kTypesOfIds[turn % 2];
      call.routing = kRoutings[turn++ / 2 % 4];
      expect_model_on_every_level(PermuteProblem(call), describe(call));
      if (dtype == DType::kInt8) continue;
      expect_model_on_every_level(PermuteProblem(ranged(call)), describe(call) + ", ranged");
    }
  }
}

// Cases F1, F2, F3, F6, F8: hidden sizes that others' kernels got wrong, beside those of kCases.
TEST(Permute, TakesAnyHiddenSize) {
  for (const int64_t hidden : {96, 160, 384, 1056, 3584, 65544}) {
    for (const DType dtype : kTypesOfTokens) {
      PermuteCall call(Case{3, 2, hidden});
      call.dtype = dtype;
      expect_model_on_every_level(PermuteProblem(call), describe(call), {1, 3});
    }
  }
}

TEST(Permute, SortsEveryRoutingOfBothIdTypes) {
  for (const Routing routing : kRoutings) {
    for (const DType ids : kTypesOfIds) {
      for (const LayoutOf layout : kInputLayouts) {
        PermuteCall call(Case{257, 6, 5});
        call.routing = routing;
        call.ids = ids;
        call.inputs = layout;
        expect_model_on_every_level(PermuteProblem(call), describe(call), {1, 3});
      }
    }
  }
}

// Small chunks put chunk borders inside small shapes; streamed stores are otherwise for large ones.
TEST(Permute, GivesTheModelsBitsForAnyChunkAndStore) {
  for (const Case& shape : kCases) {
    if (shape.tokens * shape.topk > 2000) continue;
    for (const DType dtype : {DType::kBfloat16, DType::kFloat32}) {
      PermuteCall call = ranged(PermuteCall(shape));
      call.dtype = dtype;
      const PermuteProblem problem(call);
      for_each_level([&](const char* level) {
        for (const int64_t chunk_tokens : {1, 3}) {
          for (const bool stream : {false, true}) {
            ASSERT_TRUE(set_num_threads(3).ok());
            PermutePlan plan = problem.plan();
            plan.chunk_tokens = chunk_tokens;
            plan.copy.stream = stream;
            const Workspace workspace(static_cast<uint64_t>(plan.workspace_bytes));
            problem.poison_outputs();
            ASSERT_TRUE(run_permute(plan, workspace.data()).ok());
            problem.expect_model(describe(call) + ", " + level + (stream ? ", streamed" : ""));
          }
        }
      });
    }
  }
}

// An output large enough for streamed stores, through the public functions.
TEST(Permute, GivesTheModelsBitsForALargeOutput) {
  const PermuteProblem problem(PermuteCall(Case{1381, 2, 3303}));
  EXPECT_TRUE(problem.plan().copy.stream);
  expect_model_on_every_level(problem, "large", {3});
}

// Streamed stores begin at any element of a cache line.
TEST(Permute, StreamsToAnyAlignment) {
  static int64_t offset = 0;
  for (offset = 0; offset < 64; ++offset) {
    for (const DType dtype : kTypesOfTokens) {
      PermuteCall call(Case{3, 2, 190});
      call.dtype = dtype;
      call.outputs = [](const std::vector<int64_t>& dims) {
        Layout layout = contiguous(dims);
        if (dims.size() > 1) layout.strides[0] += offset % 7;
        layout.offset = offset;
        return layout;
      };
      const PermuteProblem problem(call);
      for_each_level([&](const char* level) {
        PermutePlan plan = problem.plan();
        plan.copy.stream = true;
        const Workspace workspace(static_cast<uint64_t>(plan.workspace_bytes));
        problem.poison_outputs();
        ASSERT_TRUE(run_permute(plan, workspace.data()).ok());
        problem.expect_model(std::string(level) + ", offset " + std::to_string(offset));
      });
    }
  }
}

// Cases G2, G3 and G4: strided ids, tokens and outputs are honoured.
TEST(Permute, HonoursEveryLayout) {
  for (const Case& shape : {Case{5, 3, 65}, Case{7, 8, 16}, Case{1, 2, 1}, Case{3, 1, 33}}) {
    for (const DType dtype : kTypesOfTokens) {
      for (const LayoutOf in : kInputLayouts) {
        for (const LayoutOf out : kOutputLayouts) {
          PermuteCall call(shape);
          call.dtype = dtype;
          if (dtype != DType::kInt8) call = ranged(call);
          call.inputs = in;
          call.outputs = out;
          expect_model_on_every_level(PermuteProblem(call), describe(call), {2});
        }
      }
    }
  }
}

// Rows with inner dimensions, which may or may not lie at one stride.
TEST(Permute, TakesRowsOfAnyRank) {
  const std::vector<int64_t> kTrailing[] = {{3, 5}, {1, 4, 1}, {2, 3, 4, 5},
                                            {1},    {1, 1},    {7, 1, 2}};
  for (const auto& trailing : kTrailing) {
    for (const LayoutOf in : kInputLayouts) {
      for (const LayoutOf out : {contiguous, padded_rows, every_second, transposed}) {
        int64_t hidden = 1;
        for (const int64_t dim : trailing) hidden *= dim;
        PermuteCall call(Case{5, 3, hidden});
        call.trailing = trailing;
        call.inputs = in;
        call.outputs = out;
        expect_model_on_every_level(PermuteProblem(call), describe(call), {3});
        expect_model_on_every_level(PermuteProblem(ranged(call)), describe(call), {3});
      }
    }
  }
}

// Inner dimensions in one order in the tokens and in another in the output: no two of them
// collapse.
TEST(Permute, TakesRowsWhoseDimensionsAreInterleaved) {
  PermuteCall call(Case{4, 2, 2 * 3 * 5});
  call.trailing = {2, 3, 5};
  call.inputs = [](const std::vector<int64_t>& dims) {
    if (dims.size() != 4) return contiguous(dims);
    return Layout{{31, 1, 10, 2}, 3};
  };
  call.outputs = [](const std::vector<int64_t>& dims) {
    if (dims.size() != 4) return contiguous(dims);
    return Layout{{31, 15, 1, 3}, 2};
  };
  PermuteCall spare = ranged(call);
  expect_model_on_every_level(PermuteProblem(call), "interleaved");
  expect_model_on_every_level(PermuteProblem(spare), "interleaved with rows to spare");
}

TEST(Permute, RepeatsTheSameBitsOnAnyNumberOfThreads) {
  PermuteCall call(Case{20011, 8, 3});  // several chunks of slots
  const PermuteProblem problem(call);
  run(problem);
  const auto expected = problem.permuted.bytes();
  problem.expect_model("the first run");
  for (const int threads : {1, 2, 7, 64}) {
    ASSERT_TRUE(set_num_threads(threads).ok());
    for (int repeat = 0; repeat < 10; ++repeat) {
      problem.poison_outputs();
      run(problem);
      ASSERT_TRUE(problem.permuted.bytes() == expected) << threads << " threads";
    }
  }
}

// The workspace is two orders and one histogram per 65536 slots and one more, and the extents.
TEST(Permute, TellsItsWorkspaceExactly) {
  const auto line = [](int64_t bytes) { return round_up(bytes, 64); };
  for (const int64_t tokens : {int64_t{1}, int64_t{8192}, int64_t{8193}, int64_t{40000}}) {
    const PermuteProblem problem(PermuteCall(Case{tokens, 8, 1}));
    const int64_t slots = tokens * 8;
    const int64_t chunks = ceil_div(slots, 65536);
    EXPECT_EQ(problem.plan().workspace_bytes,
              2 * line(4 * slots) + (chunks + 1) * 2048 * 4 + line(16 * chunks) + 64);
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
