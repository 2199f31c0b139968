// What a user reads after an error.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace npuless {

inline std::string taken_sentence() {
  const char* text = take_last_error();
  return text == nullptr ? "" : text;
}

// The call returned `code` and left one sentence with every part in it.
template <class... Parts>
void expect_error(int32_t got, int32_t code, Parts... parts) {
  const std::string sentence = taken_sentence();
  EXPECT_EQ(got, code) << sentence;
  EXPECT_NE(sentence, "");
  for (const char* part : {"", static_cast<const char*>(parts)...}) {
    EXPECT_NE(sentence.find(part), std::string::npos) << part << " is not in: " << sentence;
  }
}

}  // namespace npuless
