// 361001 outside the 910B and 910_93 families, after every other check and the empty shortcut.
// The device name is read once per process: CMake runs this binary with each NPULESS_SOC_NAME, the
// expected code in NPULESS_TEST_EXPECTED.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "linear_cross_entropy/test_problem.h"

namespace npuless::linear_cross_entropy {
namespace {

int32_t phase1_of(Problem& problem) {
  uint64_t bytes = 0;
  aclOpExecutor* executor = nullptr;
  const int32_t code = Problem::Handles(problem).phase1(&bytes, &executor);
  if (code != 0) return code;
  EXPECT_EQ(aclDestroyAclOpExecutor(executor), 0);
  return code;
}

TEST(GradPlatform, ComesLast) {
  const char* expected = std::getenv("NPULESS_TEST_EXPECTED");
  ASSERT_NE(expected, nullptr);
  Problem valid({9, 5, 128}, {});
  ASSERT_EQ(phase1_of(valid), std::atoi(expected));
  if (std::string(expected) != "0") {
    const char* sentence = aclGetRecentErrMsg();
    ASSERT_NE(sentence, nullptr);
    EXPECT_NE(std::string(sentence).find(aclrtGetSocName()), std::string::npos) << sentence;
  }
  Problem small({9, 5, 100}, {});
  EXPECT_EQ(phase1_of(small), 161002);
  Problem empty({0, 5, 128}, {});
  EXPECT_EQ(phase1_of(empty), 0);
}

}  // namespace
}  // namespace npuless::linear_cross_entropy
