// Events that time out, outlive their streams, are destroyed while in use, or are used from many
// threads.
#include "support.h"

namespace npuless::runtime {
namespace {

const Body kNothing = [] { return Status(); };

class EventLifeTest : public StreamTest {
 protected:
  void SetUp() override {
    StreamTest::SetUp();
    ASSERT_EQ(aclrtCreateStream(&other), 0);
    ASSERT_EQ(aclrtCreateEvent(&event), 0);
  }
  void TearDown() override {
    if (other != nullptr) {
      EXPECT_EQ(aclrtDestroyStream(other), 0);
    }
    if (event != nullptr) {
      EXPECT_EQ(aclrtDestroyEvent(event), 0);
    }
    StreamTest::TearDown();
  }

  aclrtStream other = nullptr;
  aclrtEvent event = nullptr;
};

// The three ways to bound a wait; each becomes an error of the waiting stream.
TEST_F(EventLifeTest, AnEndlessWaitFailsAfterItsTimeout) {
  Gate gate;
  gate.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  check_rows({
      {"own timeout", 0, [&] { return aclrtStreamWaitEventWithTimeout(other, event, 20); }},
      {"its report", 107019, [&] { return aclrtSynchronizeStream(other); }},
      {"with flag", 0, [&] { return aclrtStreamWaitEventWithFlag(other, event, 20, 0); }},
      {"its report", 107019, [&] { return aclrtSynchronizeStream(other); }},
      {"of the context", 0, [] { return aclrtSetOpWaitTimeout(1); }},
      {"wait", 0, [&] { return aclrtStreamWaitEvent(other, event); }},
      {"its report", 107019, [&] { return aclrtSynchronizeStream(other); }},
      {"forever again", 0, [] { return aclrtSetOpWaitTimeout(0); }},
  });
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

TEST_F(EventLifeTest, DestroyDoesNotWaitAndLeavesTheWaitIntact) {
  Gate gate;
  std::atomic<bool> opened{false};
  bool ran_late = false;
  const Body check = [&] {
    ran_late = opened;
    return Status();
  };
  gate.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, event), 0);
  ASSERT_TRUE(queue(other, check).ok());
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
  EXPECT_EQ(aclrtDestroyEvent(event), 107017);
  EXPECT_EQ(aclrtRecordEvent(event, stream), 107017);
  event = nullptr;
  opened = true;
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(other), 0);
  EXPECT_TRUE(ran_late);
}

TEST_F(EventLifeTest, AnEventOutlivesItsStream) {
  ASSERT_EQ(aclrtRecordEvent(event, other), 0);
  EXPECT_EQ(aclrtDestroyStream(other), 0);
  other = nullptr;
  aclrtEventRecordedStatus status{};
  EXPECT_EQ(aclrtQueryEventStatus(event, &status), 0);
  EXPECT_EQ(status, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  EXPECT_EQ(aclrtStreamWaitEvent(stream, event), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclrtSynchronizeEvent(event), 0);
}

TEST_F(EventLifeTest, ForcedDestroyEndsAWait) {
  Gate gate;
  gate.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, event), 0);
  ASSERT_TRUE(queue(other, kNothing).ok());
  EXPECT_EQ(aclrtDestroyStreamForce(other), 0);
  other = nullptr;
  gate.open();
}

TEST_F(EventLifeTest, AbortEndsAWait) {
  Gate gate;
  gate.hold(stream);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(other, event), 0);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(aclrtStreamAbort(other), 0);
  EXPECT_EQ(aclrtSynchronizeStream(other), 107023);
  gate.open();
}

// Discarded work counts as reached: whoever waits for it must not hang.
TEST_F(EventLifeTest, ARecordThatIsDiscardedIsReached) {
  Gate gate;
  gate.hold(other);
  gate.await_arrival();
  ASSERT_TRUE(queue(other, kNothing).ok());
  ASSERT_EQ(aclrtRecordEvent(event, other), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, event), 0);
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(10));
    gate.open();
  });
  EXPECT_EQ(aclrtDestroyStreamForce(other), 0);
  opener.join();
  other = nullptr;
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

TEST_F(EventLifeTest, ManyRecordsAllocateNoMoreEvents) {
  uint32_t before = 0;
  uint32_t after = 0;
  ASSERT_EQ(aclrtGetEventAvailNum(&before), 0);
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(aclrtRecordEvent(event, i % 2 == 0 ? stream : other), 0);
    ASSERT_EQ(aclrtStreamWaitEvent(i % 2 == 0 ? other : stream, event), 0);
  }
  EXPECT_EQ(aclrtSynchronizeDevice(), 0);
  EXPECT_EQ(aclrtGetEventAvailNum(&after), 0);
  EXPECT_EQ(before, after);
  aclrtEvent more = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&more), 0);
  EXPECT_EQ(aclrtGetEventAvailNum(&after), 0);
  EXPECT_EQ(after, before - 1);
  uint32_t first = 0;
  uint32_t second = 0;
  EXPECT_EQ(aclrtGetEventId(event, &first), 0);
  EXPECT_EQ(aclrtGetEventId(more, &second), 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(aclrtDestroyEvent(more), 0);
}

}  // namespace
}  // namespace npuless::runtime
