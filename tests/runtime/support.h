// What the runtime's tests share: a device that is set, and tables of calls with their codes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "enumerator.h"
#include "gate.h"
#include "runtime/launch.h"

namespace npuless::runtime {

using std::chrono::milliseconds;

// A path that no other process uses: tests run side by side, each in a process.
inline std::string temporary_path(const std::string& name) {
  return testing::TempDir() + "npuless_" + std::to_string(getpid()) + "_" + name;
}

// Sets device 0 for one test.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(aclrtSetDevice(0), 0); }
  void TearDown() override { EXPECT_EQ(aclrtResetDevice(0), 0); }
};

// … and has a stream.
class StreamTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
  }
  void TearDown() override {
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
    DeviceTest::TearDown();
  }

  aclrtStream stream = nullptr;
};

// One row of a table of the contract: a call and the code it returns.
struct Row {
  const char* name;
  aclError expected;
  std::function<aclError()> call;
};

// Each refusal leaves its code and a sentence in the thread, each success neither.
inline void check_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    aclGetRecentErrMsg();
    aclrtGetLastError(ACL_RT_THREAD_LEVEL);
    EXPECT_EQ(row.call(), row.expected);
    EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), row.expected);
    EXPECT_EQ(aclGetRecentErrMsg() != nullptr, row.expected != 0);
  }
}

// Queues a function of the test; the object must outlive its run.
using Body = std::function<Status()>;
inline Status queue(aclrtStream stream, const Body& body, bool brief = false) {
  const Body* pointer = &body;
  const TaskFn run = [](void* payload) { return (**static_cast<const Body**>(payload))(); };
  return launch(stream, run, &pointer, sizeof(pointer), brief);
}

// Runs `body` on a thread that has no context of its own.
inline void on_new_thread(const std::function<void()>& body) {
  std::thread(body).join();
}

}  // namespace npuless::runtime
