// Reading the environment. Text that does not parse counts as unset, with a warning in the log.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace npuless::runtime {

// An integer in [low, high].
std::optional<int64_t> integer_variable(const char* name, int64_t low, int64_t high);
// Bytes above 0, with an optional suffix K, M, G or T (powers of 1024).
std::optional<uint64_t> size_variable(const char* name);
// A comma-separated list such as "2,0", cut before its first entry that is not a number below
// `count` or stands there twice. Unset or empty: nullopt.
std::optional<std::vector<int>> index_list_variable(const char* name, int count);

}  // namespace npuless::runtime
