// Many threads at once. Meant to run under ThreadSanitizer; here and there also a check of sums.
#include <cstring>

#include "support.h"

namespace npuless::runtime {
namespace {

constexpr int kThreads = 4;

void in_parallel(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&body, i] { body(i); });
  for (std::thread& thread : threads) thread.join();
}

TEST_F(StreamTest, ManyThreadsQueueOnOneStream) {
  int64_t sum = 0;  // written by the stream's worker alone
  const Body add = [&] {
    ++sum;
    return Status();
  };
  in_parallel([&](int) {
    ASSERT_EQ(aclrtSetDevice(0), 0);
    for (int i = 0; i < 500; ++i) {
      EXPECT_TRUE(queue(stream, add).ok());
      if (i % 50 == 0) {
        EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
      }
    }
    EXPECT_EQ(aclrtResetDevice(0), 0);
  });
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(sum, 500 * kThreads);
}

TEST_F(DeviceTest, StreamsAndEventsComeAndGo) {
  in_parallel([&](int) {
    ASSERT_EQ(aclrtSetDevice(0), 0);
    int64_t order = 0;
    const Body add = [&] {
      ++order;
      return Status();
    };
    for (int i = 0; i < 40; ++i) {
      aclrtStream first = nullptr;
      aclrtStream second = nullptr;
      aclrtEvent event = nullptr;
      ASSERT_EQ(aclrtCreateStream(&first), 0);
      ASSERT_EQ(aclrtCreateStream(&second), 0);
      ASSERT_EQ(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC), 0);
      for (int k = 0; k < 5; ++k) {
        EXPECT_TRUE(queue(first, add).ok());
        EXPECT_EQ(aclrtRecordEvent(event, first), 0);
        EXPECT_EQ(aclrtStreamWaitEvent(second, event), 0);
        EXPECT_TRUE(queue(second, add).ok());
        EXPECT_EQ(aclrtRecordEvent(event, second), 0);
        EXPECT_EQ(aclrtStreamWaitEvent(first, event), 0);
      }
      EXPECT_EQ(aclrtSynchronizeEvent(event), 0);
      EXPECT_EQ(aclrtDestroyEvent(event), 0);
      EXPECT_EQ(i % 2 == 0 ? aclrtDestroyStream(first) : aclrtDestroyStreamForce(first), 0);
      EXPECT_EQ(aclrtDestroyStream(second), 0);
    }
    EXPECT_EQ(order, 40 * 10);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  });
}

// Streams are destroyed, aborted and synchronised by several threads; every call answers a code.
TEST_F(DeviceTest, ConcurrentDestroyIsSafe) {
  for (int round = 0; round < 30; ++round) {
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
    std::atomic<int64_t> ran{0};
    std::atomic<int> destroyed{0};
    const Body add = [&] {
      ++ran;
      return Status();
    };
    in_parallel([&](int thread) {
      ASSERT_EQ(aclrtSetDevice(0), 0);
      for (int i = 0; i < 20; ++i) {
        const int32_t queued = queue(stream, add).code();
        EXPECT_TRUE(queued == 0 || queued == 107017) << queued;
        const aclError synchronized = aclrtSynchronizeStream(stream);
        EXPECT_TRUE(synchronized == 0 || synchronized == 107017 || synchronized == 107023);
        if (i == 10 && thread == 0) {
          EXPECT_NE(aclrtStreamAbort(stream), 100000);
        }
        if (i < 15) continue;
        const aclError code =
            round % 2 == 0 ? aclrtDestroyStream(stream) : aclrtDestroyStreamForce(stream);
        EXPECT_TRUE(code == 0 || code == 107017);
        destroyed += code == 0 ? 1 : 0;
      }
      EXPECT_EQ(aclrtResetDevice(0), 0);
    });
    EXPECT_EQ(destroyed, 1);
  }
}

TEST_F(DeviceTest, MemoryIsAllocatedCopiedAndFreedAtOnce) {
  in_parallel([&](int thread) {
    ASSERT_EQ(aclrtSetDevice(0), 0);
    aclrtStream stream = nullptr;
    ASSERT_EQ(aclrtCreateStream(&stream), 0);
    for (int i = 0; i < 100; ++i) {
      const size_t size = i % 10 == 0 ? size_t{2} << 20 : size_t{1} << (i % 12);
      void* block = nullptr;
      void* pinned = nullptr;
      ASSERT_EQ(aclrtMalloc(&block, size, ACL_MEM_MALLOC_HUGE_FIRST), 0);
      ASSERT_EQ(aclrtMallocHost(&pinned, size), 0);
      const int value = thread * 50 + i % 50;
      EXPECT_EQ(aclrtMemsetAsync(block, size, value, size, stream), 0);
      EXPECT_EQ(aclrtMemcpyAsync(pinned, size, block, size, ACL_MEMCPY_DEFAULT, stream), 0);
      EXPECT_EQ(aclrtFree(block), 0);
      EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
      const std::vector<char> expected(size, static_cast<char>(value));
      EXPECT_EQ(std::memcmp(pinned, expected.data(), size), 0);
      EXPECT_EQ(aclrtFreeHost(pinned), 0);
    }
    EXPECT_EQ(aclrtDestroyStream(stream), 0);
    EXPECT_EQ(aclrtResetDevice(0), 0);
  });
}

TEST(DeviceStress, ContextsComeAndGoWithTheirStreams) {
  in_parallel([](int thread) {
    for (int i = 0; i < 30; ++i) {
      ASSERT_EQ(aclrtSetDevice(thread % 2), 0);
      aclrtContext context = nullptr;
      aclrtStream stream = nullptr;
      ASSERT_EQ(aclrtCreateContext(&context, thread % 2), 0);
      ASSERT_EQ(aclrtCreateStream(&stream), 0);
      aclrtEvent event = nullptr;
      ASSERT_EQ(aclrtCreateEvent(&event), 0);
      EXPECT_EQ(aclrtRecordEvent(event, nullptr), 0);
      EXPECT_EQ(aclrtStreamWaitEvent(stream, event), 0);
      EXPECT_EQ(aclrtDestroyContext(context), 0);
      EXPECT_EQ(aclrtDestroyEvent(event), 0);
      EXPECT_EQ(aclrtResetDevice(thread % 2), 0);
    }
  });
}

}  // namespace
}  // namespace npuless::runtime
