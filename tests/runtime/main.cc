#include <gtest/gtest.h>

#include <cstdlib>

// The tests of this program need two devices, and a limit that a test can reach.
int main(int argc, char** argv) {
  setenv("NPULESS_DEVICE_COUNT", "2", 1);
  setenv("NPULESS_DEVICE_MEMORY", "64M", 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
