// A stream, and the tensors of one addition.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "acl/acl.h"
#include "add_operator.h"
#include "gate.h"

namespace npuless::tensor {

class StreamTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(aclrtSetDevice(0), 0);
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  }
  int32_t synchronize() { return aclrtSynchronizeStream(stream); }

  aclrtStream stream = nullptr;
};

using runtime::Gate;

// a = 0 1 2 …, b = 100 …, out = -1 …; tensors over them and an exactly sized workspace.
struct Addition {
  static constexpr int64_t kSize = 8;

  Addition() : a(kSize), b(kSize, 100.0f), out(kSize, -1.0f) {
    std::iota(a.begin(), a.end(), 0.0f);
    a_tensor = tensor_over(a.data());
    b_tensor = tensor_over(b.data());
    out_tensor = tensor_over(out.data());
  }
  ~Addition() { destroy_tensors(); }
  Addition(const Addition&) = delete;
  Addition& operator=(const Addition&) = delete;

  static aclTensor* tensor_over(float* data, int64_t offset = 0, int64_t size = kSize) {
    return aclCreateTensor(&size, 1, ACL_FLOAT, nullptr, offset, ACL_FORMAT_ND, &size, 1, data);
  }

  void destroy_tensors() {
    for (aclTensor** tensor : {&a_tensor, &b_tensor, &out_tensor}) {
      EXPECT_EQ(aclDestroyTensor(*tensor), 0);
      *tensor = nullptr;
    }
  }

  aclOpExecutor* plan() {
    aclOpExecutor* executor = nullptr;
    EXPECT_EQ(add_phase1(a_tensor, b_tensor, out_tensor, &workspace_size, &executor), 0);
    EXPECT_NE(executor, nullptr);
    workspace.resize(workspace_size);
    return executor;
  }
  aclOpExecutor* plan_repeatable() {
    aclOpExecutor* executor = plan();
    EXPECT_EQ(aclSetAclOpExecutorRepeatable(executor), 0);
    return executor;
  }
  int32_t launch(aclOpExecutor* executor, aclrtStream stream) {
    return add_phase2(workspace.data(), workspace_size, executor, stream);
  }

  void expect_added() const {
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], a[i] + b[i]) << i;
  }
  void expect_untouched() const { EXPECT_EQ(out, std::vector<float>(kSize, -1.0f)); }

  std::vector<float> a, b, out;
  aclTensor *a_tensor, *b_tensor, *out_tensor;
  uint64_t workspace_size = 0;
  std::vector<unsigned char> workspace;
};

}  // namespace npuless::tensor
