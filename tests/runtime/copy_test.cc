// Copies and fills: checks and their order (contract §2.3), extents of device blocks.
#include <cstring>
#include <numeric>
#include <string>

#include "support.h"

namespace npuless::runtime {
namespace {

using Bytes = std::vector<unsigned char>;
constexpr auto kAny = ACL_MEMCPY_DEFAULT;

Bytes counting(size_t size) {
  Bytes bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(1));
  return bytes;
}

// A device block that starts as counting(size).
class DeviceBytes {
 public:
  explicit DeviceBytes(size_t size) : size_(size) {
    EXPECT_EQ(aclrtMalloc(&address_, size, ACL_MEM_MALLOC_HUGE_FIRST), 0);
    const Bytes start = counting(size);
    EXPECT_EQ(aclrtMemcpy(address_, size, start.data(), size, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  }
  ~DeviceBytes() { EXPECT_EQ(aclrtFree(address_), 0); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  unsigned char* at(size_t offset) const { return static_cast<unsigned char*>(address_) + offset; }
  Bytes read() const { return Bytes(at(0), at(size_)); }

 private:
  void* address_ = nullptr;
  size_t size_;
};

TEST_F(StreamTest, CopyChecksInOrder) {
  char a[8] = {};
  char b[8] = {};
  const auto low = enumerator<aclrtMemcpyKind>(-1);
  const auto high = ACL_MEMCPY_INNER_DEVICE_TO_DEVICE;
  const struct {
    const char* name;
    aclError expected;
    void* dst;
    size_t dst_size;
    const void* src;
    size_t count;
    aclrtMemcpyKind kind;
  } rows[] = {{"count 0 before all", 0, nullptr, 0, nullptr, 0, low},
              {"dst null", 100000, nullptr, 8, b, 4, kAny},
              {"src null", 100000, a, 8, nullptr, 4, kAny},
              {"null before destMax", 100000, nullptr, 1, b, 4, kAny},
              {"kind below", 100000, a, 8, b, 4, low},
              {"kind above", 100000, a, 8, b, 4, high},
              {"kind before destMax", 100000, a, 1, b, 4, high},
              {"count beyond destMax", 107000, a, 3, b, 4, kAny},
              {"destMax 0", 107000, a, 0, b, 4, kAny},
              {"destMax before dst == src", 107000, a, 3, a, 4, kAny},
              {"dst == src", 0, a, 8, a, 4, kAny},
              {"plain", 0, a, 8, b, 8, kAny}};
  for (const auto& row : rows) {
    check_rows({
        {row.name, row.expected,
         [&row] { return aclrtMemcpy(row.dst, row.dst_size, row.src, row.count, row.kind); }},
        {row.name, row.expected,
         [&] {
           return aclrtMemcpyAsync(row.dst, row.dst_size, row.src, row.count, row.kind, stream);
         }},
        {row.name, row.expected,
         [&] {
           return aclrtMemcpyAsyncWithCondition(row.dst, row.dst_size, row.src, row.count, row.kind,
                                                stream);
         }},
    });
  }
}

TEST_F(DeviceTest, EveryPlainKindCopiesWhateverThePointersAre) {
  const DeviceBytes device(8);
  for (int kind = ACL_MEMCPY_HOST_TO_HOST; kind <= ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE; ++kind) {
    Bytes host(8);
    EXPECT_EQ(aclrtMemcpy(host.data(), 8, device.at(0), 8, enumerator<aclrtMemcpyKind>(kind)), 0);
    EXPECT_EQ(host, counting(8)) << kind;
  }
}

// Offsets in small and in mapped blocks: what lies inside is copied, the rest reads as zero.
TEST_F(StreamTest, ReadingPastABlockGivesZeros) {
  for (const size_t size : {size_t{100}, size_t{2} << 20, (size_t{2} << 20) + 100}) {
    const DeviceBytes device(size);
    const Bytes all = counting(size);
    for (const size_t offset : {size_t{0}, size_t{1}, size - 1, size}) {
      for (const size_t extra : {size_t{1}, size_t{4096}, size}) {
        SCOPED_TRACE(std::to_string(size) + " " + std::to_string(offset));
        const size_t count = size - offset + extra;
        Bytes expected(all.begin() + static_cast<std::ptrdiff_t>(offset), all.end());
        expected.resize(count, 0);
        Bytes host(count, 0xEE);
        EXPECT_EQ(aclrtMemcpy(host.data(), count, device.at(offset), count, kAny), 0);
        EXPECT_EQ(host, expected);
        host.assign(count, 0xEE);
        EXPECT_EQ(aclrtMemcpyAsync(host.data(), count, device.at(offset), count, kAny, stream), 0);
        EXPECT_EQ(host, expected);
      }
    }
  }
}

TEST_F(StreamTest, WritingPastABlockIsRefusedAndWritesNothing) {
  const Bytes source(200, 0x77);
  const DeviceBytes device(100);
  const DeviceBytes other(200);
  check_rows({
      {"from the start", 107000,
       [&] { return aclrtMemcpy(device.at(0), 101, source.data(), 101, kAny); }},
      {"from inside", 107000,
       [&] { return aclrtMemcpy(device.at(60), 41, source.data(), 41, kAny); }},
      {"at the end", 107000,
       [&] { return aclrtMemcpy(device.at(100), 1, source.data(), 1, kAny); }},
      {"between devices", 107000,
       [&] { return aclrtMemcpy(device.at(0), 101, other.at(0), 101, kAny); }},
      {"async", 107000,
       [&] { return aclrtMemcpyAsync(device.at(1), 100, other.at(0), 100, kAny, stream); }},
      {"memset", 107000, [&] { return aclrtMemset(device.at(0), 101, 1, 101); }},
      {"memset async", 107000, [&] { return aclrtMemsetAsync(device.at(99), 2, 1, 2, stream); }},
      {"words", 107000, [&] { return aclrtMemsetD32(device.at(0), 104, 1, 26); }},
      {"words async", 107000, [&] { return aclrtMemsetD32Async(device.at(96), 8, 1, 2, stream); }},
      {"2d", 107000,
       [&] { return aclrtMemcpy2d(device.at(0), 60, source.data(), 60, 41, 2, kAny); }},
      {"2d async", 107000,
       [&] { return aclrtMemcpy2dAsync(device.at(0), 60, other.at(0), 60, 41, 2, kAny, stream); }},
  });
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(device.read(), counting(100));
}

TEST_F(DeviceTest, WritingUpToTheEndIsFine) {
  const DeviceBytes device(100);
  const Bytes source(100, 0x77);
  Bytes expected = counting(100);
  std::fill(expected.begin() + 60, expected.end(), 0x77);
  EXPECT_EQ(aclrtMemcpy(device.at(60), 40, source.data(), 40, ACL_MEMCPY_HOST_TO_DEVICE), 0);
  EXPECT_EQ(device.read(), expected);
}

TEST_F(DeviceTest, OverlappingCopyMovesTheBytes) {
  const DeviceBytes device(100);
  EXPECT_EQ(aclrtMemcpy(device.at(10), 90, device.at(0), 90, ACL_MEMCPY_DEVICE_TO_DEVICE), 0);
  Bytes expected = counting(100);
  const Bytes start = counting(90);
  std::copy(start.begin(), start.end(), expected.begin() + 10);
  EXPECT_EQ(device.read(), expected);
}

TEST_F(StreamTest, FillChecks) {
  const DeviceBytes device(16);
  int local[4] = {};
  void* const block = device.at(0);
  check_rows({
      {"count 0 before all", 0, [] { return aclrtMemset(nullptr, 0, 1, 0); }},
      {"null", 100000, [] { return aclrtMemset(nullptr, 8, 1, 4); }},
      {"beyond maxCount", 107000, [&] { return aclrtMemset(block, 3, 1, 4); }},
      {"async count 0", 0, [&] { return aclrtMemsetAsync(nullptr, 0, 1, 0, stream); }},
      {"async null", 100000, [&] { return aclrtMemsetAsync(nullptr, 8, 1, 4, stream); }},
      {"async beyond", 107000, [&] { return aclrtMemsetAsync(block, 3, 1, 4, stream); }},
      {"words 0", 0, [] { return aclrtMemsetD32(nullptr, 0, 1, 0); }},
      {"words null", 100000, [] { return aclrtMemsetD32(nullptr, 16, 1, 1); }},
      {"words unaligned", 100000, [&] { return aclrtMemsetD32(device.at(2), 8, 1, 1); }},
      {"words beyond", 100000, [&] { return aclrtMemsetD32(block, 15, 1, 4); }},
      {"words overflow", 100000, [&] { return aclrtMemsetD32(block, 16, 1, SIZE_MAX / 2); }},
      {"words foreign", 107000, [&] { return aclrtMemsetD32(local, 16, 1, 4); }},
      {"words async 0", 0, [&] { return aclrtMemsetD32Async(nullptr, 0, 1, 0, stream); }},
      {"words async unaligned", 100000,
       [&] { return aclrtMemsetD32Async(device.at(1), 8, 1, 1, stream); }},
      {"words async foreign", 107000, [&] { return aclrtMemsetD32Async(local, 16, 1, 4, stream); }},
  });
  EXPECT_EQ(device.read(), counting(16));
}

TEST_F(StreamTest, FillsWriteExactlyTheirRange) {
  const DeviceBytes device(32);
  EXPECT_EQ(aclrtMemset(device.at(1), 31, 0x1FF, 3), 0);
  EXPECT_EQ(aclrtMemsetAsync(device.at(5), 27, -2, 2, stream), 0);
  EXPECT_EQ(aclrtMemsetD32(device.at(8), 24, 0x04030201, 2), 0);
  EXPECT_EQ(aclrtMemsetD32Async(device.at(24), 8, 0xA0B0C0D0, 1, stream), 0);
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  Bytes expected = counting(32);
  std::fill_n(expected.begin() + 1, 3, 0xFF);
  std::fill_n(expected.begin() + 5, 2, 0xFE);
  for (size_t i = 0; i < 8; ++i) expected[8 + i] = static_cast<unsigned char>(i % 4 + 1);
  const Bytes word = {0xD0, 0xC0, 0xB0, 0xA0};
  std::copy(word.begin(), word.end(), expected.begin() + 24);
  EXPECT_EQ(device.read(), expected);
}

TEST_F(StreamTest, Copy2dChecks) {
  char a[64] = {};
  char b[64] = {};
  const struct {
    const char* name;
    aclError expected;
    void* dst;
    size_t dst_pitch;
    const void* src;
    size_t src_pitch;
    size_t width;
    size_t height;
    aclrtMemcpyKind kind;
  } rows[] = {{"width 0", 0, nullptr, 0, nullptr, 0, 0, 4, ACL_MEMCPY_HOST_TO_HOST},
              {"height 0", 0, nullptr, 0, nullptr, 0, 4, 0, ACL_MEMCPY_HOST_TO_HOST},
              {"dst null", 100000, nullptr, 8, b, 8, 8, 2, kAny},
              {"src null", 100000, a, 8, nullptr, 8, 8, 2, kAny},
              {"width beyond dpitch", 100000, a, 7, b, 8, 8, 2, kAny},
              {"width beyond spitch", 100000, a, 8, b, 7, 8, 2, kAny},
              {"H2H", 100000, a, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_HOST},
              {"buffered", 100000, a, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE},
              {"no range", 107000, a, SIZE_MAX / 2, b, 8, 8, 8, kAny},
              {"no range, src", 107000, a, 8, b, SIZE_MAX / 2, 8, 8, kAny},
              {"H2D", 0, a, 8, b, 8, 8, 2, ACL_MEMCPY_HOST_TO_DEVICE},
              {"D2H", 0, a, 8, b, 8, 8, 2, ACL_MEMCPY_DEVICE_TO_HOST},
              {"D2D", 0, a, 8, b, 8, 8, 2, ACL_MEMCPY_DEVICE_TO_DEVICE},
              {"default", 0, a, 8, b, 8, 8, 2, kAny}};
  for (const auto& row : rows) {
    check_rows({
        {row.name, row.expected,
         [&] {
           return aclrtMemcpy2d(row.dst, row.dst_pitch, row.src, row.src_pitch, row.width,
                                row.height, row.kind);
         }},
        {row.name, row.expected,
         [&] {
           return aclrtMemcpy2dAsync(row.dst, row.dst_pitch, row.src, row.src_pitch, row.width,
                                     row.height, row.kind, stream);
         }},
    });
  }
}

// Rows of 5 bytes, 8 apart in a block of 20: the third row has 4 bytes, the fourth none.
TEST_F(StreamTest, Copy2dMovesRowsAndZeroFillsWhatIsMissing) {
  const DeviceBytes device(20);
  const Bytes expected = {1,  2,  3,  4,  5, 0xEE, 0xEE, 9, 10, 11, 12, 13, 0xEE, 0xEE,
                          17, 18, 19, 20, 0, 0xEE, 0xEE, 0, 0,  0,  0,  0,  0xEE, 0xEE};
  Bytes host(28, 0xEE);
  EXPECT_EQ(aclrtMemcpy2d(host.data(), 7, device.at(0), 8, 5, 4, ACL_MEMCPY_DEVICE_TO_HOST), 0);
  EXPECT_EQ(host, expected);
  host.assign(28, 0xEE);
  EXPECT_EQ(aclrtMemcpy2dAsync(host.data(), 7, device.at(0), 8, 5, 4, kAny, stream), 0);
  EXPECT_EQ(host, expected);
}

// A queued copy keeps both blocks: freeing them at once neither loses the data nor crashes.
TEST_F(StreamTest, QueuedCopySurvivesTheFree) {
  constexpr size_t kSize = size_t{4} << 20;
  void* device = nullptr;
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMalloc(&device, kSize, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  ASSERT_EQ(aclrtMallocHost(&pinned, kSize), 0);
  std::memset(device, 0x5A, kSize);
  Gate gate;
  gate.hold(stream);
  ASSERT_EQ(aclrtMemcpyAsync(pinned, kSize, device, kSize, kAny, stream), 0);
  ASSERT_EQ(aclrtMemsetAsync(device, kSize, 0, kSize, stream), 0);
  EXPECT_EQ(aclrtFree(device), 0);
  gate.open();
  EXPECT_EQ(aclrtSynchronizeStream(stream), 0);
  EXPECT_EQ(Bytes(static_cast<unsigned char*>(pinned), static_cast<unsigned char*>(pinned) + kSize),
            Bytes(kSize, 0x5A));
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
}

TEST_F(StreamTest, PinnedCopiesAreQueuedAndPageableOnesAreNot) {
  const DeviceBytes device(8);
  void* pinned = nullptr;
  ASSERT_EQ(aclrtMallocHost(&pinned, 8), 0);
  std::memset(pinned, 0, 8);
  Gate gate;
  gate.hold(stream);
  EXPECT_EQ(aclrtMemcpyAsync(pinned, 8, device.at(0), 8, ACL_MEMCPY_DEVICE_TO_HOST, stream), 0);
  EXPECT_EQ(*static_cast<char*>(pinned), 0);
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(30));
    gate.open();
  });
  // Drains the stream first, so the pinned copy is done as well.
  Bytes host(8);
  EXPECT_EQ(aclrtMemcpyAsync(host.data(), 8, device.at(0), 8, kAny, stream), 0);
  EXPECT_EQ(host, counting(8));
  EXPECT_EQ(std::memcmp(pinned, host.data(), 8), 0);
  opener.join();
  EXPECT_EQ(aclrtFreeHost(pinned), 0);
}

}  // namespace
}  // namespace npuless::runtime
