#include "runtime/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/log.h"

namespace npuless::runtime {
namespace {

std::optional<std::string_view> variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || text[0] == '\0') return std::nullopt;
  return std::string_view(text);
}

template <class Integer>
bool parse(std::string_view text, Integer* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

void warn_ignored(const char* name, std::string_view text) {
  log(LogLevel::kWarning, "%s=%.*s is not understood and ignored", name,
      static_cast<int>(text.size()), text.data());
}

int suffix_shift(char suffix) {
  constexpr std::string_view kSuffixes = "KMGT";
  const size_t place = kSuffixes.find(static_cast<char>(suffix & ~0x20));
  return place == std::string_view::npos ? 0 : 10 * (static_cast<int>(place) + 1);
}

}  // namespace

std::optional<int64_t> integer_variable(const char* name, int64_t low, int64_t high) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  int64_t value = 0;
  if (parse(*text, &value) && value >= low && value <= high) return value;
  warn_ignored(name, *text);
  return std::nullopt;
}

std::optional<uint64_t> size_variable(const char* name) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  const int shift = suffix_shift(text->back());
  const std::string_view digits = shift == 0 ? *text : text->substr(0, text->size() - 1);
  uint64_t value = 0;
  if (parse(digits, &value) && value > 0 && value <= (UINT64_MAX >> shift)) return value << shift;
  warn_ignored(name, *text);
  return std::nullopt;
}

std::optional<std::vector<int>> index_list_variable(const char* name, int count) {
  const auto text = variable(name);
  if (!text) return std::nullopt;
  std::vector<int> list;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    int index = -1;
    const bool valid = parse(rest.substr(0, comma), &index) && index >= 0 && index < count;
    if (!valid || std::find(list.begin(), list.end(), index) != list.end()) {
      warn_ignored(name, rest);
      break;
    }
    list.push_back(index);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return list;
}

}  // namespace npuless::runtime
