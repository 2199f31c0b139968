// Every way to call aclnnMoeTokenPermuteWithEpGrad wrongly: its code, a sentence that names the
// argument, and outputs of phase 1 left alone.
#include "moe_token_permute/test_arguments.h"

namespace npuless::moe_token_permute {
namespace {

constexpr char kEp[] = "aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize";

const Refusal kEpRefusals[] = {
    {"grad null",
     kNull,
     {kEp, "permutedTokensOutputGrad"},
     [](Arguments& a) { a.grad.null = true; }},
    {"indices null", kNull, {kEp, "sortedIndices"}, [](Arguments& a) { a.indices.null = true; }},
    {"token grad null", kNull, {"tokenGradOut"}, [](Arguments& a) { a.token_grad.null = true; }},
    {"probs out null", kNull, {"probsGradOut"}, [](Arguments& a) { a.probs_out.null = true; }},
    {"probs out null though no probs",
     kNull,
     {"probsGradOut"},
     [](Arguments& a) { a.probs_grad.null = a.probs_out.null = true; }},
    {"workspaceSize null",
     kNull,
     {"workspaceSize"},
     [](Arguments& a) { a.workspace_size_null = true; }},
    {"executor null", kNull, {"executor"}, [](Arguments& a) { a.executor_null = true; }},

    {"grad type",
     kInvalid,
     {"permutedTokensOutputGrad", "INT8"},
     [](Arguments& a) { a.grad.dtype = DType::kInt8; }},
    {"indices INT64",
     kInvalid,
     {"sortedIndices", "INT32", "INT64"},
     [](Arguments& a) { a.indices.dtype = DType::kInt64; }},
    {"probs of another type",
     kInvalid,
     {"permutedProbsOutputGradOptional", "FLOAT16"},
     [](Arguments& a) { a.probs_grad.dtype = DType::kFloat16; }},
    {"token grad of another type",
     kInvalid,
     {"tokenGradOut", "BFLOAT16"},
     [](Arguments& a) { a.token_grad.dtype = DType::kBfloat16; }},
    {"probs out of another type",
     kInvalid,
     {"probsGradOut", "FLOAT16"},
     [](Arguments& a) { a.probs_out.dtype = DType::kFloat16; }},

    {"grad format",
     kInvalid,
     {"permutedTokensOutputGrad", "ND"},
     [](Arguments& a) { a.grad.format = ACL_FORMAT_NCHW; }},
    {"indices format",
     kInvalid,
     {"sortedIndices", "ND"},
     [](Arguments& a) { a.indices.format = ACL_FORMAT_NHWC; }},
    {"probs format",
     kInvalid,
     {"permutedProbsOutputGradOptional", "ND"},
     [](Arguments& a) { a.probs_grad.format = ACL_FORMAT_NCHW; }},
    {"token grad format",
     kInvalid,
     {"tokenGradOut", "ND"},
     [](Arguments& a) { a.token_grad.format = ACL_FORMAT_NCHW; }},
    {"probs out format",
     kInvalid,
     {"probsGradOut", "ND"},
     [](Arguments& a) { a.probs_out.format = ACL_FORMAT_NCHW; }},

    {"topk 0", kInvalid, {"numTopk", "512", "got 0"}, [](Arguments& a) { a.topk = 0; }},
    {"topk negative", kInvalid, {"numTopk", "got -1"}, [](Arguments& a) { a.topk = -1; }},
    {"topk 513 (case E4)", kInvalid, {"numTopk", "got 513"}, [](Arguments& a) { a.topk = 513; }},
    {"range of 1",
     kInvalid,
     {"rangeOptional", "got 1"},
     [](Arguments& a) { a.range = std::vector<int64_t>{2}; }},
    {"range of 3 (case M5R)",
     kInvalid,
     {"rangeOptional", "got 3"},
     [](Arguments& a) {
       a.range = std::vector<int64_t>{0, 2, 4};
     }},
    {"range begins below 0",
     kInvalid,
     {"rangeOptional", "[-1, 4]"},
     [](Arguments& a) {
       a.range = std::vector<int64_t>{-1, 4};
     }},
    {"range backwards",
     kInvalid,
     {"rangeOptional", "[5, 2]"},
     [](Arguments& a) {
       a.range = std::vector<int64_t>{5, 2};
     }},
    {"range beyond the slots",
     kInvalid,
     {"rangeOptional", "12", "got 13"},
     [](Arguments& a) {
       a.range = std::vector<int64_t>{8, 13};
     }},
    {"padded mode", kInvalid, {"paddedMode"}, [](Arguments& a) { a.padded_mode = true; }},

    {"grad rank",
     kInvalid,
     {"permutedTokensOutputGrad", "2 dimensions", "[7, 3, 1]"},
     [](Arguments& a) {
       a.grad.dims = {7, 3, 1};
     }},
    {"indices rank",
     kInvalid,
     {"sortedIndices", "1 dimension", "[6, 2]"},
     [](Arguments& a) {
       a.indices.dims = {6, 2};
     }},
    {"probs rank",
     kInvalid,
     {"permutedProbsOutputGradOptional", "1 dimension"},
     [](Arguments& a) {
       a.probs_grad.dims = {7, 1};
     }},
    {"token grad rank",
     kInvalid,
     {"tokenGradOut", "2 dimensions"},
     [](Arguments& a) {
       a.token_grad.dims = {6, 3, 1};
     }},
    {"probs out rank",
     kInvalid,
     {"probsGradOut", "2 dimensions"},
     [](Arguments& a) { a.probs_out.dims = {12}; }},

    {"grad without rows",
     kInvalid,
     {"permutedTokensOutputGrad", "empty", "[0, 3]"},
     [](Arguments& a) {
       a.grad.dims = {0, 3};
       a.range = std::vector<int64_t>{4, 4};
     }},
    {"hidden 0",
     kInvalid,
     {"permutedTokensOutputGrad", "empty"},
     [](Arguments& a) {
       a.grad.dims = {7, 0};
       a.token_grad.dims = {6, 0};
     }},
    {"no slots",
     kInvalid,
     {"sortedIndices", "empty"},
     [](Arguments& a) {
       a.indices.dims = {0};
       a.token_grad.dims = {0, 3};
       a.probs_out.dims = {0, 2};
       a.range = std::vector<int64_t>{0, 0};
     }},
    {"no slots and no range",
     kInvalid,
     {"sortedIndices", "empty"},
     [](Arguments& a) {
       a.indices.dims = {0};
       a.token_grad.dims = {0, 3};
       a.range.reset();
     }},
    {"slots no multiple of topk",
     kInvalid,
     {"sortedIndices", "numTopk", "got 13"},
     [](Arguments& a) { a.indices.dims = {13}; }},
    {"fewer rows than the range (case C15R)",
     kInvalid,
     {"permutedTokensOutputGrad", "at least 7", "[6, 3]"},
     [](Arguments& a) {
       a.grad.dims = {6, 3};
     }},
    {"fewer probs than the range",
     kInvalid,
     {"permutedProbsOutputGradOptional", "at least 7", "[6]"},
     [](Arguments& a) { a.probs_grad.dims = {6}; }},
    {"token grad rows",
     kInvalid,
     {"tokenGradOut", "[5, 3]"},
     [](Arguments& a) {
       a.token_grad.dims = {5, 3};
     }},
    {"token grad hidden",
     kInvalid,
     {"tokenGradOut", "[6, 4]"},
     [](Arguments& a) {
       a.token_grad.dims = {6, 4};
     }},
    {"probs out rows",
     kInvalid,
     {"probsGradOut", "[7, 2]"},
     [](Arguments& a) {
       a.probs_out.dims = {7, 2};
     }},
    {"probs out topk",
     kInvalid,
     {"probsGradOut", "[6, 3]"},
     [](Arguments& a) {
       a.probs_out.dims = {6, 3};
     }},
    {"probs out shape though no probs",
     kInvalid,
     {"probsGradOut", "[6, 3]"},
     [](Arguments& a) {
       a.probs_grad.null = true;
       a.probs_out.dims = {6, 3};
     }},

    {"negative stride",
     kInvalid,
     {"permutedTokensOutputGrad", "negative"},
     [](Arguments& a) {
       a.grad.layout = Layout{{-3, 1}, 0};
     }},
    {"negative offset",
     kInvalid,
     {"sortedIndices", "offset"},
     [](Arguments& a) {
       a.indices.layout = Layout{{1}, -4};
     }},
    {"beyond the address space",
     kInvalid,
     {"permutedTokensOutputGrad", "address space"},
     [](Arguments& a) {
       a.grad.layout = Layout{{INT64_MAX / 2, 1}, 0};
     }},
    {"token grad rows share memory",
     kInvalid,
     {"tokenGradOut", "overlap", "[0, 1]"},
     [](Arguments& a) {
       a.token_grad.layout = Layout{{0, 1}, 0};
     }},
    {"token grad columns share memory",
     kInvalid,
     {"tokenGradOut", "overlap", "[3, 0]"},
     [](Arguments& a) {
       a.token_grad.layout = Layout{{3, 0}, 0};
     }},
    {"token grad rows overlap",
     kInvalid,
     {"tokenGradOut", "overlap", "[2, 1]"},
     [](Arguments& a) {
       a.token_grad.layout = Layout{{2, 1}, 0};
     }},
    {"probs out in one element",
     kInvalid,
     {"probsGradOut", "overlap", "[0, 0]"},
     [](Arguments& a) {
       a.probs_out.layout = Layout{{0, 0}, 0};
     }},

    {"pointers come before types",
     kNull,
     {"probsGradOut"},
     [](Arguments& a) {
       a.grad.dtype = DType::kInt8;
       a.probs_out.null = true;
     }},
    {"types come before formats",
     kInvalid,
     {"probsGradOut and"},
     [](Arguments& a) {
       a.grad.format = ACL_FORMAT_NCHW;
       a.probs_out.dtype = DType::kInt8;
     }},
    {"formats come before attributes",
     kInvalid,
     {"format of probsGradOut"},
     [](Arguments& a) {
       a.topk = 0;
       a.probs_out.format = ACL_FORMAT_NCHW;
     }},
    {"attributes come before ranks",
     kInvalid,
     {"paddedMode"},
     [](Arguments& a) {
       a.grad.dims = {7};
       a.padded_mode = true;
     }},
    {"ranks come before shapes",
     kInvalid,
     {"probsGradOut must have 2 dimensions"},
     [](Arguments& a) {
       a.grad.dims = {0, 3};
       a.probs_out.dims = {6};
     }},
};

TEST(PermuteWithEpGrad, RefusesWrongCalls) {
  for (const Refusal& refusal : kEpRefusals) expect_refused(refusal, {}, &Prepared::ep);
}

}  // namespace
}  // namespace npuless::moe_token_permute
