// Executors when there is no memory for them: a code, a sentence, and everything usable afterwards.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <new>
#include <vector>

#include "add_fixture.h"
#include "sentence.h"
#include "tensor/tensor.h"

namespace {
std::atomic<bool> memory_is_short{false};
}

// The executor table grows through this operator; it fails while memory is short.
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  if (memory_is_short.load()) return nullptr;
  try {
    return ::operator new[](size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

namespace npuless::tensor {
namespace {

using ExecutorMemory = StreamTest;

TEST_F(ExecutorMemory, ShortageIsAnErrorThatPasses) {
  constexpr size_t kPlenty = 100000;
  Addition add;
  std::vector<aclOpExecutor*> executors{add.plan()};
  uint64_t size = 99;
  aclOpExecutor* executor = nullptr;
  int32_t code = 0;
  memory_is_short = true;
  while (code == 0 && executors.size() < kPlenty) {
    size = 99;
    executor = nullptr;
    code = add_phase1(add.a_tensor, add.b_tensor, add.out_tensor, &size, &executor);
    if (code == 0) executors.push_back(executor);
  }
  memory_is_short = false;
  expect_error(code, code::kMemoryAllocation, "aclnnTestAddGetWorkspaceSize", "out of host memory");
  EXPECT_EQ(size, 99u);
  EXPECT_EQ(executor, nullptr);
  executors.push_back(add.plan());
  for (aclOpExecutor* each : executors) EXPECT_EQ(add.launch(each, stream), 0);
  EXPECT_EQ(synchronize(), 0);
  add.expect_added();
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

}  // namespace
}  // namespace npuless::tensor
