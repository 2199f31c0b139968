// Every way to call the permutes wrongly: the code, a sentence that names the argument, and outputs
// of phase 1 left alone; and what is accepted although it looks wrong.
#include "moe_token_permute/test_permute_problem.h"
#include "moe_token_permute/test_refused.h"

namespace npuless::moe_token_permute {
namespace {

// A valid call: 6 tokens, topk 2, hidden 3, positions [2, 9).
struct PermuteArguments {
  TensorArgument tokens{DType::kFloat32, {6, 3}};
  TensorArgument indices{DType::kInt32, {6, 2}};
  TensorArgument probs{DType::kFloat32, {6, 2}};
  std::optional<std::vector<int64_t>> range = std::vector<int64_t>{2, 9};
  int64_t num_out_tokens = 0;
  bool padded_mode = false;
  TensorArgument permuted{DType::kFloat32, {7, 3}};
  TensorArgument sorted_indices{DType::kInt32, {12}};
  TensorArgument permuted_probs{DType::kFloat32, {7}};
};
using A = PermuteArguments;
using PermuteRefusal = RefusalOf<A>;

aclnnStatus ep(const A& a, uint64_t* workspace_size, aclOpExecutor** executor) {
  const IntArray range(a.range);
  return aclnnMoeTokenPermuteWithEpGetWorkspaceSize(
      make(a.tokens).get(), make(a.indices).get(), make(a.probs).get(), range.get(),
      a.num_out_tokens, a.padded_mode, make(a.permuted).get(), make(a.sorted_indices).get(),
      make(a.permuted_probs).get(), workspace_size, executor);
}

aclnnStatus base(const A& a, uint64_t* workspace_size, aclOpExecutor** executor) {
  return aclnnMoeTokenPermuteGetWorkspaceSize(
      make(a.tokens).get(), make(a.indices).get(), a.num_out_tokens, a.padded_mode,
      make(a.permuted).get(), make(a.sorted_indices).get(), workspace_size, executor);
}

A base_arguments() {
  A a;
  a.permuted.dims = {12, 3};
  return a;
}

// Of both operators.
const PermuteRefusal kRefusals[] = {
    {"tokens null", kNull, {"tokens must"}, [](A& a) { a.tokens.null = true; }},
    {"indices null", kNull, {"indices must"}, [](A& a) { a.indices.null = true; }},
    {"permuted null", kNull, {"permuteTokensOut"}, [](A& a) { a.permuted.null = true; }},
    {"indices out null", kNull, {"sortedIndicesOut"}, [](A& a) { a.sorted_indices.null = true; }},
    {"tokens type", kInvalid, {"tokens", "INT32"}, [](A& a) { a.tokens.dtype = DType::kInt32; }},
    {"indices type",
     kInvalid,
     {"indices", "INT32 or INT64", "FLOAT"},
     [](A& a) { a.indices.dtype = DType::kFloat32; }},
    {"permuted of another type",
     kInvalid,
     {"permuteTokensOut and tokens", "FLOAT16"},
     [](A& a) { a.permuted.dtype = DType::kFloat16; }},
    {"sorted indices INT64",
     kInvalid,
     {"sortedIndicesOut", "INT64"},
     [](A& a) { a.sorted_indices.dtype = DType::kInt64; }},
    {"tokens format",
     kInvalid,
     {"format of tokens"},
     [](A& a) { a.tokens.format = ACL_FORMAT_NCHW; }},
    {"indices format",
     kInvalid,
     {"format of indices"},
     [](A& a) { a.indices.format = ACL_FORMAT_NCHW; }},
    {"permuted format",
     kInvalid,
     {"format of permuteTokensOut"},
     [](A& a) { a.permuted.format = ACL_FORMAT_NCHW; }},
    {"sorted indices format",
     kInvalid,
     {"format of sortedIndicesOut"},
     [](A& a) { a.sorted_indices.format = ACL_FORMAT_NCHW; }},
    {"padded mode", kInvalid, {"paddedMode"}, [](A& a) { a.padded_mode = true; }},
    {"tokens rank",
     kInvalid,
     {"tokens", "2 dimensions or more", "[18]"},
     [](A& a) { a.tokens.dims = {18}; }},
    {"permuted rank",
     kInvalid,
     {"permuteTokensOut", "2 dimensions or more"},
     [](A& a) { a.permuted.dims = {36}; }},
    {"indices rank",
     kInvalid,
     {"indices", "1 or 2 dimensions", "[3, 2, 2]"},
     [](A& a) {
       a.indices.dims = {3, 2, 2};
     }},
    {"sorted indices rank",
     kInvalid,
     {"sortedIndicesOut", "1 dimension"},
     [](A& a) {
       a.sorted_indices.dims = {6, 2};
     }},
    {"negative stride",
     kInvalid,
     {"tokens", "negative"},
     [](A& a) {
       a.tokens.layout = Layout{{-3, 1}, 0};
     }},
    {"beyond the address space",
     kInvalid,
     {"indices", "address space"},
     [](A& a) {
       a.indices.layout = Layout{{INT64_MAX / 2, 1}, 0};
     }},
    {"indices of other tokens",
     kInvalid,
     {"indices", "number of tokens", "[7, 2]"},
     [](A& a) {
       a.indices.dims = {7, 2};
     }},
    {"topk 0",
     kInvalid,
     {"topk of indices", "got 0"},
     [](A& a) {
       a.indices.dims = {6, 0};
     }},
    {"topk 600 (case E4)",
     kInvalid,
     {"topk of indices", "512", "got 600"},
     [](A& a) {
       a.indices.dims = {6, 600};
     }},
    {"more slots than INT32 positions",
     kInvalid,
     {"indices", "2147483647", "[4194304, 512]"},
     [](A& a) {
       a.tokens.dims = {1 << 22, 3};
       a.indices.dims = {1 << 22, 512};
     }},
    {"permuted hidden",
     kInvalid,
     {"permuteTokensOut", "as in tokens"},
     [](A& a) { a.permuted.dims.back() = 4; }},
    {"permuted of another rank",
     kInvalid,
     {"permuteTokensOut", "2 dimensions"},
     [](A& a) { a.permuted.dims.push_back(1); }},
    {"sorted indices length",
     kInvalid,
     {"sortedIndicesOut", "12", "[7]"},
     [](A& a) { a.sorted_indices.dims = {7}; }},
    {"permuted rows share memory",
     kInvalid,
     {"permuteTokensOut", "overlap", "[0, 1]"},
     [](A& a) {
       a.permuted.layout = Layout{{0, 1}, 0};
     }},
    {"permuted rows overlap",
     kInvalid,
     {"permuteTokensOut", "overlap", "[2, 1]"},
     [](A& a) {
       a.permuted.layout = Layout{{2, 1}, 0};
     }},
    {"rows of inner dimensions that overlap",
     kInvalid,
     {"permuteTokensOut", "overlap", "[6, 2, 1]"},
     [](A& a) {
       a.tokens.dims = {6, 2, 3};
       a.permuted.dims = {a.permuted.dims[0], 2, 3};
       a.permuted.layout = Layout{{6, 2, 1}, 0};
     }},
    {"sorted indices in one element",
     kInvalid,
     {"sortedIndicesOut", "overlap", "[0]"},
     [](A& a) {
       a.sorted_indices.layout = Layout{{0}, 0};
     }},
    {"pointers come before types",
     kNull,
     {"sortedIndicesOut"},
     [](A& a) {
       a.tokens.dtype = DType::kBool;
       a.sorted_indices.null = true;
     }},
    {"types come before formats",
     kInvalid,
     {"type of sortedIndicesOut"},
     [](A& a) {
       a.tokens.format = ACL_FORMAT_NCHW;
       a.sorted_indices.dtype = DType::kInt64;
     }},
    {"formats come before attributes",
     kInvalid,
     {"format of sortedIndicesOut"},
     [](A& a) {
       a.padded_mode = true;
       a.sorted_indices.format = ACL_FORMAT_NCHW;
     }},
    {"attributes come before ranks",
     kInvalid,
     {"paddedMode"},
     [](A& a) {
       a.tokens.dims = {18};
       a.padded_mode = true;
     }},
    {"ranks come before shapes",
     kInvalid,
     {"sortedIndicesOut must have 1 dimension"},
     [](A& a) {
       a.indices.dims = {7, 2};
       a.sorted_indices.dims = {6, 2};
     }},
};

TEST(Permute, RefusesWrongCalls) {
  for (const PermuteRefusal& refusal : kRefusals) {
    expect_refused(refusal, base_arguments(), &base);
    expect_refused(refusal, {}, &ep);
  }
  expect_outputs_required(base_arguments(), &base);
  expect_outputs_required(A(), &ep);
}

TEST(Permute, RefusesRowsThatNumOutTokensDoesNotKeep) {
  struct Kept {
    int64_t num_out_tokens;
    int64_t rows;
  };
  // Cases B17R (0 keeps all) and B18R (below −T keeps none).
  for (const Kept& kept : {Kept{0, 12}, Kept{5, 5}, Kept{12, 12}, Kept{99, 12}, Kept{-3, 9},
                           Kept{-12, 0}, Kept{-13, 0}, Kept{INT64_MIN, 0}, Kept{INT64_MAX, 12}}) {
    A a;
    a.num_out_tokens = kept.num_out_tokens;
    a.permuted.dims = {kept.rows, 3};
    expect_accepted("exactly those rows", a, &base);
    a.range.reset();
    expect_accepted("exactly those rows without a range", a, &ep);
    a.permuted.dims = {kept.rows + 1, 3};
    expect_refused<A>({"a row more", kInvalid, {"permuteTokensOut", "numOutTokens"}, [](A&) {}}, a,
                      &base);
  }
}

const PermuteRefusal kEpRefusals[] = {
    {"probs out null", kNull, {"permuteProbsOut"}, [](A& a) { a.permuted_probs.null = true; }},
    {"probs out null though no probs",
     kNull,
     {"permuteProbsOut"},
     [](A& a) { a.probs.null = a.permuted_probs.null = true; }},
    {"INT8 tokens",
     kInvalid,
     {"tokens", "INT8"},
     [](A& a) {
       for (TensorArgument* t : {&a.tokens, &a.permuted, &a.probs, &a.permuted_probs}) {
         t->dtype = DType::kInt8;
       }
     }},
    {"probs of another type",
     kInvalid,
     {"probsOptional and tokens", "BFLOAT16"},
     [](A& a) { a.probs.dtype = DType::kBfloat16; }},
    {"probs out of another type",
     kInvalid,
     {"permuteProbsOut and tokens"},
     [](A& a) { a.permuted_probs.dtype = DType::kBfloat16; }},
    {"probs format",
     kInvalid,
     {"format of probsOptional"},
     [](A& a) { a.probs.format = ACL_FORMAT_NCHW; }},
    {"probs out format",
     kInvalid,
     {"format of permuteProbsOut"},
     [](A& a) { a.permuted_probs.format = ACL_FORMAT_NCHW; }},
    {"range of 1",
     kInvalid,
     {"rangeOptional", "got 1"},
     [](A& a) { a.range = std::vector<int64_t>{2}; }},
    {"range of 3 (case M5R)",
     kInvalid,
     {"rangeOptional", "got 3"},
     [](A& a) {
       a.range = std::vector<int64_t>{0, 2, 4};
     }},
    {"range begins below 0",
     kInvalid,
     {"rangeOptional", "[-1, 4]"},
     [](A& a) {
       a.range = std::vector<int64_t>{-1, 4};
     }},
    {"range backwards",
     kInvalid,
     {"rangeOptional", "[5, 2]"},
     [](A& a) {
       a.range = std::vector<int64_t>{5, 2};
     }},
    {"range beyond the slots",
     kInvalid,
     {"rangeOptional", "12", "got 13"},
     [](A& a) {
       a.range = std::vector<int64_t>{8, 13};
     }},
    {"probs shape",
     kInvalid,
     {"probsOptional", "[6, 2]", "[6, 3]"},
     [](A& a) {
       a.probs.dims = {6, 3};
     }},
    {"probs rank",
     kInvalid,
     {"probsOptional", "[6, 2]", "[12]"},
     [](A& a) { a.probs.dims = {12}; }},
    {"fewer rows than the range (case C15R)",
     kInvalid,
     {"permuteTokensOut", "at least 7", "[6, 3]"},
     [](A& a) {
       a.permuted.dims = {6, 3};
     }},
    {"fewer probs than the range",
     kInvalid,
     {"permuteProbsOut", "at least 7", "[6]"},
     [](A& a) { a.permuted_probs.dims = {6}; }},
    {"probs out in one element",
     kInvalid,
     {"permuteProbsOut", "overlap", "[0]"},
     [](A& a) {
       a.permuted_probs.layout = Layout{{0}, 0};
     }},
};

TEST(PermuteWithEp, RefusesWrongCalls) {
  for (const PermuteRefusal& refusal : kEpRefusals) expect_refused(refusal, {}, &ep);
}

TEST(PermuteWithEp, AcceptsWhatIsUnusualButRight) {
  expect_accepted("the valid call", A(), &ep);
  A a;
  a.range = std::vector<int64_t>{12, 12};
  expect_accepted("no position, and rows to spare", a, &ep);
  a.permuted.dims = {0, 3};
  a.permuted_probs.dims = {0};
  expect_accepted("no position and no row", a, &ep);
  a = {};
  a.num_out_tokens = 1;
  expect_accepted("numOutTokens beside a range", a, &ep);
  a = {};
  a.permuted.dims = {14, 3};
  a.permuted_probs.dims = {14};
  expect_accepted("the page's (r1 - r0) * topk rows", a, &ep);
  a = {};
  a.range = std::vector<int64_t>{};
  a.permuted.dims = {12, 3};
  a.probs.dtype = DType::kInt8;
  a.permuted_probs.null = true;
  expect_accepted("ignored probabilities", a, &ep);
  a = {};
  a.tokens.layout = Layout{{0, 0}, 9};
  a.permuted.layout = Layout{{1, 7}, 0};
  expect_accepted("repeated input, transposed output", a, &ep);
}

// Case A10R: sizes beyond 32 bits are told as they are. No row is in the workspace, only slots are.
TEST(Permute, TellsWorkspacesBeyond32Bits) {
  constexpr int64_t kTokens = (int64_t{1} << 22) - 1;
  constexpr int64_t kSlots = kTokens * 512;
  A a = base_arguments();
  a.tokens.dims = {kTokens, 3};
  a.indices.dims = {kTokens, 512};
  a.permuted.dims = {kSlots, 3};
  a.sorted_indices.dims = {kSlots};
  Planned planned;
  ASSERT_EQ(base(a, &planned.workspace_size, &planned.executor), ACL_SUCCESS);
  EXPECT_GE(planned.workspace_size, uint64_t{2 * 4 * kSlots});
  EXPECT_LT(planned.workspace_size, uint64_t{2 * 4 * kSlots + kSlots});
  EXPECT_EQ(aclDestroyAclOpExecutor(planned.executor), ACL_SUCCESS);
}

TEST(Permute, AcceptsEmptyTensors) {
  A a = base_arguments();
  a.tokens.dims = {0, 3};
  a.indices.dims = {0, 2};
  a.permuted.dims = {0, 3};
  a.sorted_indices.dims = {0};
  expect_accepted("no tokens", a, &base);
  a = base_arguments();
  a.tokens.dims = {6, 0, int64_t{1} << 40, int64_t{1} << 40};
  a.permuted.dims = {12, 0, int64_t{1} << 40, int64_t{1} << 40};
  a.tokens.layout = a.permuted.layout = Layout{{1, 1, 1, 1}, 0};
  expect_accepted("hidden 0", a, &base);
}

}  // namespace
}  // namespace npuless::moe_token_permute
