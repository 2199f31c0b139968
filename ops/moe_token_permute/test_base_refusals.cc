// Every way to call aclnnMoeTokenPermuteGrad wrongly, and what both gradients accept although it
// looks wrong.
#include "moe_token_permute/test_arguments.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kBase[] = "aclnnMoeTokenPermuteGradGetWorkspaceSize";

Arguments base_arguments() {
  Arguments a;
  a.range.reset();
  a.grad.dims = {12, 3};
  return a;
}

const Refusal kBaseRefusals[] = {
    {"grad null", kNull, {kBase, "permutedOutputGrad"}, [](Arguments& a) { a.grad.null = true; }},
    {"indices null", kNull, {"sortedIndices"}, [](Arguments& a) { a.indices.null = true; }},
    {"out null", kNull, {"out must"}, [](Arguments& a) { a.token_grad.null = true; }},
    {"workspaceSize null",
     kNull,
     {"workspaceSize"},
     [](Arguments& a) { a.workspace_size_null = true; }},
    {"executor null", kNull, {"executor"}, [](Arguments& a) { a.executor_null = true; }},
    {"grad type",
     kInvalid,
     {"permutedOutputGrad", "INT64"},
     [](Arguments& a) { a.grad.dtype = DType::kInt64; }},
    {"indices type",
     kInvalid,
     {"sortedIndices", "FLOAT"},
     [](Arguments& a) { a.indices.dtype = DType::kFloat32; }},
    {"out type",
     kInvalid,
     {"out", "FLOAT16"},
     [](Arguments& a) { a.token_grad.dtype = DType::kFloat16; }},
    {"out format",
     kInvalid,
     {"format of out"},
     [](Arguments& a) { a.token_grad.format = ACL_FORMAT_NCHW; }},
    {"topk 0", kInvalid, {"numTopk"}, [](Arguments& a) { a.topk = 0; }},
    {"topk 513 (case E4)", kInvalid, {"numTopk"}, [](Arguments& a) { a.topk = 513; }},
    {"padded mode", kInvalid, {"paddedMode"}, [](Arguments& a) { a.padded_mode = true; }},
    {"grad rank", kInvalid, {"permutedOutputGrad"}, [](Arguments& a) { a.grad.dims = {36}; }},
    {"indices rank",
     kInvalid,
     {"sortedIndices"},
     [](Arguments& a) {
       a.indices.dims = {6, 2};
     }},
    {"out rank", kInvalid, {"out must"}, [](Arguments& a) { a.token_grad.dims = {18}; }},
    {"slots no multiple of topk",
     kInvalid,
     {"sortedIndices", "numTopk"},
     [](Arguments& a) { a.topk = 5; }},
    {"more slots than positions",
     kInvalid,
     {"sortedIndices", "2147483647", "got 2147483648"},
     [](Arguments& a) { a.indices.dims = {int64_t{1} << 31}; }},
    {"out rows",
     kInvalid,
     {"out must", "[7, 3]"},
     [](Arguments& a) {
       a.token_grad.dims = {7, 3};
     }},
    {"out hidden",
     kInvalid,
     {"out must", "[6, 2]"},
     [](Arguments& a) {
       a.token_grad.dims = {6, 2};
     }},
    {"out rows share memory",
     kInvalid,
     {"out must", "overlap"},
     [](Arguments& a) {
       a.token_grad.layout = Layout{{0, 1}, 0};
     }},
};

TEST(PermuteGrad, RefusesWrongCalls) {
  for (const Refusal& refusal : kBaseRefusals) {
    expect_refused(refusal, base_arguments(), &Prepared::base);
  }
}

TEST(PermuteWithEpGrad, AcceptsWhatIsUnusualButRight) {
  expect_accepted("the valid call", {}, &Prepared::ep);
  Arguments a;
  a.range = std::vector<int64_t>{12, 12};
  expect_accepted("an empty range at the end", a, &Prepared::ep);
  a = {};
  a.grad.dims = {14, 3};
  a.probs_grad.dims = {14};
  expect_accepted("the page's (r1 - r0) * topk rows", a, &Prepared::ep);
  a = {};
  a.grad.layout = Layout{{0, 0}, 9};
  a.probs_grad.layout = Layout{{0}, 0};
  expect_accepted("inputs that repeat one element", a, &Prepared::ep);
  a = {};
  a.token_grad.layout = Layout{{2, 13}, 0};
  expect_accepted("columns further apart than rows", a, &Prepared::ep);
  a = {};
  a.range = std::vector<int64_t>{};
  a.probs_grad.dtype = DType::kInt8;
  a.probs_out.null = true;
  expect_accepted("ignored probabilities", a, &Prepared::ep);
  a = {};
  a.topk = 12;
  a.token_grad.dims = {1, 3};
  a.token_grad.layout = Layout{{0, 1}, 0};
  a.probs_out.dims = {1, 12};
  expect_accepted("row stride 0 of a single row", a, &Prepared::ep);
}

TEST(PermuteGrad, AcceptsRowsThatDoNotMatchTheSlots) {
  for (const int64_t rows : {1, 5, 13, 1000}) {
    Arguments a = base_arguments();
    a.grad.dims = {rows, 3};
    expect_accepted("rows dropped or to spare", a, &Prepared::base);
  }
}

}  // namespace
}  // namespace npuless::moe_token_permute
