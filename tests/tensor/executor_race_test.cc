// Threads that fight for one executor.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

#include "add_fixture.h"
#include "sentence.h"
#include "tensor/executor.h"

namespace npuless::tensor {
namespace {

constexpr int kThreads = 2;
// As many rounds as fit a second, where every one may cost a time slice of a busy machine.
constexpr int kLeastRounds = 50, kMostRounds = 5000;
constexpr std::chrono::seconds kTime{1};

class Race : public StreamTest {
 protected:
  // Round after round, contend(thread) once in each thread, all let go together; prepare() before a
  // round, judge(codes they returned) after it, on one of them while the others wait. Returns how
  // many rounds there were.
  template <class Prepare, class Contend, class Judge>
  int race(Prepare prepare, Contend contend, Judge judge) {
    aclrtContext context = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&context), 0);
    std::vector<int32_t> codes(kThreads);
    const auto deadline = std::chrono::steady_clock::now() + kTime;
    int rounds = 0;
    bool over = false;
    std::barrier start(kThreads, [&]() noexcept { prepare(); });
    std::barrier end(kThreads, [&]() noexcept {
      judge(codes);
      ++rounds;
      over = rounds == kMostRounds ||
             (rounds >= kLeastRounds && std::chrono::steady_clock::now() > deadline);
    });
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        EXPECT_EQ(aclrtSetCurrentContext(context), 0);
        while (!over) {
          start.arrive_and_wait();
          meet(rounds);
          codes[static_cast<size_t>(t)] = contend(t);
          end.arrive_and_wait();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return rounds;
  }

  // Threads wake from a barrier one after the other, microseconds apart. Those that run at the same
  // time leave here within nanoseconds; nobody waits long for one that does not run.
  void meet(int round) {
    const int everyone = (round + 1) * kThreads;
    met_.fetch_add(1);
    for (int spins = 0; met_.load() < everyone && spins < 2000; ++spins) {
    }
  }

  static void expect_one_winner(const std::vector<int32_t>& codes) {
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 1);
    EXPECT_EQ(std::count(codes.begin(), codes.end(), code::kInnerNullptr), kThreads - 1);
  }

  static void expect_all_won(const std::vector<int32_t>& codes) {
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), kThreads);
  }

 private:
  std::atomic<int> met_{0};
};

TEST_F(Race, OneLaunchWins) {
  Addition add;
  aclOpExecutor* executor = nullptr;
  const int runs = add_runs.load();
  const int rounds = race([&] { executor = add.plan(); },
                          [&](int) { return add.launch(executor, stream); }, expect_one_winner);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + rounds);
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST_F(Race, OneDestroyWins) {
  Addition add;
  aclOpExecutor* executor = nullptr;
  race([&] { executor = add.plan_repeatable(); },
       [&](int) { return aclDestroyAclOpExecutor(executor); }, expect_one_winner);
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST_F(Race, LaunchOrDestroyWins) {
  Addition add;
  aclOpExecutor* executor = nullptr;
  std::atomic<int> launched{0};
  const int runs = add_runs.load();
  race([&] { executor = add.plan(); },
       [&](int thread) {
         if (thread % 2 == 0) return aclDestroyAclOpExecutor(executor);
         const int32_t code = add.launch(executor, stream);
         if (code == 0) ++launched;
         return code;
       },
       expect_one_winner);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + launched);
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST_F(Race, RepeatableServesAll) {
  Addition add;
  const int runs = add_runs.load();
  aclOpExecutor* executor = add.plan_repeatable();
  const int rounds =
      race([] {},
           [&](int thread) {
             if (thread == 0) {
               EXPECT_EQ(aclSetInputTensorAddr(executor, 0, add.a_tensor, add.b.data()), 0);
             }
             return add.launch(executor, stream);
           },
           expect_all_won);
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + kThreads * rounds);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(Race, ThreadsMakeAndRunTheirOwn) {
  Addition adds[kThreads];
  race([] {}, [&](int thread) { return adds[thread].launch(adds[thread].plan(), stream); },
       expect_all_won);
  EXPECT_EQ(synchronize(), 0);
  for (const Addition& add : adds) add.expect_added();
}

}  // namespace
}  // namespace npuless::tensor
