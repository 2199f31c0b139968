// Layouts that compiled programs and other languages rely on, and what C++ may assume of the types.
#include <cstddef>
#include <type_traits>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "gtest/gtest.h"
#include "npuless/npuless.h"

namespace {

template <class A, class B>
constexpr bool same() {
  return std::is_same<A, B>::value;
}

TEST(Layout, ScalarTypes) {
  EXPECT_TRUE((same<aclError, int>()));
  EXPECT_TRUE((same<aclnnStatus, int32_t>()));
  EXPECT_TRUE((same<aclFloat16, uint16_t>()));
  EXPECT_TRUE((same<decltype(OK), const aclnnStatus>()));
  EXPECT_EQ(OK, 0);
}

TEST(Layout, HandlesArePointersToVoid) {
  EXPECT_TRUE((same<aclrtStream, void*>() && same<aclrtEvent, void*>()));
  EXPECT_TRUE((same<aclrtContext, void*>() && same<aclrtNotify, void*>()));
  EXPECT_TRUE((same<aclrtCntNotify, void*>() && same<aclrtLabel, void*>()));
  EXPECT_TRUE((same<aclrtLabelList, void*>() && same<aclrtMbuf, void*>()));
  EXPECT_TRUE((same<aclmdlRI, void*>() && same<aclmdlRITask, void*>()));
  EXPECT_TRUE((same<aclrtTaskGrp, void*>() && same<aclrtAllocator, void*>()));
  EXPECT_TRUE((same<aclrtAllocatorDesc, void*>() && same<aclrtAllocatorBlock, void*>()));
  EXPECT_TRUE((same<aclrtAllocatorAddr, void*>() && same<aclrtBinary, void*>()));
  EXPECT_TRUE((same<aclrtBinHandle, void*>() && same<aclrtFuncHandle, void*>()));
  EXPECT_TRUE((same<aclrtArgsHandle, void*>() && same<aclrtParamHandle, void*>()));
  EXPECT_TRUE((same<aclrtDrvMemHandle, void*>()));
}

// Samples write aclDataType::ACL_BF16 as well as ACL_BF16, and pass values as int.
TEST(Layout, EnumsAreUnscopedAndNamed) {
  EXPECT_EQ(aclDataType::ACL_BF16, ACL_BF16);
  EXPECT_EQ(aclFormat::ACL_FORMAT_ND, ACL_FORMAT_ND);
  EXPECT_TRUE((std::is_convertible<aclDataType, int>::value));
  EXPECT_EQ(sizeof(aclDataType), sizeof(int));
  EXPECT_EQ(sizeof(aclrtMemMallocPolicy), sizeof(int));
}

TEST(Layout, MemoryStructs) {
  EXPECT_EQ(offsetof(aclrtMemLocation, id), 0u);
  EXPECT_EQ(offsetof(aclrtMemLocation, type), 4u);
  EXPECT_EQ(sizeof(aclrtMemLocation), 8u);
  EXPECT_EQ(offsetof(aclrtPtrAttributes, location), 0u);
  EXPECT_EQ(offsetof(aclrtPtrAttributes, pageSize), 8u);
  EXPECT_EQ(offsetof(aclrtPtrAttributes, rsv), 12u);
  EXPECT_EQ(sizeof(aclrtPtrAttributes), 28u);
  EXPECT_EQ(offsetof(aclrtMallocConfig, attrs), 0u);
  EXPECT_EQ(offsetof(aclrtMallocConfig, numAttrs), sizeof(void*));
  EXPECT_EQ(offsetof(aclrtMallocAttribute, attr), 0u);
  EXPECT_EQ(sizeof(aclrtMallocAttrValue), 8u);
  EXPECT_EQ(offsetof(aclrtMemUsageInfo, name), 0u);
  EXPECT_EQ(offsetof(aclrtMemUsageInfo, curMemSize), 32u);
  EXPECT_EQ(offsetof(aclrtMemUsageInfo, memPeakSize), 40u);
  EXPECT_EQ(sizeof(aclrtMemUsageInfo), 48u + 8 * sizeof(size_t));
}

TEST(Layout, StreamStructs) {
  EXPECT_EQ(offsetof(aclrtStreamConfigHandle, workptr), 0u);
  EXPECT_EQ(offsetof(aclrtStreamConfigHandle, workSize), sizeof(void*));
  EXPECT_EQ(offsetof(aclrtStreamConfigHandle, flag), sizeof(void*) + sizeof(size_t));
  EXPECT_EQ(offsetof(aclrtStreamConfigHandle, priority), sizeof(void*) + 2 * sizeof(size_t));
  EXPECT_TRUE((same<decltype(aclrtStreamConfigHandle::priority), uint32_t>()));
  EXPECT_EQ(sizeof(aclrtStreamAttrValue), 16u);
}

TEST(Layout, QueryStructs) {
  EXPECT_EQ(offsetof(aclrtUtilizationInfo, vectorUtilization), 4u);
  EXPECT_EQ(offsetof(aclrtUtilizationInfo, aicpuUtilization), 8u);
  EXPECT_EQ(offsetof(aclrtUtilizationInfo, memoryUtilization), 12u);
  EXPECT_EQ(offsetof(aclrtUtilizationInfo, utilizationExtend), 16u);
  EXPECT_EQ(offsetof(aclCANNPackageVersion, majorVersion), 128u);
  EXPECT_EQ(offsetof(aclCANNPackageVersion, minorVersion), 192u);
  EXPECT_EQ(offsetof(aclCANNPackageVersion, releaseVersion), 256u);
  EXPECT_EQ(offsetof(aclCANNPackageVersion, patchVersion), 320u);
  EXPECT_EQ(sizeof(aclCANNPackageVersion), 512u);
}

}  // namespace
