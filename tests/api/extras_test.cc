// npuless/npuless.h: version, ISA level, threads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"
#include "npuless/npuless.h"

namespace {

const std::vector<std::string> kLevels = {"portable", "avx2", "avx512", "avx512_bf16"};

void expect_sentence_with(const std::string& word) {
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find(word), std::string::npos) << text;
}

// Exits with 0 when the level that NPULESS_ISA names before first use is the one in use, with 1
// when none is and the sentence names the request, else with 2.
[[noreturn]] void use_forced_level(const char* name) {
  setenv("NPULESS_ISA", name, 1);
  const char* level = npulessGetIsa();
  if (level != nullptr) std::exit(std::strcmp(level, name) == 0 ? 0 : 2);
  const char* text = aclGetRecentErrMsg();
  std::exit(text != nullptr && std::strstr(text, name) != nullptr ? 1 : 2);
}

// Death tests run first: the level is not chosen yet in the process they fork from.
TEST(ExtrasDeathTest, EnvironmentForcesTheLevel) {
  EXPECT_EXIT(use_forced_level("portable"), testing::ExitedWithCode(0), "");
}

TEST(ExtrasDeathTest, UnknownLevelInTheEnvironmentAnswersNull) {
  EXPECT_EXIT(use_forced_level("quantum"), testing::ExitedWithCode(1), "");
}

TEST(Extras, VersionIsTheProjects) {
  EXPECT_STREQ(npulessGetVersion(), EXPECTED_VERSION);
}

TEST(Extras, LevelIsSetOrRefusedAndNeverBoth) {
  ASSERT_EQ(npulessSetIsa("portable"), ACL_SUCCESS);
  std::string in_use = "portable";
  for (const std::string& level : kLevels) {
    const aclError result = npulessSetIsa(level.c_str());
    if (result == ACL_SUCCESS) {
      in_use = level;
    } else {
      EXPECT_EQ(result, ACLNN_ERR_RUNTIME_ERROR);
      expect_sentence_with(level);
    }
    EXPECT_EQ(npulessGetIsa(), in_use);
  }
}

TEST(Extras, UnknownAndNullLevelsChangeNothing) {
  ASSERT_EQ(npulessSetIsa("portable"), ACL_SUCCESS);
  for (const char* level : {"", "AVX2", "avx2 ", "quantum"}) {
    EXPECT_EQ(npulessSetIsa(level), ACLNN_ERR_RUNTIME_ERROR) << level;
    expect_sentence_with(level);
  }
  EXPECT_EQ(npulessSetIsa(nullptr), ACL_ERROR_INVALID_PARAM);
  expect_sentence_with("npulessSetIsa");
  EXPECT_STREQ(npulessGetIsa(), "portable");
}

TEST(Extras, ThreadsAreSetWithinTheirRange) {
  for (const int threads : {1, 2, 3, 7, 1024}) {
    EXPECT_EQ(npulessSetNumThreads(threads), ACL_SUCCESS);
    EXPECT_EQ(npulessGetNumThreads(), threads);
  }
  ASSERT_EQ(npulessSetNumThreads(2), ACL_SUCCESS);
  for (const int threads : {-1, 0, 1025}) {
    EXPECT_EQ(npulessSetNumThreads(threads), ACL_ERROR_INVALID_PARAM);
    expect_sentence_with(std::to_string(threads));
    EXPECT_EQ(npulessGetNumThreads(), 2);
  }
}

}  // namespace
