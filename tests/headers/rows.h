// Tables of constants: each row names a constant and the value that it must have.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "gtest/gtest.h"

struct Row {
  const char* name;
  int64_t value;
  int64_t expected;
};

#define ROW(name, expected) \
  { #name, static_cast < int64_t>(name), expected }

inline void expect_rows(std::initializer_list<Row> rows) {
  for (const Row& row : rows) EXPECT_EQ(row.value, row.expected) << row.name;
}
