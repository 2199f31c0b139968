// Explicit contexts and the options of processes and contexts, contract §2.2.
#include "support.h"

namespace npuless::runtime {
namespace {

aclrtContext current_context_handle() {
  aclrtContext context = nullptr;
  return aclrtGetCurrentContext(&context) == 0 ? context : nullptr;
}

aclrtStream default_stream() {
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtCtxGetCurrentDefaultStream(&stream), 0);
  return stream;
}

TEST_F(DeviceTest, CreatedContextBecomesCurrentWithItsOwnDefaultStream) {
  const aclrtContext primary = current_context_handle();
  const aclrtStream primary_stream = default_stream();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 1), 0);
  EXPECT_EQ(current_context_handle(), context);
  EXPECT_NE(default_stream(), primary_stream);
  int32_t device = -1;
  EXPECT_EQ(aclrtGetDevice(&device), 0);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(aclrtSetCurrentContext(primary), 0);
  EXPECT_EQ(default_stream(), primary_stream);
  EXPECT_EQ(aclrtDestroyContext(context), 0);
}

TEST_F(DeviceTest, DestroyedContextIsRecognised) {
  const aclrtContext primary = current_context_handle();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), 0);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  EXPECT_EQ(aclrtDestroyContext(context), 0);
  int32_t device = 0;
  check_rows({
      {"current is gone", 107002, [&] { return aclrtGetDevice(&device); }},
      {"no default stream", 107002, [] { return aclrtSynchronizeStream(nullptr); }},
      {"its streams are gone", 107017, [&] { return aclrtSynchronizeStream(stream); }},
      {"set current", 107000, [&] { return aclrtSetCurrentContext(context); }},
      {"destroy again", 107000, [&] { return aclrtDestroyContext(context); }},
  });
  // A new context may use the old one's slot; its handle differs all the same.
  aclrtContext other = nullptr;
  ASSERT_EQ(aclrtCreateContext(&other, 0), 0);
  EXPECT_EQ(aclrtSetCurrentContext(context), 107000);
  EXPECT_EQ(aclrtDestroyContext(other), 0);
  EXPECT_EQ(aclrtSetCurrentContext(primary), 0);
}

TEST_F(DeviceTest, DestroyingAContextFinishesItsWork) {
  const aclrtContext primary = current_context_handle();
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 0), 0);
  std::atomic<int> ran{0};
  const Body slow = [&] {
    std::this_thread::sleep_for(milliseconds(20));
    ++ran;
    return Status();
  };
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  ASSERT_TRUE(queue(stream, slow).ok());
  ASSERT_TRUE(queue(nullptr, slow).ok());
  EXPECT_EQ(aclrtDestroyContext(context), 0);
  EXPECT_EQ(ran, 2);
  EXPECT_EQ(aclrtSetCurrentContext(primary), 0);
}

TEST_F(StreamTest, StreamsOfAnotherContextAreRefused) {
  aclrtContext other = nullptr;
  const aclrtContext mine = current_context_handle();
  ASSERT_EQ(aclrtCreateContext(&other, 0), 0);
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  int32_t id = 0;
  char byte = 0;
  void* block = nullptr;
  aclrtEvent event = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 1, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtCreateEvent(&event), 0);
  check_rows({
      {"synchronize", 107003, [&] { return aclrtSynchronizeStream(stream); }},
      {"with timeout", 107003, [&] { return aclrtSynchronizeStreamWithTimeout(stream, 1); }},
      {"query", 107003, [&] { return aclrtStreamQuery(stream, &status); }},
      {"id", 107003, [&] { return aclrtStreamGetId(stream, &id); }},
      {"abort", 107003, [&] { return aclrtStreamAbort(stream); }},
      {"copy", 107003,
       [&] { return aclrtMemcpyAsync(block, 1, &byte, 1, ACL_MEMCPY_DEFAULT, stream); }},
      {"fill", 107003, [&] { return aclrtMemsetAsync(block, 1, 0, 1, stream); }},
      {"record", 107003, [&] { return aclrtRecordEvent(event, stream); }},
  });
  EXPECT_EQ(launch(stream, nullptr, nullptr, 0).code(), 107003);
  EXPECT_EQ(check_stream(stream).code(), 107003);
  EXPECT_EQ(aclrtDestroyEvent(event), 0);
  EXPECT_EQ(aclrtFree(block), 0);
  EXPECT_EQ(aclrtDestroyContext(other), 0);
  EXPECT_EQ(aclrtSetCurrentContext(mine), 0);
}

TEST_F(StreamTest, AContextServesManyThreads) {
  const aclrtContext context = current_context_handle();
  std::atomic<int> ran{0};
  const Body count = [&] {
    ++ran;
    return Status();
  };
  on_new_thread([&] {
    EXPECT_EQ(check_stream(stream).code(), 107002);
    ASSERT_EQ(aclrtSetCurrentContext(context), 0);
    EXPECT_TRUE(queue(stream, count).ok());
    EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  });
  EXPECT_EQ(ran, 1);
}

TEST_F(DeviceTest, MemoryOutlivesThePrimaryContextWhileAnotherContextIsLeft) {
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 1), 0);
  ASSERT_EQ(aclrtSetDevice(1), 0);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  EXPECT_EQ(aclrtResetDevice(1), 0);
  EXPECT_EQ(aclrtFree(block), 0);
  EXPECT_EQ(aclrtDestroyContext(context), 0);
}

TEST_F(DeviceTest, ResetFreesWhatTheDeviceHolds) {
  ASSERT_EQ(aclrtSetDevice(1), 0);
  void* block = nullptr;
  void* host = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMallocHost(&host, 64), 0);
  EXPECT_EQ(aclrtResetDevice(1), 0);
  EXPECT_EQ(aclrtFree(block), 107000);
  EXPECT_EQ(aclrtFreeHost(host), 0);
}

TEST_F(DeviceTest, Options) {
  int64_t value = -1;
  check_rows({
      {"never set", 107021,
       [&] { return aclrtGetSysParamOpt(ACL_OPT_ENABLE_DEBUG_KERNEL, &value); }},
      {"never set here", 107021,
       [&] { return aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value); }},
      {"get null", 100000, [] { return aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr); }},
      {"context null", 100000,
       [] { return aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, nullptr); }},
      {"unknown option", 107000,
       [] { return aclrtSetSysParamOpt(enumerator<aclSysParamOpt>(4), 1); }},
      {"unknown option, get", 107000,
       [&] { return aclrtGetSysParamOpt(enumerator<aclSysParamOpt>(-1), &value); }},
      {"value too high", 107000, [] { return aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 4); }},
      {"value negative", 107000, [] { return aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, -1); }},
      {"no switch", 107000, [] { return aclrtSetSysParamOpt(ACL_OPT_STRONG_CONSISTENCY, 2); }},
      {"set", 0, [] { return aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 3); }},
      {"set here", 0, [] { return aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1); }},
  });
  EXPECT_EQ(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 0);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value), 0);
  EXPECT_EQ(value, 1);
}

}  // namespace
}  // namespace npuless::runtime
