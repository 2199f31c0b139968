// What the environment changes, and how processes end. Each row runs the probe in a process of its
// own.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "support.h"

namespace npuless::runtime {
namespace {

struct Outcome {
  int status = -1;
  std::string output;
};

// `settings` are words like NAME=value.
Outcome probe(const std::string& settings, const std::string& action) {
  const std::string command = "env -u NPULESS_DEVICE_COUNT -u NPULESS_DEVICE_MEMORY " + settings +
                              " '" PROBE "' " + action + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char chunk[4096];
  for (size_t size; (size = fread(chunk, 1, sizeof(chunk), pipe)) > 0;) {
    outcome.output.append(chunk, size);
  }
  outcome.status = pclose(pipe);
  return outcome;
}

void expect_output(const std::string& settings, const std::string& action,
                   const std::string& expected) {
  const Outcome outcome = probe(settings, action);
  EXPECT_EQ(outcome.output, expected) << settings << " " << action;
  EXPECT_EQ(outcome.status, 0) << settings << " " << action;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

TEST(Environment, DeviceCountAndVisibleDevices) {
  const struct {
    const char* settings;
    const char* expected;
  } rows[] = {
      {"", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=3", "3: 0 1 2 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=0", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=-2", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=two", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=2x", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=99999", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=", "1: 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=4 ASCEND_RT_VISIBLE_DEVICES=2,0", "2: 2 0 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=4 ASCEND_RT_VISIBLE_DEVICES=3", "1: 3 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=4 ASCEND_RT_VISIBLE_DEVICES=1,4,2", "1: 1 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=4 ASCEND_RT_VISIBLE_DEVICES=1,1,2", "1: 1 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=4 ASCEND_RT_VISIBLE_DEVICES=1,,2", "1: 1 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=2 ASCEND_RT_VISIBLE_DEVICES=", "2: 0 1 beyond 107001"},
      {"NPULESS_DEVICE_COUNT=2 ASCEND_RT_VISIBLE_DEVICES=x", "0: beyond 107001"},
  };
  for (const auto& row : rows) expect_output(row.settings, "devices", row.expected);
}

TEST(Environment, DeviceMemory) {
  const std::string physical = std::to_string(static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
                                              static_cast<size_t>(sysconf(_SC_PAGESIZE)));
  const struct {
    const char* settings;
    std::string expected;
  } rows[] = {{"", physical},
              {"NPULESS_DEVICE_MEMORY=1000", "1000"},
              {"NPULESS_DEVICE_MEMORY=3k", "3072"},
              {"NPULESS_DEVICE_MEMORY=5M", "5242880"},
              {"NPULESS_DEVICE_MEMORY=2G", "2147483648"},
              {"NPULESS_DEVICE_MEMORY=1T", "1099511627776"},
              {"NPULESS_DEVICE_MEMORY=0", physical},
              {"NPULESS_DEVICE_MEMORY=G", physical},
              {"NPULESS_DEVICE_MEMORY=1.5G", physical},
              {"NPULESS_DEVICE_MEMORY=-1", physical},
              {"NPULESS_DEVICE_MEMORY=99999999999G", physical}};
  for (const auto& row : rows) expect_output(row.settings, "memory", row.expected);
}

TEST(Environment, SocName) {
  expect_output("", "soc", "Ascend910B1");
  expect_output("NPULESS_SOC_NAME=", "soc", "Ascend910B1");
  expect_output("NPULESS_SOC_NAME=Ascend310P3", "soc", "Ascend310P3");
}

// Queueing code, whether it left the task's sentence, code of the next synchronisation.
TEST(Environment, LaunchBlocking) {
  expect_output("", "failure", "0 0 507015");
  expect_output("ASCEND_LAUNCH_BLOCKING=0", "failure", "0 0 507015");
  expect_output("ASCEND_LAUNCH_BLOCKING=1", "failure", "507015 1 0");
  expect_output("ASCEND_LAUNCH_BLOCKING=1", "record", "0 1 0");
}

TEST(Environment, NothingIsPrintedUnlessAsked) {
  expect_output("ASCEND_GLOBAL_LOG_LEVEL=0", "past", "code 0\n");
  expect_output("ASCEND_SLOG_PRINT_TO_STDOUT=1", "past", "code 0\n");
  expect_output("ASCEND_SLOG_PRINT_TO_STDOUT=0 ASCEND_GLOBAL_LOG_LEVEL=0", "log", "");
}

TEST(Environment, ReadingPastABlockLogsOneWarning) {
  const Outcome outcome = probe("ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=2", "past");
  EXPECT_EQ(count(outcome.output, "[WARNING]"), 1u) << outcome.output;
  EXPECT_EQ(count(outcome.output, "64 bytes past the end"), 1u) << outcome.output;
  EXPECT_EQ(count(outcome.output, "\n"), 2u) << outcome.output;
}

// Lines of the four levels that the probe logs, plus the error of a refused call.
TEST(Environment, LogLevels) {
  const size_t lines_by_level[] = {5, 4, 3, 2, 0};
  for (int level = 0; level <= 4; ++level) {
    const Outcome outcome = probe(
        "ASCEND_SLOG_PRINT_TO_STDOUT=1 ASCEND_GLOBAL_LOG_LEVEL=" + std::to_string(level), "log");
    EXPECT_EQ(count(outcome.output, "\n"), lines_by_level[level]) << outcome.output;
  }
  for (const char* level : {"", "ASCEND_GLOBAL_LOG_LEVEL=9", "ASCEND_GLOBAL_LOG_LEVEL=x"}) {
    const Outcome outcome = probe(std::string("ASCEND_SLOG_PRINT_TO_STDOUT=1 ") + level, "log");
    EXPECT_EQ(count(outcome.output, "an error line 5"), 1u) << outcome.output;
    EXPECT_EQ(count(outcome.output, "aclrtFree"), 1u) << outcome.output;
    EXPECT_EQ(count(outcome.output, "\n"), 2u) << outcome.output;
  }
}

TEST(Environment, FinalizeWithoutInit) {
  expect_output("", "finalize", "0 100037");
  expect_output("", "drop", "100037 0");
}

TEST(Environment, Versions) {
  const std::filesystem::path root = temporary_path("root");
  const std::filesystem::path info = root / "share" / "info" / "runtime";
  std::filesystem::create_directories(info);
  const std::string home = "ASCEND_HOME_PATH='" + root.string() + "'";
  const struct {
    const char* text;
    const char* expected;
  } rows[] = {{"Version=8.5.0.1\n", "0 0 0 8.5.0.1 80500000 8.5.0.1|8|5|0|1"},
              {"# x\nfoo=1\nVersion=0.1.2 \r\nVersion=9\n", "0 0 0 0.1.2 102000 0.1.2|0|1|2|0"},
              {"Version=7\n", "0 0 0 7 70000000 7|7|0|0|0"},
              {"Version=a.b\n", "0 0 0 a.b 0 a.b|a|b|0|0"},
              {"Version=999999999999.5.1\n",
               "0 0 0 999999999999.5.1 2130501000 999999999999.5.1|999999999999|5|1|0"},
              {"version=1\n", "100003 100003 100003"},
              {"Version=\n", "100003 100003 100003"},
              {"", "100003 100003 100003"}};
  for (const auto& row : rows) {
    std::ofstream(info / "version.info") << row.text;
    expect_output(home, "versions", row.expected);
  }
  std::filesystem::remove_all(root);
  expect_output(home, "versions", "100003 100003 100003");
  expect_output("-u ASCEND_HOME_PATH", "versions", "100003 100003 100003");
  expect_output(home, "no-versions", "100000 100000 100000 100000 100003 100000 100000 100000");
}

// Sanitizers need far more address space than the probe leaves.
#if !defined(NPULESS_SANITIZED)
TEST(Environment, NoAddressSpaceIsLeft) {
  expect_output("", "address-space", "0 207001 207008 0");
}
#endif

// The process ends at once, without a crash and without waiting for queued work.
TEST(ProcessExit, LiveStreamsDoNotHoldTheProcess) {
  const auto start = std::chrono::steady_clock::now();
  expect_output("", "exit-queued", "exits");
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
}

TEST(ProcessExit, NothingNeedsToBeDestroyed) {
  expect_output("", "exit-dirty", "exits");
}

TEST(ProcessExit, StaticDestructorsMayUseTheLibrary) {
  expect_output("", "exit-late", "0 0 0 0");
}

// A lock of AddressSanitizer's allocator that another thread holds stays locked in the child.
#if !defined(__SANITIZE_ADDRESS__)
// Whether it is busy or not, until the child ends its use of the library.
TEST(Fork, AChildIsRefusedItsParentsStreams) {
  const std::string stream = "107017 107017 107017 107017 107017 107017 107017 | ";
  const std::string event = "107017 107017 | ";
  expect_output("", "fork", stream + stream + event + event + "107017 | 0 107017 0 0 0 | ");
}
#endif

// ThreadSanitizer does not support threads of a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(Fork, AChildHasItsOwnStreams) {
  const std::string life = "0 0 0 0 0 0 | ";
  expect_output("", "fork-new", life + "0 0 0 | " + life + "0 0 0 | ");
}
#endif

}  // namespace
}  // namespace npuless::runtime
