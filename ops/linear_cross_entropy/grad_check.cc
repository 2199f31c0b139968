#include "linear_cross_entropy/grad_check.h"

#include <cstring>

#include "runtime/soc.h"

namespace npuless::linear_cross_entropy {
namespace {

using namespace tensor;

// The page: weight's "first dimension length does not support values less than 128".
constexpr int64_t kMinVocab = 128;

constexpr DType kFloatOnly[] = {DType::kFloat32};
constexpr DType kOperandTypes[] = {DType::kFloat16, DType::kBfloat16};
constexpr DType kMaskTypes[] = {DType::kUint8, DType::kBool};
constexpr DType kIndexTypes[] = {DType::kInt64, DType::kInt32};

Status check_pointers(const GradTensors& t) {
  NPULESS_TRY(require(t.grad, "grad"));
  NPULESS_TRY(require(t.input, "input"));
  NPULESS_TRY(require(t.weight, "weight"));
  NPULESS_TRY(require(t.target_mask, "targetMask"));
  NPULESS_TRY(require(t.masked_target, "maskedTarget"));
  NPULESS_TRY(require(t.input_grad, "inputGradOut"));
  NPULESS_TRY(require(t.weight_grad, "weightGradOut"));
  if (t.softmax != nullptr) return {};
  if (t.logits_max == nullptr || t.sum_exp == nullptr) {
    return fail(code::kParamNullptr,
                "%s must not be null when softmaxOptional is null (memory-saving mode)",
                t.logits_max == nullptr ? "logitsMaxOptional" : "sumExpLogitsOptional");
  }
  return {};
}

Status check_types(const GradTensors& t) {
  NPULESS_TRY(require_dtype(t.grad, "grad", kFloatOnly));
  NPULESS_TRY(require_dtype(t.input, "input", kOperandTypes));
  NPULESS_TRY(require_same_dtype(t.weight, "weight", t.input, "input"));
  NPULESS_TRY(require_dtype(t.target_mask, "targetMask", kMaskTypes));
  NPULESS_TRY(require_dtype(t.masked_target, "maskedTarget", kIndexTypes));
  if (t.softmax != nullptr) {
    NPULESS_TRY(require_dtype(t.softmax, "softmaxOptional", kFloatOnly));
  } else {
    NPULESS_TRY(require_dtype(t.logits_max, "logitsMaxOptional", kFloatOnly));
    NPULESS_TRY(require_dtype(t.sum_exp, "sumExpLogitsOptional", kFloatOnly));
  }
  NPULESS_TRY(require_same_dtype(t.input_grad, "inputGradOut", t.input, "input"));
  return require_same_dtype(t.weight_grad, "weightGradOut", t.input, "input");
}

// Applies `check(tensor, name, rank)` to every tensor that is used, in prototype order.
template <class Check>
Status for_each_tensor(const GradTensors& t, Check check) {
  NPULESS_TRY(check(t.grad, "grad", 1));
  NPULESS_TRY(check(t.input, "input", 2));
  NPULESS_TRY(check(t.weight, "weight", 2));
  NPULESS_TRY(check(t.target_mask, "targetMask", 1));
  NPULESS_TRY(check(t.masked_target, "maskedTarget", 1));
  if (t.softmax == nullptr) {
    NPULESS_TRY(check(t.logits_max, "logitsMaxOptional", 1));
    NPULESS_TRY(check(t.sum_exp, "sumExpLogitsOptional", 1));
  } else {
    NPULESS_TRY(check(t.softmax, "softmaxOptional", 2));
  }
  NPULESS_TRY(check(t.input_grad, "inputGradOut", 2));
  return check(t.weight_grad, "weightGradOut", 2);
}

Status check_formats(const GradTensors& t) {
  return for_each_tensor(
      t, [](const aclTensor* tensor, const char* name, int) { return require_nd(tensor, name); });
}

Status check_ranks(const GradTensors& t) {
  NPULESS_TRY(for_each_tensor(t, require_rank));
  return for_each_tensor(t, [](const aclTensor* tensor, const char* name, int) {
    return require_addressable(tensor, name);
  });
}

Status check_mask_length(const GradTensors& t) {
  constexpr const char* kTokens = "the length of grad";
  const int64_t tokens = t.grad->view.dims[0];
  const int64_t length = t.target_mask->view.dims[0];
  if (t.target_mask->dtype == DType::kBool) {
    return require_dim(t.target_mask, "targetMask", 0, tokens, kTokens);
  }
  if (length >= tokens / 8 + (tokens % 8 != 0 ? 1 : 0)) return {};
  return fail(code::kParamInvalid,
              "targetMask must hold at least %lld bits, one for each element of grad, but has %lld "
              "bytes of 8",
              static_cast<long long>(tokens), static_cast<long long>(length));
}

Status check_shapes(const GradTensors& t) {
  constexpr const char* kTokens = "the length of grad";
  constexpr const char* kHidden = "the second dimension of input";
  constexpr const char* kVocab = "the first dimension of weight";
  const int64_t tokens = t.grad->view.dims[0];
  const int64_t hidden = t.input->view.dims[1];
  const int64_t vocab = t.weight->view.dims[0];
  NPULESS_TRY(require_dim(t.input, "input", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.weight, "weight", 1, hidden, kHidden));
  NPULESS_TRY(check_mask_length(t));
  NPULESS_TRY(require_dim(t.masked_target, "maskedTarget", 0, tokens, kTokens));
  if (t.softmax == nullptr) {
    NPULESS_TRY(require_dim(t.logits_max, "logitsMaxOptional", 0, tokens, kTokens));
    NPULESS_TRY(require_dim(t.sum_exp, "sumExpLogitsOptional", 0, tokens, kTokens));
  } else {
    NPULESS_TRY(require_dim(t.softmax, "softmaxOptional", 0, tokens, kTokens));
    NPULESS_TRY(require_dim(t.softmax, "softmaxOptional", 1, vocab, kVocab));
  }
  NPULESS_TRY(require_dim(t.input_grad, "inputGradOut", 0, tokens, kTokens));
  NPULESS_TRY(require_dim(t.input_grad, "inputGradOut", 1, hidden, kHidden));
  NPULESS_TRY(require_dim(t.weight_grad, "weightGradOut", 0, vocab, kVocab));
  NPULESS_TRY(require_dim(t.weight_grad, "weightGradOut", 1, hidden, kHidden));
  NPULESS_TRY(require_distinct(t.input_grad, "inputGradOut"));
  NPULESS_TRY(require_distinct(t.weight_grad, "weightGradOut"));
  if (vocab >= kMinVocab) return {};
  return fail(code::kParamInvalid, "the first dimension of weight must be at least %lld, got %lld",
              static_cast<long long>(kMinVocab), static_cast<long long>(vocab));
}

bool starts_with(const char* text, const char* prefix) {
  return std::strncmp(text, prefix, std::strlen(prefix)) == 0;
}

}  // namespace

Status check_grad(const GradTensors& t) {
  NPULESS_TRY(check_pointers(t));
  NPULESS_TRY(check_types(t));
  NPULESS_TRY(check_formats(t));
  if (!(t.label_smoothing == 0.0f)) {
    return fail(code::kParamInvalid, "labelSmoothing must be 0, got %g",
                static_cast<double>(t.label_smoothing));
  }
  NPULESS_TRY(check_ranks(t));
  return check_shapes(t);
}

Status check_grad_platform() {
  const char* soc = runtime::soc_name();
  if (starts_with(soc, "Ascend910B") || starts_with(soc, "Ascend910_93")) return {};
  return fail(code::kRuntimeError,
              "the operator exists on Ascend910B and Ascend910_93 devices only, not on %s", soc);
}

GradArgs unpack_grad(const GradTensors& t) {
  GradArgs args;
  args.grad = as_vector(*t.grad);
  args.input = as_matrix(*t.input);
  args.weight = as_matrix(*t.weight);
  args.target_mask = as_vector(*t.target_mask);
  args.masked_target = as_vector(*t.masked_target);
  args.has_softmax = t.softmax != nullptr;
  if (args.has_softmax) {
    args.softmax = as_matrix(*t.softmax);
  } else {
    args.logits_max = as_vector(*t.logits_max);
    args.sum_exp = as_vector(*t.sum_exp);
  }
  args.input_grad = as_matrix(*t.input_grad);
  args.weight_grad = as_matrix(*t.weight_grad);
  return args;
}

}  // namespace npuless::linear_cross_entropy
