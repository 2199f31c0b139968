// Every way to call the unpermute with a routing map and its gradient wrongly.
#include "moe_token_permute/test_refused.h"
#include "moe_token_permute/test_unpermute_map_problem.h"

namespace npuless::moe_token_permute {
namespace {

// A valid call of both: 4 tokens, 6 experts, 12 rows, hidden 5.
struct MapArguments {
  TensorArgument permuted{DType::kBfloat16, {12, 5}};
  TensorArgument indices{DType::kInt32, {12}};
  TensorArgument map{DType::kBool, {4, 6}};
  TensorArgument probs{DType::kFloat32, {4, 6}};
  TensorArgument tokens{DType::kBfloat16, {4, 5}};  // the output, or its gradient
  TensorArgument out_index{DType::kInt32, {12}};
  TensorArgument token_id{DType::kInt32, {12}};
  TensorArgument permute_probs{DType::kFloat32, {12}};
  TensorArgument permuted_grad{DType::kBfloat16, {12, 5}};
  TensorArgument probs_grad{DType::kFloat32, {4, 6}};
  bool padded = false;
  std::optional<std::vector<int64_t>> restore_shape;
};

aclnnStatus forward(const MapArguments& a, uint64_t* size, aclOpExecutor** executor) {
  const IntArray restore(a.restore_shape);
  return aclnnMoeTokenUnpermuteWithRoutingMapGetWorkspaceSize(
      make(a.permuted).get(), make(a.indices).get(), make(a.map).get(), make(a.probs).get(),
      a.padded, restore.get(), make(a.tokens).get(), make(a.out_index).get(),
      make(a.token_id).get(), make(a.permute_probs).get(), size, executor);
}

aclnnStatus gradient(const MapArguments& a, uint64_t* size, aclOpExecutor** executor) {
  const IntArray restore(a.restore_shape);
  return aclnnMoeTokenUnpermuteWithRoutingMapGradGetWorkspaceSize(
      make(a.tokens).get(), make(a.out_index).get(), make(a.token_id).get(), make(a.map).get(),
      make(a.permuted).get(), make(a.probs).get(), a.padded, restore.get(),
      make(a.permuted_grad).get(), make(a.probs_grad).get(), size, executor);
}

using A = MapArguments;
using Refused = RefusalOf<A>;
using Dims = std::vector<int64_t>;

const Refused kSharedRefusals[] = {
    {"tokens null", kNull, {"unpermutedTokens"}, [](A& a) { a.tokens.null = true; }},
    {"out index null", kNull, {"outIndex"}, [](A& a) { a.out_index.null = true; }},
    {"token id null", kNull, {"permuteTokenId"}, [](A& a) { a.token_id.null = true; }},
    {"map null", kNull, {"routingMapOptional"}, [](A& a) { a.map.null = true; }},
    {"permuted null", kNull, {"permutedTokens"}, [](A& a) { a.permuted.null = true; }},
    {"permuted type",
     kInvalid,
     {"permutedTokens", "INT8"},
     [](A& a) { a.permuted.dtype = DType::kInt8; }},
    {"out index type",
     kInvalid,
     {"outIndex", "INT64"},
     [](A& a) { a.out_index.dtype = DType::kInt64; }},
    {"token id type",
     kInvalid,
     {"permuteTokenId", "INT64"},
     [](A& a) { a.token_id.dtype = DType::kInt64; }},
    {"map type", kInvalid, {"routingMap", "INT32"}, [](A& a) { a.map.dtype = DType::kInt32; }},
    {"probs FLOAT16 beside BFLOAT16",
     kInvalid,
     {"probsOptional", "FLOAT16"},
     [](A& a) { a.probs.dtype = DType::kFloat16; }},
    {"map format",
     kInvalid,
     {"format of routingMapOptional"},
     [](A& a) { a.map.format = ACL_FORMAT_NCHW; }},
    {"restore shape of 3",
     kInvalid,
     {"restoreShapeOptional", "got 3"},
     [](A& a) {
       a.padded = true;
       a.restore_shape = Dims{4, 5, 1};
     }},
    {"restore shape of other tokens",
     kInvalid,
     {"unpermutedTokens", "3", "restoreShapeOptional"},
     [](A& a) {
       a.padded = true;
       a.restore_shape = Dims{3, 5};
     }},
    {"map rank", kInvalid, {"routingMapOptional", "2 dim"}, [](A& a) { a.map.dims = {24}; }},
    {"out index rank",
     kInvalid,
     {"outIndex", "1 dimension"},
     [](A& a) {
       a.out_index.dims = {4, 3};
     }},
    {"map rows",
     kInvalid,
     {"routingMapOptional", "[5, 6]"},
     [](A& a) {
       a.map.dims = {5, 6};
     }},
    {"probs columns",
     kInvalid,
     {"probsOptional", "[4, 5]"},
     [](A& a) {
       a.probs.dims = {4, 5};
     }},
    {"rows no multiple of tokens",
     kInvalid,
     {"number of tokens, 4", "got 13"},
     [](A& a) {
       a.permuted.dims = {13, 5};
       a.out_index.dims = {13};
     }},
    {"rows without tokens",
     kInvalid,
     {"number of tokens, 0", "got 12"},
     [](A& a) { a.tokens.dims[0] = a.map.dims[0] = a.probs.dims[0] = a.probs_grad.dims[0] = 0; }},
    {"experts beyond INT32",
     kInvalid,
     {"routingMapOptional", "2147483647", "got 2147483648"},
     [](A& a) { a.map.dims[1] = a.probs.dims[1] = a.probs_grad.dims[1] = int64_t{1} << 31; }},
    {"rows no multiple of experts",
     kInvalid,
     {"number of experts, 6", "got 13"},
     [](A& a) {
       a.padded = true;
       a.permuted.dims = {13, 5};
       a.out_index.dims = {13};
     }},
    {"more than 512 rows a token",
     kInvalid,
     {"512", "got 2052"},
     [](A& a) {
       a.permuted.dims = {2052, 5};
       a.out_index.dims = {2052};
     }},
    {"token ids", kInvalid, {"permuteTokenId", "[11]"}, [](A& a) { a.token_id.dims = {11}; }},
    {"hidden", kInvalid, {"hidden size", "5"}, [](A& a) { a.permuted.dims[1] = 6; }},
    {"negative stride",
     kInvalid,
     {"probsOptional", "negative"},
     [](A& a) {
       a.probs.layout = Layout{{-6, 1}, 0};
     }},
};

const Refused kForwardRefusals[] = {
    {"indices null", kNull, {"sortedIndices"}, [](A& a) { a.indices.null = true; }},
    {"permute probs null", kNull, {"permuteProbs"}, [](A& a) { a.permute_probs.null = true; }},
    {"neither probs nor restore shape",
     kNull,
     {"probsOptional and restoreShapeOptional"},
     [](A& a) { a.probs.null = true; }},
    {"indices type",
     kInvalid,
     {"sortedIndices", "INT64"},
     [](A& a) { a.indices.dtype = DType::kInt64; }},
    {"permute probs of the tokens' type",
     kInvalid,
     {"permuteProbs and probsOptional"},
     [](A& a) { a.permute_probs.dtype = DType::kBfloat16; }},
    {"indices", kInvalid, {"sortedIndices", "[11]"}, [](A& a) { a.indices.dims = {11}; }},
    {"out index", kInvalid, {"outIndex", "[11]"}, [](A& a) { a.out_index.dims = {11}; }},
    {"probs out", kInvalid, {"permuteProbs", "[11]"}, [](A& a) { a.permute_probs.dims = {11}; }},
    {"out overlaps",
     kInvalid,
     {"unpermutedTokens", "overlap"},
     [](A& a) {
       a.tokens.layout = Layout{{0, 1}, 0};
     }},
    {"out index overlaps",
     kInvalid,
     {"outIndex", "overlap"},
     [](A& a) {
       a.out_index.layout = Layout{{0}, 0};
     }},
};

const Refused kGradRefusals[] = {
    {"permuted grad null",
     kNull,
     {"permutedTokensGradOut"},
     [](A& a) { a.permuted_grad.null = true; }},
    {"probs grad null", kNull, {"probsGradOutOptional"}, [](A& a) { a.probs_grad.null = true; }},
    {"permuted grad type",
     kInvalid,
     {"permutedTokensGradOut and"},
     [](A& a) { a.permuted_grad.dtype = DType::kFloat16; }},
    {"probs grad of the tokens' type (I6R)",
     kInvalid,
     {"probsGradOutOptional and probsOptional"},
     [](A& a) { a.probs_grad.dtype = DType::kBfloat16; }},
    {"permuted rows",
     kInvalid,
     {"permutedTokensOptional", "[11, 5]"},
     [](A& a) { a.permuted.dims[0] = 11; }},
    {"permuted grad rows",
     kInvalid,
     {"permutedTokensGradOut", "[11, 5]"},
     [](A& a) { a.permuted_grad.dims[0] = 11; }},
    {"probs grad columns",
     kInvalid,
     {"probsGradOutOptional", "[4, 5]"},
     [](A& a) { a.probs_grad.dims[1] = 5; }},
    {"more rows than tokens times experts",
     kInvalid,
     {"outIndex", "24", "got 28"},
     [](A& a) {
       a.permuted.dims[0] = a.permuted_grad.dims[0] = 28;
       a.out_index.dims = a.token_id.dims = {28};
     }},
    {"permuted grad overlaps",
     kInvalid,
     {"permutedTokensGradOut", "overlap"},
     [](A& a) {
       a.permuted_grad.layout = Layout{{4, 1}, 0};
     }},
};

TEST(UnpermuteWithRoutingMap, RefusesWrongCalls) {
  for (const Refused& refusal : kSharedRefusals) expect_refused(refusal, A(), &forward);
  for (const Refused& refusal : kForwardRefusals) expect_refused(refusal, A(), &forward);
  expect_outputs_required(A(), &forward);
}

TEST(UnpermuteWithRoutingMapGrad, RefusesWrongCalls_I6R) {
  for (const Refused& refusal : kSharedRefusals) expect_refused(refusal, A(), &gradient);
  for (const Refused& refusal : kGradRefusals) expect_refused(refusal, A(), &gradient);
  expect_outputs_required(A(), &gradient);
}

TEST(UnpermuteWithRoutingMap, AcceptsWhatIsUnusualButRight) {
  A a;
  expect_accepted("the valid call", a, &forward);
  expect_accepted("the valid call", a, &gradient);
  a.map.dtype = DType::kUint8;
  a.restore_shape = Dims{9};
  expect_accepted("a restore shape that is not read", a, &forward);
  expect_accepted("a restore shape that is not read", a, &gradient);
  a = {};
  a.probs.null = a.map.null = a.permute_probs.null = a.probs_grad.null = true;
  a.restore_shape = Dims{4, 5};
  expect_accepted("no probabilities", a, &forward);
  a.permuted.null = true;
  expect_accepted("no probabilities", a, &gradient);
}

}  // namespace
}  // namespace npuless::moe_token_permute
