#include "linear_cross_entropy/forward_check.h"

namespace npuless::linear_cross_entropy {
namespace {

using namespace tensor;

// The page's limit on H.
constexpr int64_t kMaxHidden = 65534;

constexpr DType kFloatOnly[] = {DType::kFloat32};
constexpr DType kByteOnly[] = {DType::kUint8};
constexpr DType kOperandTypes[] = {DType::kFloat16, DType::kBfloat16};
constexpr DType kIndexTypes[] = {DType::kInt64, DType::kInt32};
constexpr DType kLogitsTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBfloat16};

Status check_pointers(const OnlineMaxSumTensors& t) {
  NPULESS_TRY(require(t.input, "input"));
  NPULESS_TRY(require(t.weight, "weight"));
  NPULESS_TRY(require(t.target, "target"));
  NPULESS_TRY(require(t.logits_max, "logitsMaxLocalOut"));
  NPULESS_TRY(require(t.sum_exp, "sumExpLogitsLocalOut"));
  NPULESS_TRY(require(t.predicted, "predictedLogitsLocalOut"));
  NPULESS_TRY(require(t.target_mask, "targetMaskOut"));
  return require(t.masked_target, "maskedTargetOut");
}

Status check_types(const OnlineMaxSumTensors& t) {
  NPULESS_TRY(require_dtype(t.input, "input", kOperandTypes));
  NPULESS_TRY(require_same_dtype(t.weight, "weight", t.input, "input"));
  NPULESS_TRY(require_dtype(t.target, "target", kIndexTypes));
  NPULESS_TRY(require_dtype(t.logits_max, "logitsMaxLocalOut", kFloatOnly));
  NPULESS_TRY(require_dtype(t.sum_exp, "sumExpLogitsLocalOut", kFloatOnly));
  NPULESS_TRY(require_dtype(t.predicted, "predictedLogitsLocalOut", kFloatOnly));
  NPULESS_TRY(require_dtype(t.target_mask, "targetMaskOut", kByteOnly));
  NPULESS_TRY(require_same_dtype(t.masked_target, "maskedTargetOut", t.target, "target"));
  if (t.logits == nullptr) return {};
  return require_same_dtype(t.logits, "vocabParallelLogitsOutOptional", t.input, "input");
}

// Applies `check(tensor, name, rank)` to every tensor given, in prototype order.
template <class Check>
Status for_each_tensor(const OnlineMaxSumTensors& t, Check check) {
  NPULESS_TRY(check(t.input, "input", 2));
  NPULESS_TRY(check(t.weight, "weight", 2));
  NPULESS_TRY(check(t.target, "target", 1));
  NPULESS_TRY(check(t.logits_max, "logitsMaxLocalOut", 1));
  NPULESS_TRY(check(t.sum_exp, "sumExpLogitsLocalOut", 1));
  NPULESS_TRY(check(t.predicted, "predictedLogitsLocalOut", 1));
  NPULESS_TRY(check(t.target_mask, "targetMaskOut", 1));
  NPULESS_TRY(check(t.masked_target, "maskedTargetOut", 1));
  return t.logits == nullptr ? Status() : check(t.logits, "vocabParallelLogitsOutOptional", 2);
}

Status check_shapes(const OnlineMaxSumTensors& t) {
  constexpr const char* kTokens = "the first dimension of input";
  const int64_t tokens = t.input->view.dims[0];
  const int64_t hidden = t.input->view.dims[1];
  if (t.weight->view.dims[0] <= 0) {
    return fail(code::kParamInvalid, "the first dimension of weight must be above 0");
  }
  if (hidden > kMaxHidden) {
    return fail(code::kParamInvalid, "the second dimension of input must be at most %lld, got %lld",
                static_cast<long long>(kMaxHidden), static_cast<long long>(hidden));
  }
  NPULESS_TRY(require_dim(t.weight, "weight", 1, hidden, "the second dimension of input"));
  NPULESS_TRY(require_dim(t.target, "target", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.logits_max, "logitsMaxLocalOut", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.sum_exp, "sumExpLogitsLocalOut", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.predicted, "predictedLogitsLocalOut", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.target_mask, "targetMaskOut", 0, tokens / 8 + (tokens % 8 != 0),
                          "(N+7)/8 for the N tokens of input"));
  NPULESS_TRY(require_dim(t.masked_target, "maskedTargetOut", 0, tokens, kTokens));
  if (t.logits == nullptr) return {};
  constexpr const char* kLogits = "vocabParallelLogitsOutOptional";
  NPULESS_TRY(require_dim(t.logits, kLogits, 0, tokens, kTokens));
  return require_dim(t.logits, kLogits, 1, t.weight->view.dims[0], "the first dimension of weight");
}

Status check_outputs(const OnlineMaxSumTensors& t) {
  NPULESS_TRY(require_distinct(t.logits_max, "logitsMaxLocalOut"));
  NPULESS_TRY(require_distinct(t.sum_exp, "sumExpLogitsLocalOut"));
  NPULESS_TRY(require_distinct(t.predicted, "predictedLogitsLocalOut"));
  NPULESS_TRY(require_distinct(t.target_mask, "targetMaskOut"));
  NPULESS_TRY(require_distinct(t.masked_target, "maskedTargetOut"));
  if (t.logits == nullptr) return {};
  return require_distinct(t.logits, "vocabParallelLogitsOutOptional");
}

Status check_range(const OnlineMaxSumTensors& t) {
  const auto start = static_cast<long long>(t.vocab_start);
  const auto end = static_cast<long long>(t.vocab_end);
  if (start < 0) {
    return fail(code::kParamInvalid, "vocabStartIndex must be at least 0, got %lld", start);
  }
  if (end >= start) return {};
  return fail(code::kParamInvalid, "vocabEndIndex must be at least vocabStartIndex %lld, got %lld",
              start, end);
}

template <class Check>
Status for_each_tensor(const CrossEntropyTensors& t, Check check) {
  NPULESS_TRY(check(t.logits_max, "logitsMax", 1));
  NPULESS_TRY(check(t.sum_exp, "sumExpLogits", 1));
  NPULESS_TRY(check(t.predicted, "predictedLogits", 1));
  if (t.logits != nullptr) NPULESS_TRY(check(t.logits, "vocabParallelLogitsOptional", 2));
  NPULESS_TRY(check(t.loss, "lossOut", 1));
  return t.logits == nullptr ? Status() : check(t.softmax, "softMaxOutOptional", 2);
}

Status check_pointers(const CrossEntropyTensors& t) {
  NPULESS_TRY(require(t.logits_max, "logitsMax"));
  NPULESS_TRY(require(t.sum_exp, "sumExpLogits"));
  NPULESS_TRY(require(t.predicted, "predictedLogits"));
  NPULESS_TRY(require(t.loss, "lossOut"));
  if (t.logits == nullptr || t.softmax != nullptr) return {};
  return fail(code::kParamNullptr,
              "softMaxOutOptional must not be null when vocabParallelLogitsOptional is given");
}

Status check_types(const CrossEntropyTensors& t) {
  NPULESS_TRY(require_dtype(t.logits_max, "logitsMax", kFloatOnly));
  NPULESS_TRY(require_dtype(t.sum_exp, "sumExpLogits", kFloatOnly));
  NPULESS_TRY(require_dtype(t.predicted, "predictedLogits", kFloatOnly));
  if (t.logits != nullptr) {
    NPULESS_TRY(require_dtype(t.logits, "vocabParallelLogitsOptional", kLogitsTypes));
  }
  NPULESS_TRY(require_dtype(t.loss, "lossOut", kFloatOnly));
  return t.logits == nullptr ? Status()
                             : require_dtype(t.softmax, "softMaxOutOptional", kFloatOnly);
}

Status check_shapes(const CrossEntropyTensors& t) {
  constexpr const char* kTokens = "the length of logitsMax";
  const int64_t tokens = t.logits_max->view.dims[0];
  NPULESS_TRY(require_dim(t.sum_exp, "sumExpLogits", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.predicted, "predictedLogits", 0, tokens, kTokens));
  if (t.logits != nullptr) {
    NPULESS_TRY(require_dim(t.logits, "vocabParallelLogitsOptional", 0, tokens, kTokens));
  }
  NPULESS_TRY(require_dim(t.loss, "lossOut", 0, tokens, kTokens));
  NPULESS_TRY(require_distinct(t.loss, "lossOut"));
  if (t.logits == nullptr) return {};
  NPULESS_TRY(require_dim(t.softmax, "softMaxOutOptional", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.softmax, "softMaxOutOptional", 1, t.logits->view.dims[1],
                          "the second dimension of vocabParallelLogitsOptional"));
  return require_distinct(t.softmax, "softMaxOutOptional");
}

template <class Tensors>
Status check_formats(const Tensors& t) {
  return for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); });
}

template <class Tensors>
Status check_layouts(const Tensors& t) {
  NPULESS_TRY(for_each_tensor(t, require_rank));
  return for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  });
}

}  // namespace

Status check_online_max_sum(const OnlineMaxSumTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(check_formats(t));
  NPULESS_TRY(check_layouts(t));
  NPULESS_TRY(check_shapes(t));
  NPULESS_TRY(check_outputs(t));
  return check_range(t);
}

OnlineMaxSumArgs unpack_online_max_sum(const OnlineMaxSumTensors& t) {
  OnlineMaxSumArgs args{};
  args.input = as_matrix(*t.input);
  args.weight = as_matrix(*t.weight);
  args.target = as_vector(*t.target);
  args.vocab_start = t.vocab_start;
  args.vocab_end = t.vocab_end;
  args.logits_max = as_vector(*t.logits_max);
  args.sum_exp = as_vector(*t.sum_exp);
  args.predicted = as_vector(*t.predicted);
  args.target_mask = as_vector(*t.target_mask);
  args.masked_target = as_vector(*t.masked_target);
  args.has_logits = t.logits != nullptr;
  if (args.has_logits) args.logits = as_matrix(*t.logits);
  return args;
}

Status check_cross_entropy(const CrossEntropyTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(check_formats(t));
  if (!(t.label_smoothing == 0.0f)) {
    return fail(code::kParamInvalid, "labelSmoothing must be 0, got %g",
                static_cast<double>(t.label_smoothing));
  }
  NPULESS_TRY(check_layouts(t));
  return check_shapes(t);
}

CrossEntropyArgs unpack_cross_entropy(const CrossEntropyTensors& t) {
  CrossEntropyArgs args{};
  args.logits_max = as_vector(*t.logits_max);
  args.sum_exp = as_vector(*t.sum_exp);
  args.predicted = as_vector(*t.predicted);
  args.loss = as_vector(*t.loss);
  args.has_logits = t.logits != nullptr;
  if (!args.has_logits) return args;
  args.logits = as_matrix(*t.logits);
  args.softmax = as_matrix(*t.softmax);
  return args;
}

}  // namespace npuless::linear_cross_entropy
