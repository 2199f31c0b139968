// Versions of the packages of the root that ASCEND_HOME_PATH names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace npuless::runtime {

struct Version {
  std::string text;                // "8.5.0.1"
  std::vector<std::string> parts;  // its pieces between dots

  std::string part(size_t index) const { return index < parts.size() ? parts[index] : "0"; }
  // major · 10 000 000 + minor · 100 000 + release · 1 000, as CANN's version macros count.
  int32_t number() const;
};

// Reads share/info/<package>/version.info; 100003 when there is none, 100000 for a package name
// that is no file name.
Status read_version(const char* package, Version* version);

}  // namespace npuless::runtime
