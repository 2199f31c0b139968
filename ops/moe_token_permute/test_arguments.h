// Phase 1 of the gradients on arguments that a test spoils one by one.
#pragma once

#include <functional>

#include "moe_token_permute/test_session.h"

namespace npuless::moe_token_permute {

inline constexpr int32_t kNull = 161001;
inline constexpr int32_t kInvalid = 161002;

struct TensorArgument {
  DType dtype;
  std::vector<int64_t> dims;
  std::optional<Layout> layout = {};
  aclFormat format = ACL_FORMAT_ND;
  bool null = false;
};

// A valid call: 6 tokens, topk 2, hidden 3, positions [2, 9).
struct Arguments {
  TensorArgument grad{DType::kFloat32, {7, 3}};
  TensorArgument indices{DType::kInt32, {12}};
  TensorArgument probs_grad{DType::kFloat32, {7}};
  TensorArgument token_grad{DType::kFloat32, {6, 3}};
  TensorArgument probs_out{DType::kFloat32, {6, 2}};
  int64_t topk = 2;
  std::optional<std::vector<int64_t>> range = std::vector<int64_t>{2, 9};
  bool padded_mode = false;
  bool workspace_size_null = false;
  bool executor_null = false;
};

struct Refusal {
  const char* title;
  int32_t code;
  std::vector<const char*> parts;  // of the sentence
  std::function<void(Arguments&)> spoil;
};

struct DestroyTensor {
  void operator()(const aclTensor* tensor) const { aclDestroyTensor(tensor); }
};
using Handle = std::unique_ptr<aclTensor, DestroyTensor>;

// Nothing is launched, so no tensor needs memory.
inline Handle make(const TensorArgument& t) {
  if (t.null) return nullptr;
  const Layout layout = t.layout.value_or(contiguous(t.dims));
  return Handle(aclCreateTensor(t.dims.data(), t.dims.size(), static_cast<aclDataType>(t.dtype),
                                layout.strides.data(), layout.offset, t.format, t.dims.data(),
                                t.dims.size(), nullptr));
}

class Prepared {
 public:
  explicit Prepared(const Arguments& a)
      : a_(a),
        grad_(make(a.grad)),
        indices_(make(a.indices)),
        probs_grad_(make(a.probs_grad)),
        token_grad_(make(a.token_grad)),
        probs_out_(make(a.probs_out)),
        range_(a.range ? aclCreateIntArray(a.range->data(), a.range->size()) : nullptr) {}
  ~Prepared() { aclDestroyIntArray(range_); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  aclnnStatus base() {
    return aclnnMoeTokenPermuteGradGetWorkspaceSize(grad_.get(), indices_.get(), a_.topk,
                                                    a_.padded_mode, token_grad_.get(), size(),
                                                    executor());
  }
  aclnnStatus ep() {
    return aclnnMoeTokenPermuteWithEpGradGetWorkspaceSize(
        grad_.get(), indices_.get(), probs_grad_.get(), a_.topk, range_, a_.padded_mode,
        token_grad_.get(), probs_out_.get(), size(), executor());
  }
  bool outputs_untouched() const {
    return planned_.workspace_size == UINT64_MAX && planned_.executor == nullptr;
  }
  void destroy_executor() { aclDestroyAclOpExecutor(planned_.executor); }

 private:
  uint64_t* size() { return a_.workspace_size_null ? nullptr : &planned_.workspace_size; }
  aclOpExecutor** executor() { return a_.executor_null ? nullptr : &planned_.executor; }

  Arguments a_;
  Handle grad_;
  Handle indices_;
  Handle probs_grad_;
  Handle token_grad_;
  Handle probs_out_;
  const aclIntArray* range_;
  Planned planned_;
};

using PhaseOne = aclnnStatus (Prepared::*)();

inline void expect_refused(const Refusal& refusal, Arguments arguments, PhaseOne phase1) {
  SCOPED_TRACE(refusal.title);
  refusal.spoil(arguments);
  Prepared prepared(arguments);
  aclGetRecentErrMsg();  // forgets earlier sentences
  EXPECT_EQ((prepared.*phase1)(), refusal.code);
  const char* sentence = aclGetRecentErrMsg();
  ASSERT_NE(sentence, nullptr);
  for (const char* part : refusal.parts) {
    EXPECT_NE(std::strstr(sentence, part), nullptr) << part << " is not in: " << sentence;
  }
  EXPECT_TRUE(prepared.outputs_untouched());
}

inline void expect_accepted(const char* title, const Arguments& arguments, PhaseOne phase1) {
  SCOPED_TRACE(title);
  Prepared prepared(arguments);
  const aclnnStatus status = (prepared.*phase1)();
  EXPECT_EQ(status, ACL_SUCCESS) << aclGetRecentErrMsg();
  if (status == ACL_SUCCESS) prepared.destroy_executor();
}

}  // namespace npuless::moe_token_permute
