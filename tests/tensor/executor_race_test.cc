// Threads that fight for one executor.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <thread>
#include <vector>

#include "add_fixture.h"
#include "sentence.h"
#include "tensor/executor.h"

namespace npuless::tensor {
namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 200;

class Race : public StreamTest {
 protected:
  // contend(thread) once in each thread, all let go together; the codes they returned.
  template <class Contend>
  std::vector<int32_t> race(Contend contend) {
    aclrtContext context = nullptr;
    EXPECT_EQ(aclrtGetCurrentContext(&context), 0);
    std::vector<int32_t> codes(kThreads);
    std::barrier start(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        EXPECT_EQ(aclrtSetCurrentContext(context), 0);
        start.arrive_and_wait();
        codes[static_cast<size_t>(t)] = contend(t);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return codes;
  }

  static void expect_one_winner(const std::vector<int32_t>& codes) {
    EXPECT_EQ(std::count(codes.begin(), codes.end(), 0), 1);
    EXPECT_EQ(std::count(codes.begin(), codes.end(), code::kInnerNullptr), kThreads - 1);
  }
};

TEST_F(Race, OneLaunchWins) {
  Addition add;
  const int runs = add_runs.load();
  for (int round = 0; round < kRounds; ++round) {
    aclOpExecutor* executor = add.plan();
    expect_one_winner(race([&](int) { return add.launch(executor, stream); }));
  }
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + kRounds);
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST_F(Race, OneDestroyWins) {
  Addition add;
  for (int round = 0; round < kRounds; ++round) {
    aclOpExecutor* executor = add.plan_repeatable();
    expect_one_winner(race([&](int) { return aclDestroyAclOpExecutor(executor); }));
  }
  EXPECT_EQ(add.a_tensor->references.load(), 1);
}

TEST_F(Race, LaunchOrDestroyWins) {
  Addition add;
  int launched = 0;
  const int runs = add_runs.load();
  for (int round = 0; round < kRounds; ++round) {
    aclOpExecutor* executor = add.plan();
    std::atomic<int> launches{0};
    expect_one_winner(race([&](int thread) {
      if (thread % 2 == 0) return aclDestroyAclOpExecutor(executor);
      const int32_t code = add.launch(executor, stream);
      if (code == 0) ++launches;
      return code;
    }));
    launched += launches.load();
  }
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + launched);
}

TEST_F(Race, RepeatableServesAll) {
  Addition add;
  const int runs = add_runs.load();
  aclOpExecutor* executor = add.plan_repeatable();
  const std::vector<int32_t> codes = race([&](int thread) {
    int32_t code = 0;
    for (int round = 0; round < kRounds && code == 0; ++round) {
      if (thread == 0) code = aclSetInputTensorAddr(executor, 0, add.a_tensor, add.b.data());
      if (code == 0) code = add.launch(executor, stream);
    }
    return code;
  });
  EXPECT_EQ(codes, std::vector<int32_t>(kThreads, 0));
  EXPECT_EQ(synchronize(), 0);
  EXPECT_EQ(add_runs.load(), runs + kThreads * kRounds);
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
}

TEST_F(Race, ThreadsMakeAndRunTheirOwn) {
  Addition adds[kThreads];
  const std::vector<int32_t> codes = race([&](int thread) {
    int32_t code = 0;
    for (int round = 0; round < kRounds && code == 0; ++round) {
      code = adds[thread].launch(adds[thread].plan(), stream);
    }
    return code;
  });
  EXPECT_EQ(codes, std::vector<int32_t>(kThreads, 0));
  EXPECT_EQ(synchronize(), 0);
  for (const Addition& add : adds) add.expect_added();
}

}  // namespace
}  // namespace npuless::tensor
