#include "runtime/device.h"

#include <mutex>
#include <numeric>
#include <vector>

#include "runtime/context.h"
#include "runtime/environment.h"
#include "runtime/memory.h"

namespace npuless::runtime {
namespace {

constexpr int kMaxDevices = 1024;

struct Device {
  int physical = 0;
  int64_t references = 0;
  void* primary = nullptr;  // context handle
};

std::vector<int> visible_devices() {
  const auto count =
      static_cast<int>(integer_variable("NPULESS_DEVICE_COUNT", 1, kMaxDevices).value_or(1));
  if (auto chosen = index_list_variable("ASCEND_RT_VISIBLE_DEVICES", count)) return *chosen;
  std::vector<int> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

struct Registry {
  Registry() {
    for (const int physical : visible_devices()) devices.push_back({.physical = physical});
  }

  std::mutex mutex;  // guards all but `physical`
  std::vector<Device> devices;
};

// Never destroyed: threads may still use devices while static destructors run.
Registry& registry() {
  static Registry* instance = new Registry;
  return *instance;
}

Device& device_at(int device) {
  return registry().devices[static_cast<size_t>(device)];
}

bool has_contexts(int device) {
  bool found = false;
  contexts().for_each([&](const ContextPin& context) { found |= context->device == device; });
  return found;
}

void tear_down(int device, bool discard) {
  destroy_context(device_at(device).primary, discard);
  device_at(device).primary = nullptr;
  if (!has_contexts(device)) release_memory(device);
}

}  // namespace

int device_count() {
  return static_cast<int>(registry().devices.size());
}

Status require_device(int64_t device) {
  if (device >= 0 && device < device_count()) return {};
  return fail(code::kRtInvalidDevice, "device %lld does not exist; there are %d",
              static_cast<long long>(device), device_count());
}

int physical_device(int device) {
  return device_at(device).physical;
}

Status retain_device(int device, void** context) {
  NPULESS_TRY(require_device(device));
  const std::lock_guard lock(registry().mutex);
  Device& used = device_at(device);
  if (used.primary == nullptr) NPULESS_TRY(create_context(device, true, &used.primary));
  ++used.references;
  *context = used.primary;
  return {};
}

Status release_device(int device, bool force) {
  NPULESS_TRY(require_device(device));
  const std::lock_guard lock(registry().mutex);
  Device& used = device_at(device);
  if (used.references == 0) {
    return fail(code::kContextRelease, "device %d was reset more often than set", device);
  }
  used.references = force ? 0 : used.references - 1;
  if (used.references == 0) tear_down(device, force);
  return {};
}

bool has_primary_context(int device) {
  const std::lock_guard lock(registry().mutex);
  return device_at(device).primary != nullptr;
}

void release_all_devices() {
  const std::lock_guard lock(registry().mutex);
  contexts().for_each([](const ContextPin& context) { destroy_context(context.handle(), false); });
  for (int device = 0; device < device_count(); ++device) {
    device_at(device).references = 0;
    device_at(device).primary = nullptr;
    release_memory(device);
  }
}

}  // namespace npuless::runtime
