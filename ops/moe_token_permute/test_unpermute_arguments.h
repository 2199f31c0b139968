// Phase 1 of the unpermutes and their gradients on arguments that a test spoils one by one.
#pragma once

#include "moe_token_permute/test_arguments.h"
#include "moe_token_permute/test_unpermute_problem.h"

namespace npuless::moe_token_permute {

// A valid call of all four: 6 tokens, topk 2, hidden 3, positions [2, 9) of the expert-parallel
// forms, all 12 of the others.
struct UnpermuteArguments {
  explicit UnpermuteArguments(bool ep) : expert_parallel(ep) {
    permuted.dims = permuted_grad.dims = {ep ? 7 : 12, 3};
    if (ep) range = std::vector<int64_t>{2, 9};
  }

  bool expert_parallel;
  TensorArgument permuted{DType::kBfloat16, {}};
  TensorArgument grad{DType::kBfloat16, {6, 3}};
  TensorArgument indices{DType::kInt32, {12}};
  TensorArgument probs{DType::kFloat32, {6, 2}};
  TensorArgument out{DType::kBfloat16, {6, 3}};
  TensorArgument permuted_grad{DType::kBfloat16, {}};
  TensorArgument probs_grad{DType::kFloat32, {6, 2}};
  int64_t topk = 2;
  std::optional<std::vector<int64_t>> range;
  bool padded_mode = false;
  bool workspace_size_null = false;
  bool executor_null = false;
};

class UnpermutePrepared {
 public:
  explicit UnpermutePrepared(const UnpermuteArguments& a)
      : a_(a), range_(a.range ? aclCreateIntArray(a.range->data(), a.range->size()) : nullptr) {}
  ~UnpermutePrepared() { aclDestroyIntArray(range_); }
  UnpermutePrepared(const UnpermutePrepared&) = delete;
  UnpermutePrepared& operator=(const UnpermutePrepared&) = delete;

  aclnnStatus forward() {
    if (a_.expert_parallel) {
      return aclnnMoeTokenUnpermuteWithEpGetWorkspaceSize(
          permuted_.get(), indices_.get(), probs_.get(), a_.topk, range_, a_.padded_mode, nullptr,
          out_.get(), size(), executor());
    }
    return aclnnMoeTokenUnpermuteGetWorkspaceSize(permuted_.get(), indices_.get(), probs_.get(),
                                                  a_.padded_mode, nullptr, out_.get(), size(),
                                                  executor());
  }
  aclnnStatus gradient() {
    if (a_.expert_parallel) {
      return aclnnMoeTokenUnpermuteWithEpGradGetWorkspaceSize(
          grad_.get(), indices_.get(), permuted_.get(), probs_.get(), a_.padded_mode, nullptr,
          range_, a_.topk, permuted_grad_.get(), probs_grad_.get(), size(), executor());
    }
    return aclnnMoeTokenUnpermuteGradGetWorkspaceSize(
        permuted_.get(), grad_.get(), indices_.get(), probs_.get(), a_.padded_mode, nullptr,
        permuted_grad_.get(), probs_grad_.get(), size(), executor());
  }
  bool outputs_untouched() const {
    return planned_.workspace_size == UINT64_MAX && planned_.executor == nullptr;
  }
  void destroy_executor() { aclDestroyAclOpExecutor(planned_.executor); }

 private:
  uint64_t* size() { return a_.workspace_size_null ? nullptr : &planned_.workspace_size; }
  aclOpExecutor** executor() { return a_.executor_null ? nullptr : &planned_.executor; }

  UnpermuteArguments a_;
  Handle permuted_ = make(a_.permuted);
  Handle grad_ = make(a_.grad);
  Handle indices_ = make(a_.indices);
  Handle probs_ = make(a_.probs);
  Handle out_ = make(a_.out);
  Handle permuted_grad_ = make(a_.permuted_grad);
  Handle probs_grad_ = make(a_.probs_grad);
  const aclIntArray* range_;
  Planned planned_;
};

using Phase1 = aclnnStatus (UnpermutePrepared::*)();
inline constexpr Phase1 kForward = &UnpermutePrepared::forward;
inline constexpr Phase1 kGradient = &UnpermutePrepared::gradient;

enum Form { kBase = 1, kEp = 2, kBoth = 3 };

struct UnpermuteRefusal {
  const char* title;
  Form form;
  int32_t code;
  std::vector<const char*> parts;  // of the sentence
  std::function<void(UnpermuteArguments&)> spoil;
};

inline void expect_refused(const UnpermuteRefusal& refusal, bool expert_parallel, Phase1 phase1) {
  SCOPED_TRACE(refusal.title);
  UnpermuteArguments arguments(expert_parallel);
  refusal.spoil(arguments);
  UnpermutePrepared prepared(arguments);
  aclGetRecentErrMsg();  // forgets earlier sentences
  EXPECT_EQ((prepared.*phase1)(), refusal.code);
  const char* sentence = aclGetRecentErrMsg();
  ASSERT_NE(sentence, nullptr);
  for (const char* part : refusal.parts) {
    EXPECT_NE(std::strstr(sentence, part), nullptr) << part << " is not in: " << sentence;
  }
  EXPECT_TRUE(prepared.outputs_untouched());
}

template <size_t N>
void expect_all_refused(const UnpermuteRefusal (&refusals)[N], Phase1 phase1) {
  for (const UnpermuteRefusal& refusal : refusals) {
    if ((refusal.form & kBase) != 0) expect_refused(refusal, false, phase1);
    if ((refusal.form & kEp) != 0) expect_refused(refusal, true, phase1);
  }
}

inline void expect_accepted(const char* title, const UnpermuteArguments& arguments, Phase1 phase1) {
  SCOPED_TRACE(title);
  UnpermutePrepared prepared(arguments);
  const aclnnStatus status = (prepared.*phase1)();
  EXPECT_EQ(status, ACL_SUCCESS) << aclGetRecentErrMsg();
  if (status == ACL_SUCCESS) prepared.destroy_executor();
}

}  // namespace npuless::moe_token_permute
