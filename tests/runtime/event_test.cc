// Events, contract §2.5.
#include "support.h"

namespace npuless::runtime {
namespace {

using Clock = std::chrono::steady_clock;

const Body kNothing = [] { return Status(); };

class EventTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&other), 0);
    ASSERT_EQ(aclrtCreateEvent(&plain), 0);
    ASSERT_EQ(aclrtCreateEventWithFlag(&sync, ACL_EVENT_SYNC), 0);
    ASSERT_EQ(aclrtCreateEventWithFlag(&timed, ACL_EVENT_TIME_LINE), 0);
    ASSERT_EQ(aclrtCreateEventExWithFlag(&reusable, ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE), 0);
  }
  void TearDown() override {
    for (aclrtEvent event : {plain, sync, timed, reusable}) EXPECT_EQ(aclrtDestroyEvent(event), 0);
    EXPECT_EQ(aclrtDestroyStream(other), 0);
    StreamTest::TearDown();
  }

  static bool complete(aclrtEvent event) {
    aclrtEventRecordedStatus status{};
    EXPECT_EQ(aclrtQueryEventStatus(event, &status), 0);
    return status == ACL_EVENT_RECORDED_STATUS_COMPLETE;
  }

  aclrtStream other = nullptr;
  aclrtEvent plain = nullptr;
  aclrtEvent sync = nullptr;
  aclrtEvent timed = nullptr;
  aclrtEvent reusable = nullptr;
};

TEST_F(EventTest, CreationFlags) {
  const struct {
    uint32_t flag;
    aclError expected;
  } rows[] = {{0, 107000},    {1, 0},         {2, 0},         {4, 107000},    {8, 0},
              {0xB, 0},       {0x10, 0},      {0x1B, 0},      {0x20, 207000}, {0x40, 207000},
              {0x60, 107000}, {0x21, 107000}, {0x48, 107000}, {0x80, 107000}, {0xFFFFFFFF, 107000}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.flag);
    aclrtEvent flagged = nullptr;
    aclrtEvent again = nullptr;
    check_rows({
        {"with flag", row.expected, [&] { return aclrtCreateEventWithFlag(&flagged, row.flag); }},
        {"ex", row.expected, [&] { return aclrtCreateEventExWithFlag(&again, row.flag); }},
    });
    EXPECT_EQ(flagged != nullptr, row.expected == 0);
    if (flagged != nullptr) {
      EXPECT_EQ(aclrtDestroyEvent(flagged), 0);
    }
    if (again != nullptr) {
      EXPECT_EQ(aclrtDestroyEvent(again), 0);
    }
  }
}

TEST_F(EventTest, NullArguments) {
  float ms = 0;
  aclrtEventStatus status{};
  aclrtEventRecordedStatus recorded{};
  aclrtEventWaitStatus waited{};
  uint64_t time = 0;
  uint32_t id = 0;
  check_rows({
      {"create", 100000, [] { return aclrtCreateEvent(nullptr); }},
      {"create flag", 100000, [] { return aclrtCreateEventWithFlag(nullptr, 1); }},
      {"create ex", 100000, [] { return aclrtCreateEventExWithFlag(nullptr, 1); }},
      {"destroy", 100000, [] { return aclrtDestroyEvent(nullptr); }},
      {"record", 100000, [&] { return aclrtRecordEvent(nullptr, stream); }},
      {"record flag", 100000, [&] { return aclrtRecordEventWithFlag(nullptr, stream, 0); }},
      {"reset", 100000, [&] { return aclrtResetEvent(nullptr, stream); }},
      {"query", 100000, [&] { return aclrtQueryEvent(nullptr, &status); }},
      {"query out", 100000, [&] { return aclrtQueryEvent(plain, nullptr); }},
      {"status", 100000, [&] { return aclrtQueryEventStatus(nullptr, &recorded); }},
      {"status out", 100000, [&] { return aclrtQueryEventStatus(plain, nullptr); }},
      {"wait status", 100000, [&] { return aclrtQueryEventWaitStatus(nullptr, &waited); }},
      {"wait status out", 100000, [&] { return aclrtQueryEventWaitStatus(plain, nullptr); }},
      {"synchronize", 100000, [] { return aclrtSynchronizeEvent(nullptr); }},
      {"with timeout", 100000, [] { return aclrtSynchronizeEventWithTimeout(nullptr, 1); }},
      {"elapsed out", 100000, [&] { return aclrtEventElapsedTime(nullptr, plain, plain); }},
      {"elapsed start", 100000, [&] { return aclrtEventElapsedTime(&ms, nullptr, plain); }},
      {"elapsed end", 100000, [&] { return aclrtEventElapsedTime(&ms, plain, nullptr); }},
      {"time", 100000, [&] { return aclrtEventGetTimestamp(nullptr, &time); }},
      {"time out", 100000, [&] { return aclrtEventGetTimestamp(plain, nullptr); }},
      {"id", 100000, [&] { return aclrtGetEventId(nullptr, &id); }},
      {"id out", 100000, [&] { return aclrtGetEventId(plain, nullptr); }},
      {"available out", 100000, [] { return aclrtGetEventAvailNum(nullptr); }},
      {"wait", 100000, [&] { return aclrtStreamWaitEvent(stream, nullptr); }},
      {"wait timeout", 100000, [&] { return aclrtStreamWaitEventWithTimeout(stream, nullptr, 1); }},
      {"wait flag", 100000, [&] { return aclrtStreamWaitEventWithFlag(stream, nullptr, 1, 0); }},
  });
}

TEST_F(EventTest, CreationNeedsAContext) {
  on_new_thread([] {
    aclrtEvent event = nullptr;
    check_rows({{"create", 107002, [&] { return aclrtCreateEvent(&event); }}});
  });
}

TEST_F(EventTest, ArgumentsOutOfRange) {
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  int garbage = 0;
  check_rows({
      {"timeout 0", 107000, [&] { return aclrtSynchronizeEventWithTimeout(plain, 0); }},
      {"timeout -2", 107000, [&] { return aclrtSynchronizeEventWithTimeout(plain, -2); }},
      {"timeout -1", 0, [&] { return aclrtSynchronizeEventWithTimeout(plain, -1); }},
      {"wait 0", 107000, [&] { return aclrtStreamWaitEventWithTimeout(other, plain, 0); }},
      {"wait -2", 107000, [&] { return aclrtStreamWaitEventWithTimeout(other, plain, -2); }},
      {"wait -1", 0, [&] { return aclrtStreamWaitEventWithTimeout(other, plain, -1); }},
      {"wait flag 0", 0, [&] { return aclrtStreamWaitEventWithFlag(other, plain, 0, 0); }},
      {"wait external", 207000, [&] { return aclrtStreamWaitEventWithFlag(other, plain, 0, 1); }},
      {"wait unknown", 107000, [&] { return aclrtStreamWaitEventWithFlag(other, plain, 0, 2); }},
      {"record default", 0, [&] { return aclrtRecordEventWithFlag(plain, stream, 0); }},
      {"record external", 207000, [&] { return aclrtRecordEventWithFlag(plain, stream, 1); }},
      {"record unknown", 107000, [&] { return aclrtRecordEventWithFlag(plain, stream, 2); }},
      {"record garbage", 107017, [&] { return aclrtRecordEvent(&garbage, stream); }},
      {"record on garbage", 107017, [&] { return aclrtRecordEvent(plain, &garbage); }},
      {"wait garbage", 107017, [&] { return aclrtStreamWaitEvent(stream, &garbage); }},
      {"a stream is no event", 107017, [&] { return aclrtSynchronizeEvent(stream); }},
      {"an event is no stream", 107017, [&] { return aclrtSynchronizeStream(plain); }},
  });
}

TEST_F(EventTest, NeverRecorded) {
  aclrtEventStatus status{};
  aclrtEventWaitStatus waited = ACL_EVENT_WAIT_STATUS_RESERVED;
  float ms = 0;
  uint64_t time = 0;
  check_rows({
      {"wait plain", 107000, [&] { return aclrtStreamWaitEvent(stream, plain); }},
      {"wait sync", 107000, [&] { return aclrtStreamWaitEvent(stream, sync); }},
      {"wait reusable", 0, [&] { return aclrtStreamWaitEvent(stream, reusable); }},
      {"synchronize plain", 507000, [&] { return aclrtSynchronizeEvent(plain); }},
      {"synchronize reusable", 0, [&] { return aclrtSynchronizeEvent(reusable); }},
      {"elapsed", 507000, [&] { return aclrtEventElapsedTime(&ms, plain, plain); }},
      {"elapsed reusable", 507000, [&] { return aclrtEventElapsedTime(&ms, reusable, reusable); }},
      {"time", 507000, [&] { return aclrtEventGetTimestamp(plain, &time); }},
      {"query", 0, [&] { return aclrtQueryEvent(plain, &status); }},
      {"query wait", 0, [&] { return aclrtQueryEventWaitStatus(plain, &waited); }},
      {"reset sync", 0, [&] { return aclrtResetEvent(sync, stream); }},
  });
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  EXPECT_EQ(waited, ACL_EVENT_WAIT_STATUS_COMPLETE);
  EXPECT_FALSE(complete(plain));
  EXPECT_FALSE(complete(sync));
  EXPECT_TRUE(complete(reusable));
}

TEST_F(EventTest, WhatEachKindRefuses) {
  for (aclrtEvent event : {plain, sync, timed, reusable}) {
    ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  }
  ASSERT_EQ(aclrtSynchronizeStream(stream), 0);
  aclrtEventStatus status{};
  aclrtEventWaitStatus waited{};
  float ms = 0;
  uint64_t time = 0;
  check_rows({
      {"reset plain", 107000, [&] { return aclrtResetEvent(plain, stream); }},
      {"reset timed", 107000, [&] { return aclrtResetEvent(timed, stream); }},
      {"reset reusable", 207000, [&] { return aclrtResetEvent(reusable, stream); }},
      {"query plain", 0, [&] { return aclrtQueryEvent(plain, &status); }},
      {"query timed", 0, [&] { return aclrtQueryEvent(timed, &status); }},
      {"query reusable", 207000, [&] { return aclrtQueryEvent(reusable, &status); }},
      {"query wait plain", 0, [&] { return aclrtQueryEventWaitStatus(plain, &waited); }},
      {"query wait reusable", 207000, [&] { return aclrtQueryEventWaitStatus(reusable, &waited); }},
      {"wait plain", 0, [&] { return aclrtStreamWaitEvent(other, plain); }},
      {"wait timed", 107000, [&] { return aclrtStreamWaitEvent(other, timed); }},
      {"wait reusable", 0, [&] { return aclrtStreamWaitEvent(other, reusable); }},
      {"elapsed plain to timed", 0, [&] { return aclrtEventElapsedTime(&ms, plain, timed); }},
      {"elapsed reusable", 0, [&] { return aclrtEventElapsedTime(&ms, reusable, reusable); }},
      {"elapsed without stamps", 107006, [&] { return aclrtEventElapsedTime(&ms, sync, plain); }},
      {"elapsed without stamps 2", 107006, [&] { return aclrtEventElapsedTime(&ms, plain, sync); }},
      {"time plain", 0, [&] { return aclrtEventGetTimestamp(plain, &time); }},
      {"time without stamps", 107006, [&] { return aclrtEventGetTimestamp(sync, &time); }},
      {"reset sync", 0, [&] { return aclrtResetEvent(sync, stream); }},
  });
}

TEST_F(EventTest, StatusFollowsTheStream) {
  Gate gate;
  gate.hold(stream);
  for (aclrtEvent event : {plain, reusable}) ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  float ms = 0;
  uint64_t time = 0;
  aclrtEventStatus status{};
  check_rows({
      {"elapsed", 107006, [&] { return aclrtEventElapsedTime(&ms, plain, plain); }},
      {"time", 107006, [&] { return aclrtEventGetTimestamp(plain, &time); }},
      {"synchronize", 507047, [&] { return aclrtSynchronizeEventWithTimeout(plain, 10); }},
      {"query", 0, [&] { return aclrtQueryEvent(plain, &status); }},
  });
  EXPECT_EQ(status, ACL_EVENT_STATUS_NOT_READY);
  EXPECT_FALSE(complete(plain));
  EXPECT_FALSE(complete(reusable));
  gate.open();
  EXPECT_EQ(aclrtSynchronizeEvent(plain), 0);
  EXPECT_EQ(aclrtSynchronizeEventWithTimeout(reusable, 60000), 0);
  EXPECT_TRUE(complete(plain));
  EXPECT_TRUE(complete(reusable));
  EXPECT_EQ(aclrtQueryEvent(plain, &status), 0);
  EXPECT_EQ(status, ACL_EVENT_STATUS_COMPLETE);
}

// An event covers what was queued before it only.
TEST_F(EventTest, LaterWorkDoesNotMatter) {
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  Gate gate;
  gate.hold(stream);
  EXPECT_EQ(aclrtSynchronizeEvent(plain), 0);
  EXPECT_TRUE(complete(plain));
  gate.open();
}

TEST_F(EventTest, StreamsWaitForEachOther) {
  std::vector<int> log;  // guarded by the order that the events make
  const Body first = [&] {
    std::this_thread::sleep_for(milliseconds(10));
    log.push_back(1);
    return Status();
  };
  const Body second = [&] {
    log.push_back(2);
    return Status();
  };
  const Body third = [&] {
    log.push_back(3);
    return Status();
  };
  ASSERT_TRUE(queue(stream, first).ok());
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, plain), 0);
  ASSERT_TRUE(queue(other, second).ok());
  ASSERT_EQ(aclrtRecordEvent(reusable, other), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, reusable), 0);
  ASSERT_TRUE(queue(stream, third).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(log, (std::vector<int>{1, 2, 3}));
}

// The wait that was issued for the first record ends with it although the second never comes yet.
TEST_F(EventTest, ALaterRecordLeavesAnIssuedWaitAlone) {
  Gate first;
  Gate second;
  first.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, plain), 0);
  second.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  first.open();
  EXPECT_EQ(aclrtSynchronizeStream(other), 0);
  EXPECT_FALSE(complete(plain));
  second.open();
  EXPECT_EQ(aclrtSynchronizeEvent(plain), 0);
}

TEST_F(EventTest, WaitStatusCountsQueuedWaits) {
  Gate gate;
  gate.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, plain), 0);
  aclrtEventWaitStatus status = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEventWaitStatus(plain, &status), 0);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_NOT_READY);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(other), 0);
  EXPECT_EQ(aclrtQueryEventWaitStatus(plain, &status), 0);
  EXPECT_EQ(status, ACL_EVENT_WAIT_STATUS_COMPLETE);
}

TEST_F(EventTest, ResetReturnsToNeverRecordedUnlessRecordedAgain) {
  ASSERT_EQ(aclrtRecordEvent(sync, stream), 0);
  ASSERT_EQ(aclrtResetEvent(sync, stream), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_FALSE(complete(sync));
  EXPECT_EQ(aclrtStreamWaitEvent(other, sync), 107000);
  Gate gate;
  ASSERT_EQ(aclrtRecordEvent(sync, stream), 0);
  gate.hold(stream);
  ASSERT_EQ(aclrtResetEvent(sync, stream), 0);
  ASSERT_EQ(aclrtRecordEvent(sync, stream), 0);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_TRUE(complete(sync));
}

TEST_F(EventTest, ElapsedTime) {
  const Body slow = [] {
    std::this_thread::sleep_for(milliseconds(25));
    return Status();
  };
  const auto start = Clock::now();
  ASSERT_EQ(aclrtRecordEvent(plain, stream), 0);
  ASSERT_TRUE(queue(stream, slow).ok());
  ASSERT_EQ(aclrtRecordEvent(timed, stream), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  const float total = std::chrono::duration<float, std::milli>(Clock::now() - start).count();
  float ms = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&ms, plain, timed), 0);
  EXPECT_GE(ms, 25.0f);
  EXPECT_LE(ms, total);
  float backwards = 0;
  EXPECT_EQ(aclrtEventElapsedTime(&backwards, timed, plain), 0);
  EXPECT_EQ(backwards, -ms);
  uint64_t begin = 0;
  uint64_t end = 0;
  EXPECT_EQ(aclrtEventGetTimestamp(plain, &begin), 0);
  EXPECT_EQ(aclrtEventGetTimestamp(timed, &end), 0);
  EXPECT_NEAR(static_cast<double>(end - begin), static_cast<double>(ms) * 1000, 2.0);
}

}  // namespace
}  // namespace npuless::runtime
