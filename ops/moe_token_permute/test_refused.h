// Calls of any phase 1 with arguments that a test spoils one by one.
#pragma once

#include "moe_token_permute/test_arguments.h"

namespace npuless::moe_token_permute {

template <class ARGUMENTS>
struct RefusalOf {
  const char* title;
  int32_t code;
  std::vector<const char*> parts;  // of the sentence
  std::function<void(ARGUMENTS&)> spoil;
};

template <class ARGUMENTS>
using PhaseOneOf = aclnnStatus (*)(const ARGUMENTS& arguments, uint64_t* workspace_size,
                                   aclOpExecutor** executor);

template <class ARGUMENTS>
void expect_refused(const RefusalOf<ARGUMENTS>& refusal, ARGUMENTS arguments,
                    PhaseOneOf<ARGUMENTS> phase1) {
  SCOPED_TRACE(refusal.title);
  refusal.spoil(arguments);
  Planned planned;
  aclGetRecentErrMsg();  // forgets earlier sentences
  EXPECT_EQ(phase1(arguments, &planned.workspace_size, &planned.executor), refusal.code);
  const char* sentence = aclGetRecentErrMsg();
  ASSERT_NE(sentence, nullptr);
  for (const char* part : refusal.parts) {
    EXPECT_NE(std::strstr(sentence, part), nullptr) << part << " is not in: " << sentence;
  }
  EXPECT_EQ(planned.workspace_size, UINT64_MAX);
  EXPECT_EQ(planned.executor, nullptr);
}

template <class ARGUMENTS>
void expect_accepted(const char* title, const ARGUMENTS& arguments, PhaseOneOf<ARGUMENTS> phase1) {
  SCOPED_TRACE(title);
  Planned planned;
  const aclnnStatus status = phase1(arguments, &planned.workspace_size, &planned.executor);
  EXPECT_EQ(status, ACL_SUCCESS) << aclGetRecentErrMsg();
  if (status == ACL_SUCCESS) aclDestroyAclOpExecutor(planned.executor);
}

// Both outputs of phase 1 are required, before anything else is looked at.
template <class ARGUMENTS>
void expect_outputs_required(ARGUMENTS arguments, PhaseOneOf<ARGUMENTS> phase1) {
  Planned planned;
  EXPECT_EQ(phase1(arguments, nullptr, &planned.executor), kNull);
  EXPECT_NE(std::strstr(aclGetRecentErrMsg(), "workspaceSize"), nullptr);
  EXPECT_EQ(phase1(arguments, &planned.workspace_size, nullptr), kNull);
  EXPECT_NE(std::strstr(aclGetRecentErrMsg(), "executor"), nullptr);
}

class IntArray {
 public:
  explicit IntArray(const std::optional<std::vector<int64_t>>& values)
      : array_(values ? aclCreateIntArray(values->data(), values->size()) : nullptr) {}
  ~IntArray() { aclDestroyIntArray(array_); }
  IntArray(const IntArray&) = delete;
  IntArray& operator=(const IntArray&) = delete;

  const aclIntArray* get() const { return array_; }

 private:
  const aclIntArray* array_;
};

}  // namespace npuless::moe_token_permute
