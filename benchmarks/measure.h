// Times an entry: the library, its baseline and the roof take turns, so that what else the machine
// does weighs on all of them alike.
#pragma once

#include <string>

#include "acl/acl.h"
#include "work.h"

namespace npuless::bench {

// Seconds are medians over the rounds, the roof is the best that any round saw.
struct Result {
  std::string error;  // empty, or why nothing was timed
  double seconds = 0;
  double baseline_seconds = 0;  // 0: there is none
  double roof = 0;              // flops or bytes per second; 0: none applies
  int rounds = 0;
  uint64_t workspace_bytes = 0;
  int64_t peak_bytes = 0;           // resident memory that a run adds to its problem
  int64_t baseline_peak_bytes = 0;  // likewise, its buffers included
};

Result measure(const Entry& entry, aclrtStream stream);

}  // namespace npuless::bench
