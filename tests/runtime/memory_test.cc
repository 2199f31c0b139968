// Allocation, contract §2.3. The device's limit is 64 MiB (see main.cc).
#include "runtime/memory.h"

#include <unistd.h>

#include <cstring>
#include <memory>

#include "support.h"

namespace npuless::runtime {
namespace {

constexpr size_t kMega = size_t{1} << 20;
constexpr auto kHuge = ACL_MEM_MALLOC_HUGE_FIRST;

void* device_block(size_t size) {
  void* block = nullptr;
  EXPECT_EQ(aclrtMalloc(&block, size, kHuge), 0);
  return block;
}

size_t free_memory() {
  size_t free = 0;
  size_t total = 0;
  EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free, &total), 0);
  EXPECT_EQ(total, 64 * kMega);
  return free;
}

TEST_F(DeviceTest, AllocationRefusals) {
  void* block = nullptr;
  aclrtMallocConfig announced{nullptr, 1};
  check_rows({
      {"null", 100000, [] { return aclrtMalloc(nullptr, 1, kHuge); }},
      {"size 0", 100000, [&] { return aclrtMalloc(&block, 0, kHuge); }},
      {"align32 null", 100000, [] { return aclrtMallocAlign32(nullptr, 1, kHuge); }},
      {"align32 size 0", 100000, [&] { return aclrtMallocAlign32(&block, 0, kHuge); }},
      {"cached null", 100000, [] { return aclrtMallocCached(nullptr, 1, kHuge); }},
      {"cached size 0", 100000, [&] { return aclrtMallocCached(&block, 0, kHuge); }},
      {"cfg null", 100000, [] { return aclrtMallocWithCfg(nullptr, 1, kHuge, nullptr); }},
      {"cfg size 0", 100000, [&] { return aclrtMallocWithCfg(&block, 0, kHuge, nullptr); }},
      {"cfg attrs", 100000, [&] { return aclrtMallocWithCfg(&block, 1, kHuge, &announced); }},
      {"host null", 100000, [] { return aclrtMallocHost(nullptr, 1); }},
      {"host size 0", 100000, [&] { return aclrtMallocHost(&block, 0); }},
      {"host cfg null", 100000, [] { return aclrtMallocHostWithCfg(nullptr, 1, nullptr); }},
      {"host cfg size 0", 100000, [&] { return aclrtMallocHostWithCfg(&block, 0, nullptr); }},
      {"beyond the limit", 207001, [&] { return aclrtMalloc(&block, 64 * kMega + 1, kHuge); }},
      {"size_t max", 207001, [&] { return aclrtMalloc(&block, SIZE_MAX, kHuge); }},
      {"host size_t max", 207001, [&] { return aclrtMallocHost(&block, SIZE_MAX); }},
      {"free null", 100000, [] { return aclrtFree(nullptr); }},
      {"free host null", 100000, [] { return aclrtFreeHost(nullptr); }},
      {"free sync null", 100000, [] { return aclrtFreeWithDevSync(nullptr); }},
      {"free host sync null", 100000, [] { return aclrtFreeHostWithDevSync(nullptr); }},
      {"flush null", 100000, [] { return aclrtMemFlush(nullptr, 1); }},
      {"flush size 0", 100000, [&] { return aclrtMemFlush(&block, 0); }},
      {"invalidate null", 100000, [] { return aclrtMemInvalidate(nullptr, 1); }},
      {"invalidate size 0", 100000, [&] { return aclrtMemInvalidate(&block, 0); }},
  });
  EXPECT_EQ(block, nullptr);
  EXPECT_EQ(free_memory(), 64 * kMega);
}

TEST(Memory, AllocationNeedsAContext) {
  on_new_thread([] {
    void* block = nullptr;
    check_rows({
        {"device", 107002, [&] { return aclrtMalloc(&block, 1, kHuge); }},
        {"host", 107002, [&] { return aclrtMallocHost(&block, 1); }},
        {"size comes first", 100000, [&] { return aclrtMalloc(&block, 0, kHuge); }},
    });
    EXPECT_EQ(block, nullptr);
  });
}

TEST_F(DeviceTest, EveryVariantAllocates) {
  const aclrtMallocConfig empty{nullptr, 0};
  aclrtMallocConfig config = empty;
  const struct {
    const char* name;
    std::function<aclError(void**, size_t)> allocate;
  } variants[] = {
      {"plain", [](void** p, size_t n) { return aclrtMalloc(p, n, kHuge); }},
      {"policy 99",
       [](void** p, size_t n) { return aclrtMalloc(p, n, enumerator<aclrtMemMallocPolicy>(99)); }},
      {"align32", [](void** p, size_t n) { return aclrtMallocAlign32(p, n, kHuge); }},
      {"cached", [](void** p, size_t n) { return aclrtMallocCached(p, n, kHuge); }},
      {"cfg", [&](void** p, size_t n) { return aclrtMallocWithCfg(p, n, kHuge, &config); }},
  };
  for (const auto& variant : variants) {
    for (const size_t size : {size_t{1}, size_t{33}, 2 * kMega - 1, 2 * kMega, 3 * kMega + 7}) {
      SCOPED_TRACE(variant.name);
      void* block = nullptr;
      ASSERT_EQ(variant.allocate(&block, size), 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 512, 0u);
      std::memset(block, 0xAB, size);
      EXPECT_EQ(aclrtFree(block), 0);
    }
  }
}

TEST_F(DeviceTest, HostMemoryIsPageAligned) {
  void* plain = nullptr;
  void* configured = nullptr;
  ASSERT_EQ(aclrtMallocHost(&plain, 5), 0);
  ASSERT_EQ(aclrtMallocHostWithCfg(&configured, 3 * kMega, nullptr), 0);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(plain) % page, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(configured) % page, 0u);
  std::memset(configured, 1, 3 * kMega);
  EXPECT_EQ(aclrtFreeHost(plain), 0);
  EXPECT_EQ(aclrtFreeHostWithDevSync(configured), 0);
}

TEST_F(DeviceTest, OnlyTheStartOfALivingBlockIsFreed) {
  auto* block = static_cast<char*>(device_block(100));
  void* host = nullptr;
  ASSERT_EQ(aclrtMallocHost(&host, 100), 0);
  int local = 0;
  check_rows({
      {"inside", 107000, [&] { return aclrtFree(block + 1); }},
      {"end", 107000, [&] { return aclrtFree(block + 100); }},
      {"foreign", 107000, [&] { return aclrtFree(&local); }},
      {"host as device", 107000, [&] { return aclrtFree(host); }},
      {"device as host", 107000, [&] { return aclrtFreeHost(block); }},
      {"first", 0, [&] { return aclrtFree(block); }},
      {"again", 107000, [&] { return aclrtFree(block); }},
      {"again with sync", 107000, [&] { return aclrtFreeWithDevSync(block); }},
      {"host", 0, [&] { return aclrtFreeHost(host); }},
      {"host again", 107000, [&] { return aclrtFreeHost(host); }},
  });
}

TEST_F(DeviceTest, TheLimitIsExactAndAFailureLeavesEverythingUsable) {
  void* half = device_block(32 * kMega);
  EXPECT_EQ(free_memory(), 32 * kMega);
  void* more = nullptr;
  EXPECT_EQ(aclrtMalloc(&more, 32 * kMega + 1, kHuge), 207001);
  EXPECT_EQ(more, nullptr);
  void* rest = device_block(32 * kMega);
  EXPECT_EQ(free_memory(), 0u);
  EXPECT_EQ(aclrtMalloc(&more, 1, kHuge), 207001);
  EXPECT_EQ(aclrtFree(half), 0);
  EXPECT_EQ(free_memory(), 32 * kMega);
  std::memset(rest, 1, 32 * kMega);
  EXPECT_EQ(aclrtFree(rest), 0);
  aclrtMemUsageInfo use{};
  size_t count = 0;
  EXPECT_EQ(aclrtGetMemUsageInfo(0, &use, 1, &count), 0);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(use.curMemSize, 0u);
  EXPECT_EQ(use.memPeakSize, 64 * kMega);
}

TEST_F(DeviceTest, EachDeviceHasItsOwnLimit) {
  void* here = device_block(64 * kMega);
  ASSERT_EQ(aclrtSetDevice(1), 0);
  void* there = device_block(64 * kMega);
  EXPECT_EQ(aclrtFree(here), 0);
  EXPECT_EQ(free_memory(), 0u);
  EXPECT_EQ(aclrtFree(there), 0);
  EXPECT_EQ(aclrtResetDevice(1), 0);
}

TEST_F(DeviceTest, QueriesAboutMemory) {
  auto* block = static_cast<char*>(device_block(100));
  void* base = nullptr;
  size_t size = 0;
  aclrtPtrAttributes attributes{};
  aclrtMemUsageInfo use{};
  size_t count = 0;
  int local = 0;
  check_rows({
      {"info free null", 100000, [&] { return aclrtGetMemInfo(ACL_DDR_MEM, nullptr, &size); }},
      {"info total null", 100000, [&] { return aclrtGetMemInfo(ACL_DDR_MEM, &size, nullptr); }},
      {"use null", 100000, [&] { return aclrtGetMemUsageInfo(0, nullptr, 1, &count); }},
      {"use count null", 100000, [&] { return aclrtGetMemUsageInfo(0, &use, 1, nullptr); }},
      {"use bad device", 107001, [&] { return aclrtGetMemUsageInfo(7, &use, 1, &count); }},
      {"range null", 100000, [&] { return aclrtMemGetAddressRange(nullptr, &base, &size); }},
      {"range foreign", 107000, [&] { return aclrtMemGetAddressRange(&local, &base, &size); }},
      {"range, no outputs", 0, [&] { return aclrtMemGetAddressRange(block, nullptr, nullptr); }},
      {"range, inside", 0, [&] { return aclrtMemGetAddressRange(block + 99, &base, &size); }},
      {"attributes null", 100000, [&] { return aclrtPointerGetAttributes(nullptr, &attributes); }},
      {"attributes out null", 100000, [&] { return aclrtPointerGetAttributes(block, nullptr); }},
  });
  EXPECT_EQ(base, block);
  EXPECT_EQ(size, 100u);
  for (int pool = ACL_DDR_MEM; pool <= ACL_MEM_P2P_HUGE1G; ++pool) {
    size_t free = 0;
    size_t total = 0;
    EXPECT_EQ(aclrtGetMemInfo(enumerator<aclrtMemAttr>(pool), &free, &total), 0) << pool;
    EXPECT_EQ(free + 100, total) << pool;
  }
  EXPECT_EQ(aclrtFree(block), 0);
}

TEST_F(DeviceTest, PointerAttributesTellTheOwner) {
  ASSERT_EQ(aclrtSetDevice(1), 0);
  auto* block = static_cast<char*>(device_block(100));
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 100), 0);
  int local = 0;
  const struct {
    const void* address;
    aclrtMemLocationType type;
    uint32_t id;
  } rows[] = {{block, ACL_MEM_LOCATION_TYPE_DEVICE, 1},
              {block + 99, ACL_MEM_LOCATION_TYPE_DEVICE, 1},
              {pinned, ACL_MEM_LOCATION_TYPE_HOST, 0},
              {&local, ACL_MEM_LOCATION_TYPE_UNREGISTERED, 0}};
  for (const auto& row : rows) {
    aclrtPtrAttributes attributes{};
    EXPECT_EQ(aclrtPointerGetAttributes(row.address, &attributes), 0);
    EXPECT_EQ(attributes.location.type, row.type);
    EXPECT_EQ(attributes.location.id, row.id);
  }
  EXPECT_EQ(aclrtFree(block), 0);
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
  EXPECT_EQ(aclrtResetDevice(1), 0);
}

TEST_F(DeviceTest, RegisteredHostMemory) {
  const auto memory = std::make_unique<char[]>(4096);
  char* range = memory.get();
  void* block = device_block(64);
  void* device = nullptr;
  constexpr auto kMapped = ACL_HOST_REGISTER_MAPPED;
  const auto no_type = enumerator<aclrtHostRegisterType>(3);
  check_rows({
      {"null", 100000, [&] { return aclrtHostRegister(nullptr, 64, kMapped, &device); }},
      {"size 0", 100000, [&] { return aclrtHostRegister(range, 0, kMapped, &device); }},
      {"out null", 100000, [&] { return aclrtHostRegister(range, 64, kMapped, nullptr); }},
      {"type", 100000, [&] { return aclrtHostRegister(range, 64, no_type, &device); }},
      {"too large", 107000, [&] { return aclrtHostRegisterV2(range, UINT64_MAX, 2); }},
      {"flag", 107000, [&] { return aclrtHostRegisterV2(range, 64, 1); }},
      {"not registered", 107000, [&] { return aclrtHostGetDevicePointer(range, &device, 0); }},
      {"device memory", 107000, [&] { return aclrtHostGetDevicePointer(block, &device, 0); }},
      {"unregister null", 100000, [] { return aclrtHostUnregister(nullptr); }},
      {"unregister unknown", 107000, [&] { return aclrtHostUnregister(range); }},
      {"register", 0, [&] { return aclrtHostRegister(range + 64, 64, kMapped, &device); }},
      {"overlap, same", 107000, [&] { return aclrtHostRegisterV2(range + 64, 64, 2); }},
      {"overlap, tail", 107000, [&] { return aclrtHostRegisterV2(range + 127, 64, 2); }},
      {"overlap, head", 107000, [&] { return aclrtHostRegisterV2(range + 32, 33, 2); }},
      {"overlap, around", 107000, [&] { return aclrtHostRegisterV2(range, 4096, 2); }},
      {"in front", 0, [&] { return aclrtHostRegisterV2(range, 64, 2); }},
      {"behind", 0, [&] { return aclrtHostRegisterV2(range + 128, 64, 2); }},
      {"pointer null", 100000, [&] { return aclrtHostGetDevicePointer(nullptr, &device, 0); }},
      {"pointer out null", 100000, [&] { return aclrtHostGetDevicePointer(range, nullptr, 0); }},
      {"pointer", 0, [&] { return aclrtHostGetDevicePointer(range + 100, &device, 0); }},
      {"unregister inside", 107000, [&] { return aclrtHostUnregister(range + 65); }},
      {"unregister", 0, [&] { return aclrtHostUnregister(range + 64); }},
      {"unregister again", 107000, [&] { return aclrtHostUnregister(range + 64); }},
      {"unregister front", 0, [&] { return aclrtHostUnregister(range); }},
      {"unregister behind", 0, [&] { return aclrtHostUnregister(range + 128); }},
  });
  EXPECT_EQ(device, range + 100);
  EXPECT_EQ(aclrtFree(block), 0);
}

// Ranges that stayed registered although their memory went back to the system, and was allocated
// again, are forgotten; their neighbours are not. Large blocks have mappings of their own, so the
// system hands the same addresses out again.
TEST_F(DeviceTest, AnAllocationOustsStaleRegisteredRanges) {
  constexpr size_t kSize = 4 * kMega;
  void* first = nullptr;
  ASSERT_EQ(aclrtMallocHost(&first, kSize), 0);
  auto* base = static_cast<char*>(first);
  ASSERT_EQ(aclrtFreeHost(first), 0);
  const struct {
    char* start;
    size_t size;
    bool stale;
  } ranges[] = {
      {base - 64, 64, false},   {base - 128, 64, false},       {base, 64, true},
      {base + 64, kMega, true}, {base + 2 * kMega, 1, true},   {base + kSize - 64, 64, true},
      {base + kSize, 64, true}, {base + kSize + 64, 64, false}};
  for (const auto& range : ranges) {
    ASSERT_EQ(aclrtHostRegisterV2(range.start, range.size, 2), 0) << range.start - base;
  }
  void* again = nullptr;
  ASSERT_EQ(aclrtMallocHost(&again, kSize), 0);
  ASSERT_EQ(again, first);
  for (const auto& range : ranges) {
    void* found = nullptr;
    size_t size = 0;
    if (range.stale && range.start < base + kSize) {
      EXPECT_EQ(aclrtMemGetAddressRange(range.start, &found, &size), 0) << range.start - base;
      EXPECT_EQ(found, again) << range.start - base;
      EXPECT_EQ(size, kSize) << range.start - base;
    }
    EXPECT_EQ(aclrtHostUnregister(range.start), range.stale ? 107000 : 0) << range.start - base;
  }
  EXPECT_EQ(aclrtFreeHost(again), 0);
}

}  // namespace
}  // namespace npuless::runtime
