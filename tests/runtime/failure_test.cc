// Errors of queued work: when they are reported, with which sentence, and what follows.
#include <cstdio>
#include <ctime>
#include <future>
#include <new>
#include <string>

#include "runtime/stream.h"
#include "support.h"

namespace npuless::runtime {
namespace {

Body failing(int32_t code, const char* sentence) {
  return [=] { return fail(code, "%s", sentence); };
}

std::string sentence() {
  const char* text = aclGetRecentErrMsg();
  return text == nullptr ? "" : text;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(StreamTest, SynchronizeReportsTheFirstFailureOnceWithItsSentence) {
  const Body first = failing(507015, "the first thing broke");
  const Body second = failing(507018, "the second thing broke");
  EXPECT_TRUE(queue(stream, first).ok());
  EXPECT_TRUE(queue(stream, second).ok());
  aclGetRecentErrMsg();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  EXPECT_EQ(aclrtGetLastError(ACL_RT_THREAD_LEVEL), 507015);
  const std::string text = sentence();
  EXPECT_TRUE(mentions(text, "the first thing broke")) << text;
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_TRUE(queue(stream, second).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507018);
}

TEST_F(StreamTest, AFailureWithoutASentenceGetsOne) {
  const Body mute = [] { return Status(507000); };
  // A sentence that an earlier task left does not stand in for the missing one.
  const Body chatty = [] { return fail(507018, "an old sentence").ok() ? Status() : Status(); };
  EXPECT_TRUE(queue(stream, chatty).ok());
  EXPECT_TRUE(queue(stream, mute).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507000);
  const std::string text = sentence();
  EXPECT_TRUE(mentions(text, "507000")) << text;
  EXPECT_FALSE(mentions(text, "old")) << text;
}

TEST_F(StreamTest, ExceptionsOfTasksBecomeCodes) {
  const Body no_memory = []() -> Status { throw std::bad_alloc(); };
  const Body strange = []() -> Status { throw 42; };
  EXPECT_TRUE(queue(stream, no_memory).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 207001);
  EXPECT_FALSE(sentence().empty());
  EXPECT_TRUE(queue(stream, strange).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507000);
  EXPECT_FALSE(sentence().empty());
}

TEST_F(StreamTest, EveryWayOfSynchronizingReports) {
  const Body bad = failing(507015, "broke");
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 4), 0);
  char pageable[4] = {};
  const Row ways[] = {
      {"stream", 507015, [&] { return aclrtSynchronizeStream(stream); }},
      {"stream with timeout", 507015,
       [&] { return aclrtSynchronizeStreamWithTimeout(stream, 60000); }},
      {"device", 507015, [] { return aclrtSynchronizeDevice(); }},
      {"device with timeout", 507015, [] { return aclrtSynchronizeDeviceWithTimeout(60000); }},
      {"event", 507015, [&] { return aclrtSynchronizeEvent(event); }},
      {"event with timeout", 507015,
       [&] { return aclrtSynchronizeEventWithTimeout(event, 60000); }},
      {"copy that drains", 507015,
       [&] { return aclrtMemcpyAsync(pageable, 4, pinned, 4, ACL_MEMCPY_DEFAULT, stream); }},
  };
  for (const Row& way : ways) {
    EXPECT_TRUE(queue(stream, bad).ok());
    ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
    check_rows({way});
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0) << way.name;
  }
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
}

TEST_F(StreamTest, SynchronizeDeviceTakesTheFailuresOfAllStreams) {
  const Body bad = failing(507015, "broke here");
  const Body worse = failing(507018, "broke there");
  aclrtStream other = nullptr;
  ASSERT_EQ(aclrtCreateStream(&other), 0);
  EXPECT_TRUE(queue(stream, bad).ok());
  EXPECT_TRUE(queue(other, worse).ok());
  const aclError code = aclrtSynchronizeDevice();
  EXPECT_TRUE(code == 507015 || code == 507018) << code;
  EXPECT_TRUE(mentions(sentence(), code == 507015 ? "here" : "there"));
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(aclrtSynchronizeStream(other), 0);
  EXPECT_EQ(aclrtDestroyStream(other), 0);
}

// An event answers for the work it captured, not for what was queued behind it.
TEST_F(StreamTest, AnEventDoesNotReportLaterFailures) {
  const Body bad = failing(507015, "broke");
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  EXPECT_TRUE(queue(stream, bad).ok());
  StreamPin pin = streams().find(stream);
  EXPECT_TRUE(pin->wait_reached(pin->submitted(), kForever));
  EXPECT_EQ(aclrtSynchronizeEvent(event), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
}

// What runs behind a failure, by mode; an event is reached and has its time in both.
TEST_F(StreamTest, FailureModes) {
  const Body bad = failing(507015, "broke");
  for (const uint64_t mode : {ACL_CONTINUE_ON_FAILURE, ACL_STOP_ON_FAILURE}) {
    std::atomic<int> ran{0};
    const Body count = [&] {
      ++ran;
      return Status();
    };
    aclrtEvent event = nullptr;
    ASSERT_EQ(aclrtCreateEvent(&event), 0);
    ASSERT_EQ(aclrtSetStreamFailureMode(stream, mode), 0);
    Gate gate;
    gate.hold(stream);
    EXPECT_TRUE(queue(stream, bad).ok());
    EXPECT_TRUE(queue(stream, count).ok());
    ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
    gate.open();
    EXPECT_EQ(aclrtSynchronizeEvent(event), 507015);
    uint64_t time = 0;
    EXPECT_EQ(aclrtEventGetTimestamp(event, &time), 0);
    EXPECT_EQ(ran, mode == ACL_CONTINUE_ON_FAILURE ? 1 : 0);
    EXPECT_TRUE(queue(stream, count).ok());
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
    EXPECT_EQ(ran, mode == ACL_CONTINUE_ON_FAILURE ? 2 : 1);
    EXPECT_EQ(aclrtDestroyEvent(event), 0);
  }
}

TEST_F(StreamTest, AbortDropsQueuedWorkAndSaysSo) {
  std::atomic<int> ran{0};
  const Body count = [&] {
    ++ran;
    return Status();
  };
  Gate gate;
  gate.hold(stream);
  gate.await_arrival();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(queue(stream, count).ok());
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(20));
    gate.open();
  });
  EXPECT_EQ(aclrtStreamAbort(stream), 0);
  opener.join();
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107023);
  EXPECT_TRUE(mentions(sentence(), "discarded"));
  EXPECT_TRUE(queue(stream, count).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(aclrtStreamStop(stream), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

// Aborting a stream that waits for another needs the other's mutex for a moment. The test holds it
// and queues work in that moment.
TEST_F(StreamTest, AbortDoesNotWaitForWorkQueuedMeanwhile) {
  aclrtStream source = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtCreateStream(&source), 0);
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  Gate source_gate;
  source_gate.hold(source);
  ASSERT_EQ(aclrtRecordEvent(event, source), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, event), 0);
  std::this_thread::sleep_for(milliseconds(20));  // the stream waits now

  const StreamPin pin = streams().find(stream);
  Gate later;
  std::future<void> aborted;
  const auto fill = [&](void*) {
    aborted = std::async(std::launch::async, [&] { pin->abort(); });
    std::this_thread::sleep_for(milliseconds(20));  // it has discarded
    later.hold(stream);
  };
  const TaskKind nothing{.run = [](void*) { return Status(); }};
  EXPECT_TRUE(streams().find(source)->enqueue(nothing, fill).ok());
  EXPECT_EQ(aborted.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  later.open();
  aborted.wait();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107023);
  source_gate.open();
  EXPECT_EQ(aclrtDestroyStream(source), 0);
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
}

TEST_F(StreamTest, DiscardedWorkLetsGoOfWhatItHeld) {
  constexpr size_t kSize = 4096;
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  ASSERT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &before, &total), 0);
  void* from = nullptr;
  void* to = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtMalloc(&from, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMalloc(&to, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  ASSERT_EQ(aclrtRecordEvent(event, stream), 0);
  Gate gate;
  gate.hold(stream);
  gate.await_arrival();
  ASSERT_EQ(aclrtMemcpyAsync(to, kSize, from, kSize, ACL_MEMCPY_DEFAULT, stream), 0);
  ASSERT_EQ(aclrtStreamWaitEvent(stream, event), 0);
  EXPECT_EQ(aclrtFree(from), 0);
  EXPECT_EQ(aclrtFree(to), 0);
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(10));
    gate.open();
  });
  EXPECT_EQ(aclrtStreamAbort(stream), 0);
  opener.join();
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &after, &total), 0);
  EXPECT_EQ(after, before);
  aclrtEventWaitStatus waits = ACL_EVENT_WAIT_STATUS_RESERVED;
  EXPECT_EQ(aclrtQueryEventWaitStatus(event, &waits), 0);
  EXPECT_EQ(waits, ACL_EVENT_WAIT_STATUS_COMPLETE);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 107023);
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
}

using SystemClock = std::chrono::system_clock;

// The time that an error's text tells: "[PID: 1] 2024-01-31-23:59:59.999 …".
SystemClock::time_point time_in(const std::string& text) {
  tm parts{};
  int milli = 0;
  EXPECT_EQ(
      std::sscanf(text.c_str(), "[PID: %*d] %d-%d-%d-%d:%d:%d.%d ", &parts.tm_year, &parts.tm_mon,
                  &parts.tm_mday, &parts.tm_hour, &parts.tm_min, &parts.tm_sec, &milli),
      7)
      << text;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  parts.tm_isdst = -1;
  return SystemClock::from_time_t(std::mktime(&parts)) + milliseconds(milli);
}

// An error's text tells when it happened, not when it was reported or read.
TEST_F(StreamTest, ErrorsKeepTheirTime) {
  const Body bad = failing(507015, "broke");
  const Body mute = [] { return Status(507000); };
  const auto drain = [&] {
    const StreamPin pin = streams().find(stream);
    pin->wait_reached(pin->submitted(), kForever);
  };
  const struct {
    const char* name;
    std::function<void()> happen;
    std::function<void()> report;
  } rows[] = {
      {"call", [] { aclrtFree(nullptr); }, [] {}},
      {"task", [&] { EXPECT_TRUE(queue(stream, bad).ok()); },
       [&] { EXPECT_EQ(aclrtSynchronizeStream(stream), 507015); }},
      {"task without a sentence", [&] { EXPECT_TRUE(queue(stream, mute).ok()); },
       [&] { EXPECT_EQ(aclrtSynchronizeStream(stream), 507000); }},
      {"task, device", [&] { EXPECT_TRUE(queue(stream, bad).ok()); },
       [&] { EXPECT_EQ(aclrtSynchronizeDevice(), 507015); }},
  };
  for (const auto& row : rows) {
    const auto before = std::chrono::floor<milliseconds>(SystemClock::now());
    row.happen();
    drain();
    const auto after = SystemClock::now();
    std::this_thread::sleep_for(milliseconds(5));
    row.report();
    std::this_thread::sleep_for(milliseconds(5));
    const auto told = time_in(sentence());
    EXPECT_GE(told, before) << row.name;
    EXPECT_LE(told, after) << row.name;
  }
}

TEST_F(StreamTest, FreeWithSyncFreesAndReports) {
  const Body bad = failing(507015, "broke");
  void* device = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  EXPECT_TRUE(queue(stream, bad).ok());
  EXPECT_EQ(aclrtFreeWithDevSync(device), 507015);
  EXPECT_EQ(aclrtFree(device), 107000);
}

}  // namespace
}  // namespace npuless::runtime
