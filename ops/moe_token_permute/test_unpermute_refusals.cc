// Every way to call the unpermutes and their gradients wrongly: its code, a sentence that names the
// argument, and outputs of phase 1 left alone. Cases that are refusals: M5R; E4's K = 600.
#include "moe_token_permute/test_unpermute_arguments.h"

namespace npuless::moe_token_permute {
namespace {

using A = UnpermuteArguments;
using Dims = std::vector<int64_t>;

// What both directions refuse, in words that fit both.
const UnpermuteRefusal kSharedRefusals[] = {
    {"indices null", kBoth, kNull, {"sortedIndices"}, [](A& a) { a.indices.null = true; }},
    {"size null", kBoth, kNull, {"workspaceSize"}, [](A& a) { a.workspace_size_null = true; }},
    {"executor null", kBoth, kNull, {"executor"}, [](A& a) { a.executor_null = true; }},
    {"permuted null",
     kBoth,
     kNull,
     {"aclnnMoeTokenUnpermute", "permutedTokens"},
     [](A& a) { a.permuted.null = true; }},
    {"permuted type",
     kBoth,
     kInvalid,
     {"permutedTokens", "INT8"},
     [](A& a) { a.permuted.dtype = DType::kInt8; }},
    {"indices INT64",
     kBoth,
     kInvalid,
     {"sortedIndices", "INT32", "INT64"},
     [](A& a) { a.indices.dtype = DType::kInt64; }},
    {"probs type",
     kBoth,
     kInvalid,
     {"probsOptional", "INT32"},
     [](A& a) { a.probs.dtype = DType::kInt32; }},
    {"permuted format",
     kBoth,
     kInvalid,
     {"format of permutedTokens", "ND"},
     [](A& a) { a.permuted.format = ACL_FORMAT_NCHW; }},
    {"indices format",
     kBoth,
     kInvalid,
     {"format of sortedIndices"},
     [](A& a) { a.indices.format = ACL_FORMAT_NHWC; }},
    {"probs format",
     kBoth,
     kInvalid,
     {"format of probsOptional"},
     [](A& a) { a.probs.format = ACL_FORMAT_NCHW; }},
    {"padded mode", kBoth, kInvalid, {"paddedMode"}, [](A& a) { a.padded_mode = true; }},
    {"topk 0", kEp, kInvalid, {"opk", "512", "got 0"}, [](A& a) { a.topk = 0; }},
    {"topk 600", kEp, kInvalid, {"opk", "got 600"}, [](A& a) { a.topk = 600; }},
    {"topk differs from the columns",
     kEp,
     kInvalid,
     {"probsOptional", "3", "[6, 2]"},
     [](A& a) { a.topk = 3; }},
    {"no columns",
     kBase,
     kInvalid,
     {"probsOptional", "got 0"},
     [](A& a) {
       a.probs.dims = {6, 0};
     }},
    {"600 columns (E4)",
     kBase,
     kInvalid,
     {"probsOptional", "512", "got 600"},
     [](A& a) {
       a.probs.dims = {6, 600};
     }},
    {"range of 1", kEp, kInvalid, {"rangeOptional", "got 1"}, [](A& a) { a.range = Dims{2}; }},
    {"range of 3 (M5R)",
     kEp,
     kInvalid,
     {"rangeOptional", "2 elements", "got 3"},
     [](A& a) {
       a.range = Dims{0, 2, 4};
     }},
    {"range begins below 0",
     kEp,
     kInvalid,
     {"rangeOptional", "[-1, 4]"},
     [](A& a) {
       a.range = Dims{-1, 4};
     }},
    {"range backwards",
     kEp,
     kInvalid,
     {"rangeOptional", "[5, 2]"},
     [](A& a) {
       a.range = Dims{5, 2};
     }},
    {"range beyond the slots",
     kEp,
     kInvalid,
     {"rangeOptional", "12", "got 13"},
     [](A& a) {
       a.range = Dims{8, 13};
     }},
    {"fewer rows than the range",
     kEp,
     kInvalid,
     {"permutedTokens", "at least 7", "[6, 3]"},
     [](A& a) {
       a.permuted.dims = {6, 3};
     }},
    {"permuted rank",
     kBoth,
     kInvalid,
     {"permutedTokens", "2 dimensions"},
     [](A& a) { a.permuted.dims = {36}; }},
    {"indices rank",
     kBoth,
     kInvalid,
     {"sortedIndices", "1 dimension", "[6, 2]"},
     [](A& a) {
       a.indices.dims = {6, 2};
     }},
    {"probs rank",
     kBoth,
     kInvalid,
     {"probsOptional", "2 dimensions"},
     [](A& a) { a.probs.dims = {12}; }},
    {"probs rows",
     kBoth,
     kInvalid,
     {"probsOptional", "6", "[5, 2]"},
     [](A& a) {
       a.probs.dims = {5, 2};
     }},
    {"slots no multiple of topk",
     kBoth,
     kInvalid,
     {"sortedIndices", "multiple", "got 13"},
     [](A& a) { a.indices.dims = {13}; }},
    {"more slots than positions",
     kBase,
     kInvalid,
     {"sortedIndices", "2147483647", "got 2147483648"},
     [](A& a) { a.indices.dims = {int64_t{1} << 31}; }},
    {"negative stride",
     kBoth,
     kInvalid,
     {"permutedTokens", "negative"},
     [](A& a) {
       a.permuted.layout = Layout{{-3, 1}, 0};
     }},
    {"negative offset",
     kBoth,
     kInvalid,
     {"sortedIndices", "offset"},
     [](A& a) {
       a.indices.layout = Layout{{1}, -4};
     }},
    {"beyond the address space",
     kBoth,
     kInvalid,
     {"probsOptional", "address space"},
     [](A& a) {
       a.probs.layout = Layout{{INT64_MAX / 2, 1}, 0};
     }},
    {"attributes come before ranks",
     kBoth,
     kInvalid,
     {"paddedMode"},
     [](A& a) {
       a.indices.dims = {6, 2};
       a.padded_mode = true;
     }},
};

const UnpermuteRefusal kForwardRefusals[] = {
    {"out null", kBoth, kNull, {"out must"}, [](A& a) { a.out.null = true; }},
    {"out type",
     kBoth,
     kInvalid,
     {"out and permutedTokens", "FLOAT16"},
     [](A& a) { a.out.dtype = DType::kFloat16; }},
    {"out format",
     kBoth,
     kInvalid,
     {"format of out"},
     [](A& a) { a.out.format = ACL_FORMAT_NCHW; }},
    {"out rank", kBoth, kInvalid, {"out must"}, [](A& a) { a.out.dims = {18}; }},
    {"out rows",
     kBoth,
     kInvalid,
     {"out must", "[7, 3]"},
     [](A& a) {
       a.out.dims = {7, 3};
     }},
    {"out hidden",
     kBoth,
     kInvalid,
     {"out must", "[6, 4]"},
     [](A& a) {
       a.out.dims = {6, 4};
     }},
    {"out rows share memory",
     kBoth,
     kInvalid,
     {"out must", "overlap"},
     [](A& a) {
       a.out.layout = Layout{{0, 1}, 0};
     }},
    {"several slots per token without probs",
     kBase,
     kInvalid,
     {"out must", "12", "[6, 3]"},
     [](A& a) { a.probs.null = true; }},
    {"pointers come before types",
     kBoth,
     kNull,
     {"out must"},
     [](A& a) {
       a.permuted.dtype = DType::kInt8;
       a.out.null = true;
     }},
};

const UnpermuteRefusal kGradRefusals[] = {
    {"grad null", kBoth, kNull, {"unpermutedTokensGrad"}, [](A& a) { a.grad.null = true; }},
    {"permuted grad null",
     kBoth,
     kNull,
     {"permutedTokensGradOut"},
     [](A& a) { a.permuted_grad.null = true; }},
    {"probs grad null", kBoth, kNull, {"probsGradOut"}, [](A& a) { a.probs_grad.null = true; }},
    {"probs grad null though no probs",
     kBoth,
     kNull,
     {"probsGradOut"},
     [](A& a) { a.probs.null = a.probs_grad.null = true; }},
    {"grad type",
     kBoth,
     kInvalid,
     {"unpermutedTokensGrad", "INT64"},
     [](A& a) { a.grad.dtype = DType::kInt64; }},
    {"permuted of another type",
     kBoth,
     kInvalid,
     {"permutedTokensOptional and unpermutedTokensGrad", "FLOAT16"},
     [](A& a) { a.permuted.dtype = DType::kFloat16; }},
    {"permuted grad of another type",
     kBoth,
     kInvalid,
     {"permutedTokensGradOut and unpermutedTokensGrad"},
     [](A& a) { a.permuted_grad.dtype = DType::kFloat16; }},
    {"probs grad of the tokens' type (I6R)",
     kBoth,
     kInvalid,
     {"probsGradOut and probsOptional", "BFLOAT16"},
     [](A& a) { a.probs_grad.dtype = DType::kBfloat16; }},
    {"grad format",
     kBoth,
     kInvalid,
     {"format of unpermutedTokensGrad"},
     [](A& a) { a.grad.format = ACL_FORMAT_NCHW; }},
    {"grad rank",
     kBoth,
     kInvalid,
     {"unpermutedTokensGrad", "2 dimensions"},
     [](A& a) { a.grad.dims = {18}; }},
    {"grad rows",
     kBoth,
     kInvalid,
     {"unpermutedTokensGrad", "[7, 3]"},
     [](A& a) {
       a.grad.dims = {7, 3};
     }},
    {"permuted hidden",
     kBoth,
     kInvalid,
     {"permutedTokensOptional", "hidden"},
     [](A& a) { a.permuted.dims[1] = 4; }},
    {"permuted grad hidden",
     kBoth,
     kInvalid,
     {"permutedTokensGradOut", "hidden"},
     [](A& a) { a.permuted_grad.dims[1] = 4; }},
    {"permuted grad rows",
     kBase,
     kInvalid,
     {"permutedTokensGradOut", "12", "[11, 3]"},
     [](A& a) {
       a.permuted_grad.dims = {11, 3};
     }},
    {"fewer permuted grad rows than the range",
     kEp,
     kInvalid,
     {"permutedTokensGradOut", "at least 7", "[6, 3]"},
     [](A& a) {
       a.permuted_grad.dims = {6, 3};
     }},
    {"probs grad rows",
     kBoth,
     kInvalid,
     {"probsGradOut", "[7, 2]"},
     [](A& a) {
       a.probs_grad.dims = {7, 2};
     }},
    {"probs grad columns",
     kBoth,
     kInvalid,
     {"probsGradOut", "[6, 3]"},
     [](A& a) {
       a.probs_grad.dims = {6, 3};
     }},
    {"permuted grad rows share memory",
     kBoth,
     kInvalid,
     {"permutedTokensGradOut", "overlap"},
     [](A& a) {
       a.permuted_grad.layout = Layout{{2, 1}, 0};
     }},
    {"probs grad in one element",
     kBoth,
     kInvalid,
     {"probsGradOut", "overlap"},
     [](A& a) {
       a.probs_grad.layout = Layout{{0, 0}, 0};
     }},
    {"more rows than positions, though they are empty",
     kBoth,
     kInvalid,
     {"rows of permutedTokensGradOut", "2147483647", "got 4611686018427387904"},
     [](A& a) {
       a.range.reset();
       a.permuted.dims = a.permuted_grad.dims = {int64_t{1} << 62, 0};
       a.grad.dims[1] = 0;
     }},
    {"types come before formats",
     kBoth,
     kInvalid,
     {"probsGradOut and"},
     [](A& a) {
       a.grad.format = ACL_FORMAT_NCHW;
       a.probs_grad.dtype = DType::kInt8;
     }},
};

TEST(Unpermute, RefusesWrongCalls_M5R_E4) {
  expect_all_refused(kSharedRefusals, kForward);
  expect_all_refused(kForwardRefusals, kForward);
}

TEST(UnpermuteGrad, RefusesWrongCalls_M5R_E4_I6R) {
  expect_all_refused(kSharedRefusals, kGradient);
  expect_all_refused(kGradRefusals, kGradient);
}

void expect_accepted_by_both(const char* title, const A& arguments) {
  expect_accepted(title, arguments, kForward);
  expect_accepted(title, arguments, kGradient);
}

TEST(UnpermuteWithEp, AcceptsWhatIsUnusualButRight) {
  A a(true);
  expect_accepted_by_both("the valid call", a);
  a.range = Dims{12, 12};
  expect_accepted_by_both("an empty range at the end", a);
  a = A(true);
  a.permuted.dims = a.permuted_grad.dims = {14, 3};
  expect_accepted_by_both("the page's (r1 - r0) * topk rows", a);
  a = A(true);
  a.permuted_grad.dims = {9, 3};
  expect_accepted("more rows put out than given", a, kGradient);
  a = A(true);
  a.permuted.layout = a.grad.layout = a.probs.layout = Layout{{0, 0}, 9};
  expect_accepted_by_both("inputs that repeat one element", a);
  a = A(true);
  a.probs.null = a.permuted.null = true;
  a.probs_grad.dtype = DType::kInt8;
  expect_accepted("several slots per token without probabilities", a, kGradient);
}

TEST(Unpermute, AcceptsRowsThatDoNotMatchTheSlots) {
  for (const int64_t rows : {0, 1, 5, 13, 1000}) {
    A a(false);
    a.permuted.dims = a.permuted_grad.dims = {rows, 3};
    expect_accepted_by_both("rows dropped or to spare", a);
    a.probs.null = a.permuted.null = true;
    a.indices.dims = {6};
    expect_accepted("no probabilities and no permuted tokens", a, kGradient);
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
