#include "runtime/lifecycle.h"

#include <charconv>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/current.h"
#include "runtime/device.h"

namespace npuless::runtime {
namespace {

using nlohmann::json;

struct Library {
  std::mutex mutex;
  uint64_t references = 0;
  bool finalized = false;
  json config;
};

// Never destroyed: programs finalise from their own static destructors.
Library& library() {
  static Library* instance = new Library;
  return *instance;
}

Status read_config(const char* path, json* config) {
  *config = json::object();
  if (path == nullptr) return {};
  std::ifstream file(path);
  if (!file) return fail(code::kInvalidFile, "cannot read the configuration '%s'", path);
  *config = json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (config->is_object()) return {};
  return fail(code::kParseFile, "the configuration '%s' is not a JSON object", path);
}

const json* find_member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

bool parse_device(const json& value, int64_t* device) {
  if (value.is_number_integer()) {
    *device = value.get<int64_t>();
    return true;
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *device);
  return error == std::errc() && stop == end;
}

// {"defaultDevice": {"default_device": "0"}}, where the number may also stand without quotes.
// *device is -1 when the configuration does not say.
Status default_device(const json& config, int64_t* device) {
  *device = -1;
  const json* group = find_member(config, "defaultDevice");
  const json* value = group == nullptr ? nullptr : find_member(*group, "default_device");
  if (value == nullptr) return {};
  if (parse_device(*value, device)) return require_device(*device);
  return fail(code::kInvalidParam, "defaultDevice.default_device is not a number");
}

Status start(const json& config) {
  int64_t device = -1;
  NPULESS_TRY(default_device(config, &device));
  if (device < 0) return {};
  void* context = nullptr;
  NPULESS_TRY(retain_device(static_cast<int>(device), &context));
  set_default_context(context);
  return {};
}

void tear_down_locked() {
  set_default_context(nullptr);
  release_all_devices();
  library().references = 0;
  library().finalized = true;
}

Status finalized_before() {
  return fail(code::kRepeatFinalize, "the library is finalised already");
}

}  // namespace

Status initialize(const char* config_path) {
  json config;
  NPULESS_TRY(read_config(config_path, &config));
  const std::lock_guard lock(library().mutex);
  if (library().references == 0) {
    NPULESS_TRY(start(config));
    library().config = std::move(config);
    library().references = 1;
    library().finalized = false;
    return {};
  }
  if (config != library().config) {
    return fail(code::kInvalidParam, "the library runs with another configuration already");
  }
  ++library().references;
  return fail(code::kRepeatInitialize, "already initialised; counted as reference %llu",
              static_cast<unsigned long long>(library().references));
}

Status finalize() {
  const std::lock_guard lock(library().mutex);
  if (library().finalized) return finalized_before();
  tear_down_locked();
  return {};
}

Status finalize_reference(uint64_t* remaining) {
  const std::lock_guard lock(library().mutex);
  *remaining = 0;
  if (library().references == 0) return finalized_before();
  if (library().references == 1) {
    tear_down_locked();
    return {};
  }
  *remaining = --library().references;
  return {};
}

}  // namespace npuless::runtime
