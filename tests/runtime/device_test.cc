// Devices and contexts, contract §2.2. The environment makes two devices (see CMakeLists.txt).
#include "runtime/device.h"

#include "support.h"

namespace npuless::runtime {
namespace {

constexpr int kDevices = 2;

int current_device() {
  int32_t device = -1;
  return aclrtGetDevice(&device) == 0 ? device : -1;
}

TEST(Device, NothingIsCurrentInAFreshThread) {
  on_new_thread([] {
    int32_t device = 0;
    aclrtContext context = nullptr;
    aclrtStream stream = nullptr;
    size_t free = 0;
    size_t total = 0;
    uint32_t count = 0;
    int64_t value = 0;
    check_rows({
        {"GetDevice", 107002, [&] { return aclrtGetDevice(&device); }},
        {"GetCurrentContext", 107002, [&] { return aclrtGetCurrentContext(&context); }},
        {"default stream", 107002, [&] { return aclrtCtxGetCurrentDefaultStream(&stream); }},
        {"SynchronizeDevice", 107002, [] { return aclrtSynchronizeDevice(); }},
        {"SynchronizeStream", 107002, [] { return aclrtSynchronizeStream(nullptr); }},
        {"CreateStream", 107002, [&] { return aclrtCreateStream(&stream); }},
        {"GetMemInfo", 107002, [&] { return aclrtGetMemInfo(ACL_HBM_MEM, &free, &total); }},
        {"StreamAvailable", 107002, [&] { return aclrtGetStreamAvailableNum(&count); }},
        {"SetOpWaitTimeout", 107002, [] { return aclrtSetOpWaitTimeout(1); }},
        {"CtxGet", 107002, [&] { return aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value); }},
        {"CtxSet", 107002, [&] { return aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1); }},
    });
  });
}

TEST(Device, Misuse) {
  int32_t answer = 0;
  uint32_t flags = 0;
  int64_t value = 0;
  aclrtContext context = nullptr;
  aclrtUtilizationInfo extended{};
  extended.utilizationExtend = reinterpret_cast<aclrtUtilizationExtendInfo*>(&value);
  aclrtUtilizationInfo use{};
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclrtSetDevice(0), 0);
  check_rows({
      {"set -1", 107001, [] { return aclrtSetDevice(-1); }},
      {"set too high", 107001, [] { return aclrtSetDevice(kDevices); }},
      {"reset -1", 107001, [] { return aclrtResetDevice(-1); }},
      {"reset too high", 107001, [] { return aclrtResetDevice(kDevices); }},
      {"reset never set", 507007, [] { return aclrtResetDevice(1); }},
      {"force bad id", 107001, [] { return aclrtResetDeviceForce(kDevices); }},
      {"force never set", 507007, [] { return aclrtResetDeviceForce(1); }},
      {"get null", 100000, [] { return aclrtGetDevice(nullptr); }},
      {"count null", 100000, [] { return aclrtGetDeviceCount(nullptr); }},
      {"timeout -2", 107000, [] { return aclrtSynchronizeDeviceWithTimeout(-2); }},
      {"timeout -1", 0, [] { return aclrtSynchronizeDeviceWithTimeout(-1); }},
      {"timeout 5", 0, [] { return aclrtSynchronizeDeviceWithTimeout(5); }},
      {"ts aicore", 0, [] { return aclrtSetTsDevice(ACL_TS_ID_AICORE); }},
      {"ts aivector", 0, [] { return aclrtSetTsDevice(ACL_TS_ID_AIVECTOR); }},
      {"ts reserved", 107000, [] { return aclrtSetTsDevice(ACL_TS_ID_RESERVED); }},
      {"create context null", 100000, [] { return aclrtCreateContext(nullptr, 0); }},
      {"create context null and bad", 100000, [] { return aclrtCreateContext(nullptr, 99); }},
      {"create context bad id", 107001, [&] { return aclrtCreateContext(&context, kDevices); }},
      {"destroy context null", 100000, [] { return aclrtDestroyContext(nullptr); }},
      {"destroy garbage", 107000, [&] { return aclrtDestroyContext(&value); }},
      {"current null", 100000, [] { return aclrtSetCurrentContext(nullptr); }},
      {"current garbage", 107000, [&] { return aclrtSetCurrentContext(&value); }},
      {"get current null", 100000, [] { return aclrtGetCurrentContext(nullptr); }},
      {"default stream null", 100000, [] { return aclrtCtxGetCurrentDefaultStream(nullptr); }},
      {"state null", 100000, [&] { return aclrtGetPrimaryCtxState(0, nullptr, &answer); }},
      {"state null 2", 100000, [&] { return aclrtGetPrimaryCtxState(0, &flags, nullptr); }},
      {"state bad id", 107001, [&] { return aclrtGetPrimaryCtxState(9, &flags, &answer); }},
      {"peer null", 100000, [] { return aclrtDeviceCanAccessPeer(nullptr, 0, 1); }},
      {"peer itself", 100000, [&] { return aclrtDeviceCanAccessPeer(&answer, 1, 1); }},
      {"peer bad id", 107001, [&] { return aclrtDeviceCanAccessPeer(&answer, 0, kDevices); }},
      {"peer bad id 2", 107001, [&] { return aclrtDeviceCanAccessPeer(&answer, -1, 0); }},
      {"enable", 0, [] { return aclrtDeviceEnablePeerAccess(1, 0); }},
      {"enable flags", 100000, [] { return aclrtDeviceEnablePeerAccess(1, 1); }},
      {"enable bad id", 107001, [] { return aclrtDeviceEnablePeerAccess(kDevices, 0); }},
      {"enable itself", 100000, [] { return aclrtDeviceEnablePeerAccess(0, 0); }},
      {"disable", 0, [] { return aclrtDeviceDisablePeerAccess(1); }},
      {"disable bad id", 107001, [] { return aclrtDeviceDisablePeerAccess(-1); }},
      {"info null", 100000, [] { return aclrtGetDeviceInfo(0, ACL_DEV_ATTR_IS_VIRTUAL, nullptr); }},
      {"info bad id", 107001,
       [&] { return aclrtGetDeviceInfo(kDevices, ACL_DEV_ATTR_IS_VIRTUAL, &value); }},
      {"info beyond int", 107001,
       [&] { return aclrtGetDeviceInfo(UINT32_MAX, ACL_DEV_ATTR_IS_VIRTUAL, &value); }},
      {"info without meaning", 207000,
       [&] { return aclrtGetDeviceInfo(0, ACL_DEV_ATTR_WARP_SIZE, &value); }},
      {"priority null", 100000,
       [&] { return aclrtDeviceGetStreamPriorityRange(nullptr, &answer); }},
      {"priority null 2", 100000,
       [&] { return aclrtDeviceGetStreamPriorityRange(&answer, nullptr); }},
      {"utilization null", 100000, [] { return aclrtGetDeviceUtilizationRate(0, nullptr); }},
      {"utilization bad id", 107001, [&] { return aclrtGetDeviceUtilizationRate(9, &use); }},
      {"utilization extend", 100000, [&] { return aclrtGetDeviceUtilizationRate(0, &extended); }},
      {"status null", 100000, [] { return aclrtQueryDeviceStatus(0, nullptr); }},
      {"status bad id", 107001, [&] { return aclrtQueryDeviceStatus(-1, &status); }},
      {"capability null", 100000,
       [] { return aclGetDeviceCapability(0, ACL_DEVICE_INFO_L2_SIZE, nullptr); }},
      {"capability bad id", 107001,
       [&] { return aclGetDeviceCapability(9, ACL_DEVICE_INFO_L2_SIZE, &value); }},
      {"capability undefined", 100000,
       [&] { return aclGetDeviceCapability(0, ACL_DEVICE_INFO_UNDEFINED, &value); }},
      {"attributes null", 100000, [&] { return aclGetCannAttributeList(nullptr, &count); }},
      {"attributes null 2", 100000, [&] { return aclGetCannAttributeList(&attributes, nullptr); }},
      {"attribute null", 100000, [] { return aclGetCannAttribute(ACL_CANN_ATTR_BF16, nullptr); }},
      {"attribute undefined", 100000,
       [&] { return aclGetCannAttribute(ACL_CANN_ATTR_UNDEFINED, &answer); }},
  });
  EXPECT_EQ(context, nullptr);
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

TEST(Device, AnswersAboutItself) {
  ASSERT_EQ(aclrtSetDevice(1), 0);
  uint32_t count = 0;
  EXPECT_EQ(aclrtGetDeviceCount(&count), 0);
  EXPECT_EQ(count, static_cast<uint32_t>(kDevices));
  int64_t value = 0;
  EXPECT_EQ(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_PHY_CHIP_ID, &value), 0);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_IS_VIRTUAL, &value), 0);
  EXPECT_EQ(value, 1);
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), 0);
  EXPECT_EQ(aclrtGetDeviceInfo(1, ACL_DEV_ATTR_TOTAL_GLOBAL_MEM_SIZE, &value), 0);
  EXPECT_EQ(static_cast<size_t>(value), total);
  for (const aclrtDevAttr cores : {ACL_DEV_ATTR_AICORE_CORE_NUM, ACL_DEV_ATTR_VECTOR_CORE_NUM}) {
    EXPECT_EQ(aclrtGetDeviceInfo(1, cores, &value), 0);
    EXPECT_GE(value, 1);
  }
  EXPECT_EQ(aclGetDeviceCapability(1, ACL_DEVICE_INFO_AI_CORE_NUM, &value), 0);
  EXPECT_GE(value, 1);
  int32_t least = -1;
  int32_t greatest = -1;
  EXPECT_EQ(aclrtDeviceGetStreamPriorityRange(&least, &greatest), 0);
  EXPECT_EQ(least, 7);
  EXPECT_EQ(greatest, 0);
  int32_t peer = 0;
  EXPECT_EQ(aclrtDeviceCanAccessPeer(&peer, 0, 1), 0);
  EXPECT_EQ(peer, 1);
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  EXPECT_EQ(aclrtQueryDeviceStatus(1, &status), 0);
  EXPECT_EQ(status, ACL_RT_DEVICE_STATUS_NORMAL);
  EXPECT_EQ(aclrtResetDevice(1), 0);
}

TEST(Device, CannAttributesAreAllAnswered) {
  const aclCannAttr* attributes = nullptr;
  size_t count = 0;
  ASSERT_EQ(aclGetCannAttributeList(&attributes, &count), 0);
  ASSERT_EQ(count, 3u);
  for (size_t i = 0; i < count; ++i) {
    int32_t value = -1;
    EXPECT_EQ(aclGetCannAttribute(attributes[i], &value), 0);
    EXPECT_EQ(value, attributes[i] == ACL_CANN_ATTR_JIT_COMPILE ? 0 : 1);
  }
}

TEST(Device, SetCountsReferencesOfTheProcess) {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  on_new_thread([] { ASSERT_EQ(aclrtSetDevice(0), 0); });
  EXPECT_EQ(aclrtResetDevice(0), 0);
  EXPECT_EQ(current_device(), 0);
  EXPECT_EQ(aclrtResetDevice(0), 0);
  EXPECT_EQ(current_device(), -1);
  EXPECT_EQ(aclrtResetDevice(0), 507007);
}

TEST(Device, ForcedResetDropsAllReferences) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(aclrtSetDevice(0), 0);
  EXPECT_EQ(aclrtResetDeviceForce(0), 0);
  EXPECT_EQ(aclrtResetDevice(0), 507007);
  EXPECT_FALSE(has_primary_context(0));
}

TEST(Device, SetMakesThePrimaryContextCurrent) {
  uint32_t flags = 1;
  int32_t active = 1;
  EXPECT_EQ(aclrtGetPrimaryCtxState(1, &flags, &active), 0);
  EXPECT_EQ(active, 0);
  ASSERT_EQ(aclrtSetDevice(0), 0);
  ASSERT_EQ(aclrtSetDevice(1), 0);
  EXPECT_EQ(current_device(), 1);
  EXPECT_EQ(aclrtGetPrimaryCtxState(1, &flags, &active), 0);
  EXPECT_EQ(active, 1);
  EXPECT_EQ(flags, 0u);
  aclrtContext context = nullptr;
  EXPECT_EQ(aclrtGetCurrentContext(&context), 0);
  aclrtContext again = nullptr;
  on_new_thread([&] {
    ASSERT_EQ(aclrtSetDevice(1), 0);
    EXPECT_EQ(aclrtGetCurrentContext(&again), 0);
    EXPECT_EQ(aclrtResetDevice(1), 0);
  });
  EXPECT_EQ(context, again);
  EXPECT_EQ(aclrtDestroyContext(context), 107000);
  EXPECT_EQ(aclrtResetDevice(1), 0);
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

}  // namespace
}  // namespace npuless::runtime
