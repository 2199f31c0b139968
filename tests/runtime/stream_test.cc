// Streams: creation, order, asynchrony, waiting, destruction. Contract §2.4.
#include "support.h"

namespace npuless::runtime {
namespace {

using Clock = std::chrono::steady_clock;

const Body kNothing = [] { return Status(); };

TEST_F(StreamTest, Misuse) {
  aclrtStream other = nullptr;
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  aclrtStreamAttrValue value{};
  int garbage = 0;
  const auto no_attribute = enumerator<aclrtStreamAttr>(0);
  check_rows({
      {"create null", 100000, [] { return aclrtCreateStream(nullptr); }},
      {"config null", 100000, [] { return aclrtCreateStreamWithConfig(nullptr, 0, 0); }},
      {"v2 null", 100000, [] { return aclrtCreateStreamV2(nullptr, nullptr); }},
      {"unknown flag", 107000, [&] { return aclrtCreateStreamWithConfig(&other, 0, 0x40); }},
      {"destroy null", 100000, [] { return aclrtDestroyStream(nullptr); }},
      {"force null", 100000, [] { return aclrtDestroyStreamForce(nullptr); }},
      {"destroy garbage", 107017, [&] { return aclrtDestroyStream(&garbage); }},
      {"force garbage", 107017, [&] { return aclrtDestroyStreamForce(&garbage); }},
      {"synchronize garbage", 107017, [&] { return aclrtSynchronizeStream(&garbage); }},
      {"synchronize default", 0, [] { return aclrtSynchronizeStream(nullptr); }},
      {"timeout 0", 107000, [&] { return aclrtSynchronizeStreamWithTimeout(stream, 0); }},
      {"timeout -2", 107000, [&] { return aclrtSynchronizeStreamWithTimeout(stream, -2); }},
      {"timeout -1", 0, [&] { return aclrtSynchronizeStreamWithTimeout(stream, -1); }},
      {"timeout 1", 0, [&] { return aclrtSynchronizeStreamWithTimeout(stream, 1); }},
      {"query null", 100000, [&] { return aclrtStreamQuery(stream, nullptr); }},
      {"query garbage", 107017, [&] { return aclrtStreamQuery(&garbage, &status); }},
      {"query default", 0, [&] { return aclrtStreamQuery(nullptr, &status); }},
      {"id null", 100000, [&] { return aclrtStreamGetId(stream, nullptr); }},
      {"priority null", 100000, [&] { return aclrtStreamGetPriority(stream, nullptr); }},
      {"flags null", 100000, [&] { return aclrtStreamGetFlags(stream, nullptr); }},
      {"abort garbage", 107017, [&] { return aclrtStreamAbort(&garbage); }},
      {"stop garbage", 107017, [&] { return aclrtStreamStop(&garbage); }},
      {"mode 2", 107000, [&] { return aclrtSetStreamFailureMode(stream, 2); }},
      {"mode garbage", 107017, [&] { return aclrtSetStreamFailureMode(&garbage, 0); }},
      {"set null", 100000,
       [&] { return aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, nullptr); }},
      {"get null", 100000,
       [&] { return aclrtGetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, nullptr); }},
      {"set unknown", 107000,
       [&] { return aclrtSetStreamAttribute(stream, no_attribute, &value); }},
      {"get unknown", 107000,
       [&] { return aclrtGetStreamAttribute(stream, no_attribute, &value); }},
      {"available null", 100000, [] { return aclrtGetStreamAvailableNum(nullptr); }},
      {"config destroy null", 100000, [] { return aclrtDestroyStreamConfigHandle(nullptr); }},
      {"timeout out null", 100000, [] { return aclrtSetOpExecuteTimeOutV2(1, nullptr); }},
  });
  EXPECT_EQ(other, nullptr);
}

TEST_F(DeviceTest, DefaultStreamCannotBeDestroyed) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), 0);
  EXPECT_EQ(aclrtDestroyStream(stream), 107000);
  EXPECT_EQ(aclrtDestroyStreamForce(stream), 107000);
  EXPECT_TRUE(queue(stream, kNothing).ok());
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
}

TEST_F(DeviceTest, PriorityIsClampedAndFlagsAreKept) {
  const struct {
    uint32_t priority;
    uint32_t flag;
    uint32_t expected;
  } rows[] = {{0, 0, 0}, {7, 0x3F, 7}, {8, 1, 7}, {UINT32_MAX, 2, 7}};
  for (const auto& row : rows) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStreamWithConfig(&stream, row.priority, row.flag), 0);
    uint32_t priority = 99;
    uint32_t flag = 99;
    EXPECT_EQ(aclrtStreamGetPriority(stream, &priority), 0);
    EXPECT_EQ(aclrtStreamGetFlags(stream, &flag), 0);
    EXPECT_EQ(priority, row.expected);
    EXPECT_EQ(flag, row.flag);
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
  }
}

TEST_F(DeviceTest, StreamFromAConfiguration) {
  aclrtStreamConfigHandle* config = aclrtCreateStreamConfigHandle();
  ASSERT_NE(config, nullptr);
  const uint32_t priority = 3;
  const size_t flag = ACL_STREAM_FAST_SYNC;
  check_rows({
      {"priority", 0,
       [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 4); }},
      {"flag", 0, [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_FLAG, &flag, 8); }},
      {"work size", 0,
       [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_WORK_SIZE, &flag, 8); }},
      {"work address", 0,
       [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_WORK_ADDR_PTR, &config, 8); }},
      {"wrong size", 100000,
       [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, &priority, 8); }},
      {"handle null", 100000,
       [&] { return aclrtSetStreamConfigOpt(nullptr, ACL_RT_STREAM_PRIORITY, &priority, 4); }},
      {"value null", 100000,
       [&] { return aclrtSetStreamConfigOpt(config, ACL_RT_STREAM_PRIORITY, nullptr, 4); }},
      {"unknown", 100000,
       [&] {
         return aclrtSetStreamConfigOpt(config, enumerator<aclrtStreamConfigAttr>(9), &flag, 8);
       }},
  });
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStreamV2(&stream, config), 0);
  uint32_t answer = 0;
  EXPECT_EQ(aclrtStreamGetPriority(stream, &answer), 0);
  EXPECT_EQ(answer, priority);
  EXPECT_EQ(aclrtStreamGetFlags(stream, &answer), 0);
  EXPECT_EQ(answer, flag);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
  config->flag = size_t{1} << 32;
  EXPECT_EQ(aclrtCreateStreamV2(&stream, config), 107000);
  EXPECT_EQ(aclrtDestroyStreamConfigHandle(config), 0);
  ASSERT_EQ(aclrtCreateStreamV2(&stream, nullptr), 0);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
}

TEST_F(StreamTest, AttributesAreKept) {
  for (int i = ACL_STREAM_ATTR_FAILURE_MODE; i <= ACL_STREAM_ATTR_PRIORITY; ++i) {
    const auto attribute = enumerator<aclrtStreamAttr>(i);
    aclrtStreamAttrValue value{};
    value.failureMode = 1;
    EXPECT_EQ(aclrtSetStreamAttribute(stream, attribute, &value), 0);
    value.failureMode = UINT64_MAX;
    EXPECT_EQ(aclrtGetStreamAttribute(stream, attribute, &value), 0);
    EXPECT_EQ(value.failureMode, 1u) << i;
  }
  aclrtStreamAttrValue value{};
  value.failureMode = 2;
  EXPECT_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_FAILURE_MODE, &value), 107000);
  value.streamPriority = 100;
  EXPECT_EQ(aclrtSetStreamAttribute(stream, ACL_STREAM_ATTR_PRIORITY, &value), 0);
  uint32_t priority = 0;
  EXPECT_EQ(aclrtStreamGetPriority(stream, &priority), 0);
  EXPECT_EQ(priority, 7u);
}

TEST_F(DeviceTest, ADestroyedHandleStaysStale) {
  aclrtStream first = nullptr;
  ASSERT_EQ(aclrtCreateStream(&first), 0);
  EXPECT_EQ(aclrtDestroyStream(first), 0);
  aclrtStream second = nullptr;
  ASSERT_EQ(aclrtCreateStream(&second), 0);
  ASSERT_NE(first, second);
  check_rows({
      {"destroy", 107017, [&] { return aclrtDestroyStream(first); }},
      {"force", 107017, [&] { return aclrtDestroyStreamForce(first); }},
      {"synchronize", 107017, [&] { return aclrtSynchronizeStream(first); }},
  });
  EXPECT_EQ(launch(first, nullptr, nullptr, 0).code(), 107017);
  EXPECT_TRUE(check_stream(second).ok());
  EXPECT_EQ(aclrtDestroyStream(second), 0);
}

TEST_F(StreamTest, AnOversizedPayloadIsRefused) {
  std::vector<char> payload(kMaxTaskPayload + 1);
  EXPECT_EQ(launch(stream, nullptr, payload.data(), payload.size()).code(), 561000);
}

TEST_F(StreamTest, TasksRunInOrderWithTheirOwnPayload) {
  struct Entry {
    std::vector<int>* log;
    int number;
    char filler[kMaxTaskPayload - sizeof(void*) - sizeof(int)];
  };
  const TaskFn append = [](void* payload) {
    const auto* entry = static_cast<const Entry*>(payload);
    entry->log->push_back(entry->number);
    return Status();
  };
  std::vector<int> log;
  Gate gate;
  gate.hold(stream);
  for (int i = 0; i < 500; ++i) {
    const Entry entry{&log, i, {}};
    ASSERT_TRUE(launch(stream, append, &entry, sizeof(Entry)).ok());
  }
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  ASSERT_EQ(log.size(), 500u);
  for (int i = 0; i < 500; ++i) EXPECT_EQ(log[static_cast<size_t>(i)], i);
}

TEST_F(StreamTest, QueueingReturnsWhileWorkRuns) {
  Gate gate;
  gate.hold(stream);
  gate.await_arrival();
  ASSERT_TRUE(queue(stream, kNothing).ok());
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), 0);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclrtStreamQuery(stream, &status), 0);
  EXPECT_EQ(status, ACL_STREAM_STATUS_COMPLETE);
}

TEST_F(StreamTest, StreamsRunAtOnce) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), 0);
  Gate gate;
  gate.hold(stream);
  ASSERT_TRUE(queue(other, kNothing).ok());
  ASSERT_TRUE(queue(nullptr, kNothing).ok());
  EXPECT_EQ(aclrtSynchronizeStream(other), 0);
  EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclrtDestroyStream(other), 0);
}

TEST_F(StreamTest, SynchronizeTimesOut) {
  Gate gate;
  gate.hold(stream);
  const auto start = Clock::now();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 30), 507046);
  EXPECT_GE(Clock::now() - start, milliseconds(30));
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(10), 507046);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), 0);
  EXPECT_EQ(aclrtSynchronizeDeviceWithTimeout(60000), 0);
}

TEST_F(StreamTest, SynchronizeDeviceWaitsForEveryStream) {
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), 0);
  std::atomic<int> ran{0};
  const Body slow = [&] {
    std::this_thread::sleep_for(milliseconds(15));
    ++ran;
    return Status();
  };
  for (const aclrtStream queue_here : {stream, other, aclrtStream{nullptr}}) {
    ASSERT_TRUE(queue(queue_here, slow).ok());
  }
  EXPECT_EQ(aclrtSynchronizeDevice(), 0);
  EXPECT_EQ(ran, 3);
  EXPECT_EQ(aclrtDestroyStream(other), 0);
}

TEST_F(DeviceTest, DestroyWaitsForQueuedWork) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  std::atomic<int> ran{0};
  const Body slow = [&] {
    std::this_thread::sleep_for(milliseconds(10));
    ++ran;
    return Status();
  };
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(queue(stream, slow).ok());
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
  EXPECT_EQ(ran, 3);
}

TEST_F(DeviceTest, ForcedDestroyDropsWhatHasNotBegun) {
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  std::atomic<int> ran{0};
  const Body count = [&] {
    ++ran;
    return Status();
  };
  Gate gate;
  gate.hold(stream);
  gate.await_arrival();
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(queue(stream, count).ok());
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    gate.open();
  });
  EXPECT_EQ(aclrtDestroyStreamForce(stream), 0);
  EXPECT_EQ(ran, 0);
  opener.join();
}

TEST_F(DeviceTest, StreamsAreCounted) {
  uint32_t before = 0;
  ASSERT_EQ(aclrtGetStreamAvailableNum(&before), 0);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  uint32_t after = 0;
  EXPECT_EQ(aclrtGetStreamAvailableNum(&after), 0);
  EXPECT_EQ(after, before - 1);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
}

TEST_F(DeviceTest, TimeLimitsOfOperatorsAreAccepted) {
  uint64_t actual = 0;
  EXPECT_EQ(aclrtSetOpExecuteTimeOut(10), 0);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutWithMs(10), 0);
  EXPECT_EQ(aclrtSetOpExecuteTimeOutV2(12345, &actual), 0);
  EXPECT_EQ(actual, 12345u);
}

}  // namespace
}  // namespace npuless::runtime
