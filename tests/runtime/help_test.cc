// Who runs queued work: the stream's worker, or a client that would otherwise wait for it.
#include <pthread.h>

#include <cfenv>
#include <csignal>
#include <string>

#include "base/parallel.h"
#include "support.h"

namespace npuless::runtime {
namespace {

using std::chrono::microseconds;

constexpr bool kBrief = true;

void wait_for(const std::atomic<bool>& flag) {
  while (!flag.load()) std::this_thread::yield();
}

TEST_F(StreamTest, WorkEndsThoughNobodyWaits) {
  std::atomic<bool> done{false};
  const Body body = [&] {
    done.store(true);
    return Status();
  };
  EXPECT_TRUE(queue(stream, body).ok());
  wait_for(done);
}

TEST_F(StreamTest, BriefWorkRunsOnTheLaunchingThread) {
  std::thread::id runner;
  const Body body = [&] {
    runner = std::this_thread::get_id();
    return Status();
  };
  EXPECT_TRUE(queue(stream, body, kBrief).ok());
  EXPECT_EQ(runner, std::this_thread::get_id());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
}

TEST_F(StreamTest, BriefWorkWaitsForItsTurn) {
  Gate gate;
  std::vector<int> order;
  const Body first = [&] {
    order.push_back(1);
    return Status();
  };
  const Body second = [&] {
    order.push_back(2);
    return Status();
  };
  gate.hold(stream);
  gate.await_arrival();
  EXPECT_TRUE(queue(stream, first).ok());
  EXPECT_TRUE(queue(stream, second, kBrief).ok());
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  EXPECT_EQ(aclrtStreamQuery(stream, &status), 0);
  EXPECT_EQ(status, ACL_STREAM_STATUS_NOT_READY);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(StreamTest, AFailureOfBriefWorkWaitsForSynchronize) {
  const Body failing = [] { return fail(507015, "the brief thing broke"); };
  aclGetRecentErrMsg();
  aclrtGetLastError(ACL_RT_THREAD_LEVEL);
  EXPECT_TRUE(queue(stream, failing, kBrief).ok());
  EXPECT_EQ(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL), 0);
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 507015);
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("the brief thing broke"), std::string::npos);
}

// A worker that sleeps takes longer to wake than the client to come; now and then the client is
// interrupted.
TEST_F(StreamTest, AClientTakesOverWhatASleepingWorkerHasNotBegun) {
  std::thread::id runner;
  const Body body = [&] {
    runner = std::this_thread::get_id();
    return Status();
  };
  int taken_over = 0;
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(milliseconds(2));
    EXPECT_TRUE(queue(stream, body).ok());
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
    if (runner == std::this_thread::get_id()) ++taken_over;
  }
  EXPECT_GT(taken_over, 0);
}

TEST_F(StreamTest, AClientWithADeadlineLeavesWorkToTheWorker) {
  std::thread::id runner;
  const Body body = [&] {
    runner = std::this_thread::get_id();
    return Status();
  };
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(queue(stream, body).ok());
    EXPECT_EQ(aclrtSynchronizeStreamWithTimeout(stream, 60000), 0);
    EXPECT_NE(runner, std::this_thread::get_id());
  }
}

TEST_F(StreamTest, ClientsRunWorkInTheDefaultFloatingPointEnvironment) {
  int rounding = -1;
  const Body body = [&] {
    rounding = std::fegetround();
    return Status();
  };
  std::fesetround(FE_UPWARD);
  EXPECT_TRUE(queue(stream, body, kBrief).ok());
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
  std::fesetround(FE_TONEAREST);
  EXPECT_EQ(rounding, FE_TONEAREST);
}

// Whoever starts the pool's threads, the program's signals are not theirs.
TEST_F(StreamTest, PoolThreadsLeaveSignalsToTheProgram) {
  const std::thread::id here = std::this_thread::get_id();
  std::atomic<int> unblocked{0}, others{0};
  const Body work = [&] {
    parallel_for(4, 64, [&](int64_t, int) {
      std::this_thread::sleep_for(microseconds(200));
      if (std::this_thread::get_id() == here) return;
      sigset_t mask;
      pthread_sigmask(SIG_BLOCK, nullptr, &mask);
      others.fetch_add(1);
      if (sigismember(&mask, SIGUSR1) == 0 || sigismember(&mask, SIGSEGV) == 1) {
        unblocked.fetch_add(1);
      }
    });
    return Status();
  };
  const int threads = num_threads();
  ASSERT_TRUE(set_num_threads(4).ok());
  EXPECT_TRUE(queue(stream, work, kBrief).ok());
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  ASSERT_TRUE(set_num_threads(threads).ok());
  EXPECT_GT(others.load(), 0);
  EXPECT_EQ(unblocked.load(), 0);
}

// The launching thread runs nobody's work but its own brief one.
TEST_F(StreamTest, BriefWorkDoesNotBringForwardWhatIsQueuedBeforeIt) {
  const std::thread::id here = std::this_thread::get_id();
  bool launching = false;
  int taken_along = 0;
  const Body work = [&] {
    if (std::this_thread::get_id() == here && launching) ++taken_along;
    return Status();
  };
  const Body nothing = [] { return Status(); };
  for (int i = 0; i < 200; ++i) {
    std::this_thread::sleep_for(microseconds(100));  // the worker falls asleep
    EXPECT_TRUE(queue(stream, work).ok());
    launching = true;
    EXPECT_TRUE(queue(stream, nothing, kBrief).ok());
    launching = false;
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  }
  EXPECT_EQ(taken_along, 0);
}

TEST_F(StreamTest, ManyClientsRunOneTaskAtATimeInOrder) {
  constexpr int kClients = 3, kTasks = 1000;
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtGetCurrentContext(&context), 0);
  std::atomic<int> inside{0};
  int overlaps = 0, disorder = 0;  // written by one task at a time, or the test fails
  int done[kClients] = {};
  struct Numbered {
    Body body;
    int number;
  };
  std::vector<Numbered> tasks[kClients];
  for (int c = 0; c < kClients; ++c) {
    for (int i = 0; i < kTasks; ++i) {
      tasks[c].push_back({[&, c, i] {
                            if (inside.fetch_add(1) != 0) ++overlaps;
                            if (i % 8 == 0) std::this_thread::sleep_for(microseconds(20));
                            if (done[c]++ != i) ++disorder;
                            inside.fetch_sub(1);
                            return Status();
                          },
                          i});
    }
  }
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&, c] {
      EXPECT_EQ(aclrtSetCurrentContext(context), 0);
      for (const Numbered& task : tasks[c]) {
        const bool brief = task.number % 3 == c;
        EXPECT_TRUE(queue(stream, task.body, brief).ok());
        if (task.number % 5 == c) {
          EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
        }
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  for (const int count : done) EXPECT_EQ(count, kTasks);
  EXPECT_EQ(overlaps, 0);
  EXPECT_EQ(disorder, 0);
}

}  // namespace
}  // namespace npuless::runtime
