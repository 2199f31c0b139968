#include "runtime/version.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace npuless::runtime {
namespace {

constexpr std::string_view kKey = "Version=";

// The value of the first line "Version=…", empty when there is none.
std::string version_line(std::ifstream& file) {
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, kKey.size(), kKey) != 0) continue;
    const size_t end = line.find_last_not_of(" \t\r");
    return line.substr(kKey.size(), end + 1 - kKey.size());
  }
  return {};
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

int32_t Version::number() const {
  const auto digits = [this](size_t index, long highest) {
    const long value = std::strtol(part(index).c_str(), nullptr, 10);
    return static_cast<int32_t>(std::clamp(value, 0L, highest));
  };
  return digits(0, 213) * 10000000 + digits(1, 99) * 100000 + digits(2, 99) * 1000;
}

Status read_version(const char* package, Version* version) {
  const std::string_view name = package;
  if (name.empty() || name.find('/') != std::string_view::npos || name.front() == '.') {
    return fail(code::kInvalidParam, "'%s' is not a package name", package);
  }
  const char* root = std::getenv("ASCEND_HOME_PATH");
  if (root == nullptr) return fail(code::kInvalidFile, "ASCEND_HOME_PATH is not set");
  const std::string path = std::string(root) + "/share/info/" + package + "/version.info";
  std::ifstream file(path);
  version->text = version_line(file);
  if (version->text.empty()) return fail(code::kInvalidFile, "no version in '%s'", path.c_str());
  version->parts = split(version->text);
  return {};
}

}  // namespace npuless::runtime
