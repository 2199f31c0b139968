// Every way to call the permute with a routing map and its gradient wrongly, and what they accept
// although it looks wrong.
#include "moe_token_permute/test_map_problem.h"
#include "moe_token_permute/test_refused.h"

namespace npuless::moe_token_permute {
namespace {

// A valid call: 6 tokens, 4 experts, hidden 3, topk 2.
struct MapArguments {
  TensorArgument tokens{DType::kBfloat16, {6, 3}};
  TensorArgument map{DType::kBool, {6, 4}};
  TensorArgument probs{DType::kFloat32, {6, 4}};
  int64_t num_out_tokens = 12;
  bool drop_and_pad = false;
  TensorArgument permuted{DType::kBfloat16, {12, 3}};
  TensorArgument permuted_probs{DType::kFloat32, {12}};
  TensorArgument sorted_indices{DType::kInt32, {12}};
};
using A = MapArguments;

aclnnStatus forward(const A& a, uint64_t* workspace_size, aclOpExecutor** executor) {
  return aclnnMoeTokenPermuteWithRoutingMapGetWorkspaceSize(
      make(a.tokens).get(), make(a.map).get(), make(a.probs).get(), a.num_out_tokens,
      a.drop_and_pad, make(a.permuted).get(), make(a.permuted_probs).get(),
      make(a.sorted_indices).get(), workspace_size, executor);
}

// Rows for another numOutTokens.
void ask_for(A& a, int64_t num_out_tokens, int64_t rows) {
  a.num_out_tokens = num_out_tokens;
  a.permuted.dims[0] = a.permuted_probs.dims[0] = a.sorted_indices.dims[0] = rows;
}

const RefusalOf<A> kRefusals[] = {
    {"tokens null", kNull, {"tokens must"}, [](A& a) { a.tokens.null = true; }},
    {"map null", kNull, {"routingMap"}, [](A& a) { a.map.null = true; }},
    {"permuted null", kNull, {"permuteTokensOut"}, [](A& a) { a.permuted.null = true; }},
    {"probs out null",
     kNull,
     {"permuteProbsOutOptional"},
     [](A& a) { a.permuted_probs.null = true; }},
    {"indices null", kNull, {"sortedIndicesOut"}, [](A& a) { a.sorted_indices.null = true; }},
    {"tokens type", kInvalid, {"tokens", "INT8"}, [](A& a) { a.tokens.dtype = DType::kInt8; }},
    {"map type", kInvalid, {"routingMap", "INT32"}, [](A& a) { a.map.dtype = DType::kInt32; }},
    {"probs type",
     kInvalid,
     {"probsOptional and tokens", "FLOAT16"},
     [](A& a) { a.probs.dtype = DType::kFloat16; }},
    {"FLOAT probs beside FLOAT16 tokens",
     kInvalid,
     {"probsOptional and tokens", "FLOAT16"},
     [](A& a) { a.tokens.dtype = DType::kFloat16; }},
    {"permuted type",
     kInvalid,
     {"permuteTokensOut and tokens"},
     [](A& a) { a.permuted.dtype = DType::kFloat32; }},
    {"probs out type",
     kInvalid,
     {"permuteProbsOutOptional and probsOptional"},
     [](A& a) { a.permuted_probs.dtype = DType::kBfloat16; }},
    {"indices type",
     kInvalid,
     {"sortedIndicesOut", "INT64"},
     [](A& a) { a.sorted_indices.dtype = DType::kInt64; }},
    {"map format",
     kInvalid,
     {"format of routingMap"},
     [](A& a) { a.map.format = ACL_FORMAT_NCHW; }},
    {"probs out format",
     kInvalid,
     {"format of permuteProbsOutOptional"},
     [](A& a) { a.permuted_probs.format = ACL_FORMAT_NCHW; }},
    {"numOutTokens negative",
     kInvalid,
     {"numOutTokens", "got -1"},
     [](A& a) { a.num_out_tokens = -1; }},
    {"tokens rank",
     kInvalid,
     {"tokens", "2 dimensions"},
     [](A& a) {
       a.tokens.dims = {6, 3, 1};
     }},
    {"map rank", kInvalid, {"routingMap", "2 dimensions"}, [](A& a) { a.map.dims = {24}; }},
    {"probs out rank",
     kInvalid,
     {"permuteProbsOutOptional", "1 dimension"},
     [](A& a) {
       a.permuted_probs.dims = {12, 1};
     }},
    {"negative stride",
     kInvalid,
     {"routingMap", "negative"},
     [](A& a) {
       a.map.layout = Layout{{4, -1}, 0};
     }},
    {"map of other tokens (D38)",
     kInvalid,
     {"routingMap", "number of tokens", "[5, 4]"},
     [](A& a) {
       a.map.dims = a.probs.dims = {5, 4};
     }},
    {"more rows than the map has elements",
     kInvalid,
     {"numOutTokens", "[6, 4]", "got 25"},
     [](A& a) { ask_for(a, 25, 24); }},
    {"topk above 512",
     kInvalid,
     {"numOutTokens", "512", "got 3078 over 6"},
     [](A& a) {
       a.map.dims = a.probs.dims = {6, 600};
       ask_for(a, 3078, 3078);
     }},
    {"rows beyond INT32",
     kInvalid,
     {"2147483647", "got 8388609 and 2147483904"},
     [](A& a) {
       a.tokens.dims[0] = 8388609;
       a.map.dims = a.probs.dims = {8388609, 256};
       ask_for(a, 2147483904, 2147483904);
     }},
    {"experts beyond INT32, though there are no tokens",
     kInvalid,
     {"routingMap", "2147483647", "got 1152921504606846976"},
     [](A& a) {
       a.tokens.dims[0] = 0;
       a.map.dims = a.probs.dims = {0, int64_t{1} << 60};
       ask_for(a, 0, 0);
     }},
    {"probs shape",
     kInvalid,
     {"probsOptional", "routingMap", "[6, 3]"},
     [](A& a) {
       a.probs.dims = {6, 3};
     }},
    {"rows of the page before rounding",
     kInvalid,
     {"permuteTokensOut", "must be 12", "[13, 3]"},
     [](A& a) { ask_for(a, 13, 13); }},
    {"hidden",
     kInvalid,
     {"permuteTokensOut", "as in tokens"},
     [](A& a) {
       a.permuted.dims = {12, 4};
     }},
    {"probs out length",
     kInvalid,
     {"permuteProbsOutOptional", "[11]"},
     [](A& a) { a.permuted_probs.dims = {11}; }},
    {"indices length",
     kInvalid,
     {"sortedIndicesOut", "[24]"},
     [](A& a) { a.sorted_indices.dims = {24}; }},
    {"rows share memory",
     kInvalid,
     {"permuteTokensOut", "overlap", "[0, 1]"},
     [](A& a) {
       a.permuted.layout = Layout{{0, 1}, 0};
     }},
    {"indices in one element",
     kInvalid,
     {"sortedIndicesOut", "overlap"},
     [](A& a) {
       a.sorted_indices.layout = Layout{{0}, 0};
     }},
};

TEST(PermuteWithRoutingMap, RefusesWrongCalls) {
  for (const RefusalOf<A>& refusal : kRefusals) expect_refused(refusal, {}, &forward);
  expect_outputs_required(A(), &forward);
}

TEST(PermuteWithRoutingMap, AcceptsWhatIsUnusualButRight) {
  expect_accepted("the valid call", A(), &forward);
  A a;
  ask_for(a, 17, 12);
  expect_accepted("numOutTokens rounded down to whole tokens", a, &forward);
  a.drop_and_pad = true;
  ask_for(a, 17, 16);
  expect_accepted("numOutTokens rounded down to whole experts", a, &forward);
  ask_for(a, 24, 24);
  expect_accepted("every token for every expert", a, &forward);
  a = {};
  ask_for(a, 5, 0);
  expect_accepted("fewer rows than tokens", a, &forward);
  a = {};
  a.probs.null = true;
  a.permuted_probs.dtype = DType::kInt8;
  expect_accepted("no probs, and an output for them that is ignored", a, &forward);
}

struct GradArguments {
  TensorArgument grad{DType::kBfloat16, {12, 3}};
  TensorArgument probs_grad{DType::kFloat32, {12}};
  TensorArgument indices{DType::kInt32, {12}};
  TensorArgument map{DType::kInt8, {6, 4}};
  int64_t experts = 4;
  int64_t tokens = 6;
  bool drop_and_pad = false;
  TensorArgument token_grad{DType::kBfloat16, {6, 3}};
  TensorArgument probs_out{DType::kFloat32, {6, 4}};
};
using G = GradArguments;

aclnnStatus gradient(const G& a, uint64_t* workspace_size, aclOpExecutor** executor) {
  return aclnnMoeTokenPermuteWithRoutingMapGradGetWorkspaceSize(
      make(a.grad).get(), make(a.probs_grad).get(), make(a.indices).get(), make(a.map).get(),
      a.experts, a.tokens, a.drop_and_pad, make(a.token_grad).get(), make(a.probs_out).get(),
      workspace_size, executor);
}

const RefusalOf<G> kGradRefusals[] = {
    {"grad null", kNull, {"permutedTokensOutputGrad"}, [](G& a) { a.grad.null = true; }},
    {"indices null", kNull, {"sortedIndices"}, [](G& a) { a.indices.null = true; }},
    {"map null", kNull, {"routingMapOptional"}, [](G& a) { a.map.null = true; }},
    {"token grad null", kNull, {"tokenGradOut"}, [](G& a) { a.token_grad.null = true; }},
    {"probs out null", kNull, {"probsGradOutOptional"}, [](G& a) { a.probs_out.null = true; }},
    {"grad type",
     kInvalid,
     {"permutedTokensOutputGrad", "INT8"},
     [](G& a) { a.grad.dtype = DType::kInt8; }},
    {"FLOAT probs beside FLOAT16 tokens",
     kInvalid,
     {"permutedProbsOutputGradOptional and", "FLOAT16"},
     [](G& a) { a.grad.dtype = DType::kFloat16; }},
    {"indices type",
     kInvalid,
     {"sortedIndices", "INT64"},
     [](G& a) { a.indices.dtype = DType::kInt64; }},
    {"map type",
     kInvalid,
     {"routingMapOptional", "FLOAT"},
     [](G& a) { a.map.dtype = DType::kFloat32; }},
    {"token grad type",
     kInvalid,
     {"tokenGradOut and"},
     [](G& a) { a.token_grad.dtype = DType::kFloat32; }},
    {"probs out type (case I6R)",
     kInvalid,
     {"probsGradOutOptional and"},
     [](G& a) { a.probs_out.dtype = DType::kBfloat16; }},
    {"format",
     kInvalid,
     {"format of tokenGradOut"},
     [](G& a) { a.token_grad.format = ACL_FORMAT_NCHW; }},
    {"experts 0", kInvalid, {"numExperts", "got 0"}, [](G& a) { a.experts = 0; }},
    {"tokens 0", kInvalid, {"tokensNum", "got 0"}, [](G& a) { a.tokens = 0; }},
    {"experts beyond INT32",
     kInvalid,
     {"numExperts", "2147483647", "got 2147483648"},
     [](G& a) { a.experts = int64_t{1} << 31; }},
    {"tokens beyond INT32, though their rows are empty",
     kInvalid,
     {"tokensNum", "2147483647", "got 4611686018427387904"},
     [](G& a) {
       a.tokens = int64_t{1} << 62;
       a.probs_grad.null = true;
       a.indices.dims = {0};
       a.grad.dims = {0, 0};
       a.token_grad.dims = {a.tokens, 0};
     }},
    {"grad rank", kInvalid, {"permutedTokensOutputGrad", "2"}, [](G& a) { a.grad.dims = {36}; }},
    {"map rank", kInvalid, {"routingMapOptional", "2"}, [](G& a) { a.map.dims = {24}; }},
    {"negative offset",
     kInvalid,
     {"permutedTokensOutputGrad", "offset"},
     [](G& a) {
       a.grad.layout = Layout{{3, 1}, -1};
     }},
    {"indices no multiple of the tokens",
     kInvalid,
     {"sortedIndices", "tokensNum", "got 13"},
     [](G& a) { a.indices.dims = {13}; }},
    {"indices no multiple of the experts",
     kInvalid,
     {"sortedIndices", "numExperts", "got 13"},
     [](G& a) {
       a.drop_and_pad = true;
       a.indices.dims = {13};
     }},
    {"topk above 512",
     kInvalid,
     {"sortedIndices", "512", "got 3078"},
     [](G& a) { a.indices.dims = {3078}; }},
    {"fewer rows than indices",
     kInvalid,
     {"permutedTokensOutputGrad", "sortedIndices", "[11, 3]"},
     [](G& a) {
       a.grad.dims = {11, 3};
     }},
    {"fewer probs than indices",
     kInvalid,
     {"permutedProbsOutputGradOptional", "[11]"},
     [](G& a) { a.probs_grad.dims = {11}; }},
    {"token grad rows",
     kInvalid,
     {"tokenGradOut", "tokensNum"},
     [](G& a) {
       a.token_grad.dims = {5, 3};
     }},
    {"token grad hidden",
     kInvalid,
     {"tokenGradOut", "hidden"},
     [](G& a) {
       a.token_grad.dims = {6, 2};
     }},
    {"map of other tokens",
     kInvalid,
     {"routingMapOptional", "tokensNum"},
     [](G& a) {
       a.map.dims = {5, 4};
     }},
    {"map of other experts",
     kInvalid,
     {"routingMapOptional", "numExperts"},
     [](G& a) {
       a.map.dims = {6, 5};
     }},
    {"probs out experts",
     kInvalid,
     {"probsGradOutOptional", "numExperts"},
     [](G& a) {
       a.probs_out.dims = {6, 3};
     }},
    {"rows share memory",
     kInvalid,
     {"tokenGradOut", "overlap"},
     [](G& a) {
       a.token_grad.layout = Layout{{0, 1}, 0};
     }},
    {"probs share memory",
     kInvalid,
     {"probsGradOutOptional", "overlap"},
     [](G& a) {
       a.probs_out.layout = Layout{{3, 1}, 0};
     }},
};

TEST(PermuteWithRoutingMapGrad, RefusesWrongCalls) {
  for (const RefusalOf<G>& refusal : kGradRefusals) expect_refused(refusal, {}, &gradient);
  expect_outputs_required(G(), &gradient);
}

TEST(PermuteWithRoutingMapGrad, AcceptsWhatIsUnusualButRight) {
  expect_accepted("the valid call", G(), &gradient);
  G a;
  a.drop_and_pad = true;
  expect_accepted("the same rows by expert", a, &gradient);
  a = {};
  a.probs_grad.null = a.map.null = a.probs_out.null = true;
  expect_accepted("no probabilities", a, &gradient);
  a = {};
  a.indices.dims = a.probs_grad.dims = {0};
  a.grad.dims = {0, 3};
  expect_accepted("no rows", a, &gradient);
}

}  // namespace
}  // namespace npuless::moe_token_permute
