// Initialisation, references, error reports. Contract §2.1.
#include <fstream>
#include <string>

#include "support.h"

namespace npuless::runtime {
namespace {

// A configuration file for one test.
class Config {
 public:
  explicit Config(const std::string& text)
      : path_(temporary_path("config_" + std::to_string(number++))) {
    std::ofstream(path_) << text;
  }
  ~Config() { std::remove(path_.c_str()); }
  Config(const Config&) = delete;
  Config& operator=(const Config&) = delete;

  const char* path() const { return path_.c_str(); }

 private:
  static inline int number = 0;
  std::string path_;
};

uint64_t references_after_drop(aclError expected) {
  uint64_t remaining = 99;
  EXPECT_EQ(aclFinalizeReference(&remaining), expected);
  return remaining;
}

TEST(Lifecycle, RepeatedInitCountsAndOneFinalizeEndsAll) {
  const Config empty(" { } ");
  const Config other("{\"dump\": {\"dump_list\": []}}");
  check_rows({
      {"first", 0, [] { return aclInit(nullptr); }},
      {"again", 100002, [] { return aclInit(nullptr); }},
      {"same content", 100002, [&] { return aclInit(empty.path()); }},
      {"other content", 100000, [&] { return aclInit(other.path()); }},
      {"finalize", 0, [] { return aclFinalize(); }},
      {"finalize again", 100037, [] { return aclFinalize(); }},
      {"drop a reference", 100037, [] { return aclFinalizeReference(nullptr); }},
      {"init after finalize", 0, [&] { return aclInit(other.path()); }},
      {"same file", 100002, [&] { return aclInit(other.path()); }},
      {"no file now", 100000, [] { return aclInit(nullptr); }},
      {"finalize", 0, [] { return aclFinalize(); }},
  });
}

TEST(Lifecycle, ReferencesDropOneByOne) {
  ASSERT_EQ(aclInit(nullptr), 0);
  ASSERT_EQ(aclInit(nullptr), 100002);
  ASSERT_EQ(aclInit(nullptr), 100002);
  EXPECT_EQ(references_after_drop(0), 2u);
  EXPECT_EQ(aclFinalizeReference(nullptr), 0);
  EXPECT_EQ(references_after_drop(0), 0u);
  EXPECT_EQ(references_after_drop(100037), 0u);
  EXPECT_EQ(aclFinalize(), 100037);
}

TEST(Lifecycle, BadConfigurationsLeaveTheLibraryUninitialised) {
  const struct {
    const char* text;
    aclError expected;
  } rows[] = {{"", 100006},
              {"{", 100006},
              {"[]", 100006},
              {"1", 100006},
              {"{} {}", 100006},
              {"{'a': 1}", 100006},
              {"{\"defaultDevice\": {\"default_device\": \"2\"}}", 107001},
              {"{\"defaultDevice\": {\"default_device\": -1}}", 107001},
              {"{\"defaultDevice\": {\"default_device\": 4294967296}}", 107001},
              {"{\"defaultDevice\": {\"default_device\": \"0x\"}}", 100000},
              {"{\"defaultDevice\": {\"default_device\": \"\"}}", 100000},
              {"{\"defaultDevice\": {\"default_device\": 0.5}}", 100000},
              {"{\"defaultDevice\": {\"default_device\": null}}", 100000}};
  for (const auto& row : rows) {
    const Config config(row.text);
    check_rows({{row.text, row.expected, [&] { return aclInit(config.path()); }}});
  }
  check_rows({
      {"missing file", 100003, [] { return aclInit("no/such/file.json"); }},
      {"still not initialised", 0, [] { return aclInit(nullptr); }},
      {"finalize", 0, [] { return aclFinalize(); }},
  });
}

TEST(Lifecycle, DefaultDeviceOfTheConfiguration) {
  for (const char* text : {"{\"defaultDevice\": {\"default_device\": \"1\"}}",
                           "{\"defaultDevice\": {\"default_device\": 1}}"}) {
    const Config config(text);
    ASSERT_EQ(aclInit(config.path()), 0);
    on_new_thread([] {
      int32_t device = -1;
      EXPECT_EQ(aclrtGetDevice(&device), 0);
      EXPECT_EQ(device, 1);
      EXPECT_EQ(aclrtSynchronizeStream(nullptr), 0);
      EXPECT_EQ(aclrtSetDevice(0), 0);
      EXPECT_EQ(aclrtGetDevice(&device), 0);
      EXPECT_EQ(device, 0);
    });
    EXPECT_EQ(aclFinalize(), 0);
    on_new_thread([] {
      int32_t device = -1;
      EXPECT_EQ(aclrtGetDevice(&device), 107002);
    });
  }
}

TEST(Lifecycle, ConfigurationsWithoutADefaultDevice) {
  for (const char* text : {"{}", "{\"defaultDevice\": {}}", "{\"defaultDevice\": 3}",
                           "{\"profiler\": {\"switch\": \"off\"}}"}) {
    const Config config(text);
    EXPECT_EQ(aclInit(config.path()), 0) << text;
    on_new_thread([] {
      int32_t device = -1;
      EXPECT_EQ(aclrtGetDevice(&device), 107002);
    });
    EXPECT_EQ(aclFinalize(), 0);
  }
}

TEST(Lifecycle, FinalizeDestroysWhatIsLeft) {
  ASSERT_EQ(aclInit(nullptr), 0);
  ASSERT_EQ(aclrtSetDevice(0), 0);
  aclrtContext context = nullptr;
  ASSERT_EQ(aclrtCreateContext(&context, 1), 0);
  aclrtStream stream = nullptr;
  ASSERT_EQ(aclrtCreateStream(&stream), 0);
  void* block = nullptr;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  std::atomic<int> ran{0};
  const Body slow = [&] {
    std::this_thread::sleep_for(milliseconds(10));
    ++ran;
    return Status();
  };
  ASSERT_TRUE(queue(stream, slow).ok());
  check_rows({
      {"finalize", 0, [] { return aclFinalize(); }},
      {"stream", 107017, [&] { return aclrtDestroyStream(stream); }},
      {"context", 107000, [&] { return aclrtDestroyContext(context); }},
      {"memory", 107000, [&] { return aclrtFree(block); }},
      {"device", 507007, [] { return aclrtResetDevice(0); }},
  });
  EXPECT_EQ(ran, 1);
}

TEST(Lifecycle, NothingNeedsInit) {
  ASSERT_EQ(aclrtSetDevice(0), 0);
  void* block = nullptr;
  aclrtStream stream = nullptr;
  EXPECT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), 0);
  EXPECT_EQ(aclrtCreateStream(&stream), 0);
  EXPECT_EQ(aclrtDestroyStream(stream), 0);
  EXPECT_EQ(aclrtFree(block), 0);
  EXPECT_EQ(aclrtResetDevice(0), 0);
}

TEST(ErrorReport, SentenceIsReadOnceAndBelongsToItsThread) {
  aclGetRecentErrMsg();
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
  EXPECT_EQ(aclrtFree(nullptr), 100000);
  on_new_thread([] { EXPECT_EQ(aclGetRecentErrMsg(), nullptr); });
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("aclrtFree"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("EZ1001"), std::string::npos) << text;
  EXPECT_EQ(aclGetRecentErrMsg(), nullptr);
}

TEST(ErrorReport, LastErrorIsPeekedAndTaken) {
  constexpr auto kThread = ACL_RT_THREAD_LEVEL;
  aclrtGetLastError(kThread);
  EXPECT_EQ(aclrtFree(nullptr), 100000);
  EXPECT_EQ(aclrtSetDevice(77), 107001);
  EXPECT_EQ(aclrtMemset(nullptr, 0, 0, 0), 0);
  EXPECT_EQ(aclrtPeekAtLastError(kThread), 107001);
  on_new_thread([] { EXPECT_EQ(aclrtPeekAtLastError(kThread), 0); });
  EXPECT_EQ(aclrtGetLastError(kThread), 107001);
  EXPECT_EQ(aclrtGetLastError(kThread), 0);
  EXPECT_EQ(aclrtGetLastError(enumerator<aclrtLastErrLevel>(1)), 100000);
  EXPECT_EQ(aclrtPeekAtLastError(enumerator<aclrtLastErrLevel>(-1)), 100000);
  EXPECT_EQ(aclrtPeekAtLastError(kThread), 0);
}

TEST(Library, AnswersAboutItself) {
  int32_t major = 0;
  int32_t minor = 0;
  int32_t patch = -1;
  aclrtRunMode mode = ACL_DEVICE;
  check_rows({
      {"version null", 100000, [&] { return aclrtGetVersion(nullptr, &minor, &patch); }},
      {"version null 2", 100000, [&] { return aclrtGetVersion(&major, nullptr, &patch); }},
      {"version null 3", 100000, [&] { return aclrtGetVersion(&major, &minor, nullptr); }},
      {"version", 0, [&] { return aclrtGetVersion(&major, &minor, &patch); }},
      {"mode null", 100000, [] { return aclrtGetRunMode(nullptr); }},
      {"mode", 0, [&] { return aclrtGetRunMode(&mode); }},
  });
  EXPECT_EQ(major, 1);
  EXPECT_EQ(minor, 17);
  EXPECT_EQ(patch, 0);
  EXPECT_EQ(mode, ACL_HOST);
}

}  // namespace
}  // namespace npuless::runtime
