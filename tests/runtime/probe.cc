// Does one thing named by its argument and prints what it saw. The tests run it with an environment
// of their own, since the library reads the environment once.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "enumerator.h"
#include "runtime/launch.h"

using npuless::Status;
using npuless::runtime::enumerator;
using npuless::runtime::launch;
using npuless::runtime::TaskFn;

// The leak sanitizer asks. It cannot stop the threads that it knows of in a forked child.
static bool forked = false;
extern "C" __attribute__((visibility("default"))) int __lsan_is_turned_off() {
  return forked ? 1 : 0;
}

namespace {

Status sleep_and_fail(void*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return npuless::fail(507015, "the slow task failed");
}

Status sleep_long(void*) {
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return {};
}

Status do_nothing(void*) {
  return {};
}

void queue(aclrtStream stream, TaskFn task) {
  if (!launch(stream, task, nullptr, 0).ok()) std::exit(97);
}

aclrtStream stream_on_device_0() {
  aclrtStream stream = nullptr;
  if (aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) std::exit(99);
  return stream;
}

void print_devices() {
  uint32_t count = 0;
  aclrtGetDeviceCount(&count);
  std::printf("%u:", count);
  for (uint32_t device = 0; device < count; ++device) {
    int64_t physical = -1;
    aclrtGetDeviceInfo(device, ACL_DEV_ATTR_PHY_CHIP_ID, &physical);
    std::printf(" %lld", static_cast<long long>(physical));
  }
  std::printf(" beyond %d", aclrtSetDevice(static_cast<int32_t>(count)));
}

void print_memory() {
  size_t free = 0;
  size_t total = 0;
  aclrtSetDevice(0);
  aclrtGetMemInfo(ACL_HBM_MEM, &free, &total);
  std::printf("%zu", total);
}

void print_soc() {
  std::printf("%s", aclrtGetSocName());
}

// The status of the call that queues, then of the one that synchronises.
void launch_a_failure() {
  const aclrtStream stream = stream_on_device_0();
  const int launched = launch(stream, &sleep_and_fail, nullptr, 0).code();
  const char* sentence = aclGetRecentErrMsg();
  const bool told = sentence != nullptr && std::strstr(sentence, "slow task") != nullptr;
  std::printf("%d %d %d", launched, told, aclrtSynchronizeStream(stream));
}

void record_and_wait() {
  const aclrtStream stream = stream_on_device_0();
  aclrtEvent event = nullptr;
  aclrtEventRecordedStatus status{};
  aclrtCreateEvent(&event);
  const int recorded = aclrtRecordEvent(event, stream);
  aclrtQueryEventStatus(event, &status);
  std::printf("%d %d %d", recorded, static_cast<int>(status), aclrtStreamWaitEvent(stream, event));
}

void read_past_a_block() {
  stream_on_device_0();
  void* block = nullptr;
  aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST);
  char host[128];
  const int code = aclrtMemcpy(host, sizeof(host), block, sizeof(host), ACL_MEMCPY_DEVICE_TO_HOST);
  std::printf("code %d\n", code);
}

void log_lines() {
  ACL_APP_LOG(ACL_DEBUG, "a %s", "debug line");
  ACL_APP_LOG(ACL_INFO, "an info line");
  ACL_APP_LOG(ACL_WARNING, "a warning line");
  ACL_APP_LOG(ACL_ERROR, "an error line %d", 5);
  aclrtFree(nullptr);
}

void finalize_without_init() {
  const int first = aclFinalize();
  std::printf("%d %d", first, aclFinalize());
}

void drop_reference_without_init() {
  uint64_t remaining = 9;
  const int code = aclFinalizeReference(&remaining);
  std::printf("%d %d", code, static_cast<int>(remaining));
}

void print_versions() {
  char package[] = "runtime";
  char text[ACL_PKG_VERSION_MAX_SIZE] = "";
  int32_t number = -1;
  aclCANNPackageVersion version{};
  const int by_text = aclsysGetVersionStr(package, text);
  const int by_number = aclsysGetVersionNum(package, &number);
  const int by_name = aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, &version);
  std::printf("%d %d %d", by_text, by_number, by_name);
  if (by_name != 0) return;
  std::printf(" %s %d %s|%s|%s|%s|%s", text, number, version.version, version.majorVersion,
              version.minorVersion, version.releaseVersion, version.patchVersion);
}

void refuse_versions() {
  char empty[] = "";
  char path[] = "../runtime";
  char unknown[] = "unknown";
  char text[ACL_PKG_VERSION_MAX_SIZE] = "";
  int32_t number = 0;
  std::printf("%d %d %d %d %d %d %d %d", aclsysGetVersionStr(nullptr, text),
              aclsysGetVersionStr(path, nullptr), aclsysGetVersionStr(empty, text),
              aclsysGetVersionStr(path, text), aclsysGetVersionNum(unknown, &number),
              aclsysGetVersionNum(unknown, nullptr),
              aclsysGetCANNVersion(ACL_PKG_NAME_RUNTIME, nullptr),
              aclsysGetCANNVersion(enumerator<aclCANNPackageName>(8),
                                   reinterpret_cast<aclCANNPackageVersion*>(text)));
}

// No address space is left: allocation fails with its code and succeeds again afterwards.
void run_out_of_address_space() {
  stream_on_device_0();
  rlimit old{};
  getrlimit(RLIMIT_AS, &old);
  rlimit tight{size_t{256} << 20, old.rlim_max};
  setrlimit(RLIMIT_AS, &tight);
  void* block = nullptr;
  aclrtStream stream = nullptr;
  std::vector<void*> blocks;
  int code = 0;
  while ((code = aclrtMalloc(&block, size_t{32} << 20, ACL_MEM_MALLOC_HUGE_FIRST)) == 0) {
    blocks.push_back(block);
  }
  std::vector<aclrtStream> streams;
  int stream_code = 0;
  while ((stream_code = aclrtCreateStream(&stream)) == 0) streams.push_back(stream);
  setrlimit(RLIMIT_AS, &old);
  const int again = aclrtMalloc(&block, size_t{32} << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  std::printf("%d %d %d %d", blocks.empty(), code, stream_code, again);
}

// --- ways to end --------------------------------------------------------------------------------

void exit_with_queued_work() {
  const aclrtStream stream = stream_on_device_0();
  queue(nullptr, &do_nothing);
  for (int i = 0; i < 3; ++i) queue(stream, &sleep_long);
  std::printf("exits");
}

void exit_without_cleaning_up() {
  const aclrtStream stream = stream_on_device_0();
  aclrtEvent event = nullptr;
  aclrtContext context = nullptr;
  void* block = nullptr;
  aclInit(nullptr);
  aclrtMalloc(&block, size_t{4} << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMallocHost(&block, 100);
  aclrtCreateEvent(&event);
  aclrtRecordEvent(event, stream);
  aclrtCreateContext(&context, 0);
  queue(nullptr, &do_nothing);
  std::printf("exits");
}

struct CleansUpLate {
  ~CleansUpLate() {
    if (stream == nullptr) return;
    queue(stream, &do_nothing);
    const int synchronized = aclrtSynchronizeStream(stream);
    const int destroyed = aclrtDestroyStream(stream);
    const int reset = aclrtResetDevice(0);
    std::printf("%d %d %d %d", synchronized, destroyed, reset, aclFinalize());
  }
  aclrtStream stream = nullptr;
} cleans_up_late;

void exit_with_late_cleanup() {
  cleans_up_late.stream = stream_on_device_0();
}

// --- forks --------------------------------------------------------------------------------------

// What the parent leaves: a stream that sleeps, one that is busy, and a context whose default
// stream has a worker too.
struct Inheritance {
  aclrtStream idle = stream_on_device_0();
  aclrtStream busy = stream_on_device_0();
  aclrtContext first = nullptr;
  aclrtContext second = nullptr;
  aclrtEvent reached = nullptr;
  aclrtEvent pending = nullptr;
};

void prepare(Inheritance* left) {
  aclrtGetCurrentContext(&left->first);
  aclrtCreateContext(&left->second, 0);
  queue(nullptr, &do_nothing);
  aclrtSynchronizeStream(nullptr);
  aclrtSetCurrentContext(left->first);
  aclrtCreateEvent(&left->reached);
  aclrtCreateEvent(&left->pending);
  aclrtRecordEvent(left->reached, left->idle);
  aclrtSynchronizeStream(left->idle);
  queue(left->busy, &sleep_long);
  aclrtRecordEvent(left->pending, left->busy);
}

// A list's elements are evaluated in order.
void print_codes(std::initializer_list<int> codes) {
  for (const int code : codes) std::printf("%d ", code);
  std::printf("| ");
}

int launch_nothing(aclrtStream stream) {
  return launch(stream, &do_nothing, nullptr, 0).code();
}

void print_refusals(const Inheritance& left) {
  aclrtStreamStatus status{};
  for (const aclrtStream stream : {left.idle, left.busy}) {
    print_codes({launch_nothing(stream), aclrtSynchronizeStream(stream),
                 aclrtStreamQuery(stream, &status), aclrtRecordEvent(left.pending, stream),
                 aclrtStreamAbort(stream), aclrtDestroyStream(stream),
                 aclrtDestroyStreamForce(stream)});
  }
  for (const aclrtEvent event : {left.reached, left.pending}) {
    print_codes({aclrtSynchronizeEvent(event), aclrtStreamWaitEvent(nullptr, event)});
  }
  print_codes({aclrtSynchronizeDevice()});
}

void print_life() {
  aclrtStream stream = nullptr;
  print_codes({aclrtCreateStream(&stream), launch_nothing(stream), aclrtSynchronizeStream(stream),
               launch_nothing(nullptr), aclrtSynchronizeStream(nullptr),
               aclrtDestroyStream(stream)});
}

void use_what_the_parent_left(const Inheritance& left) {
  print_refusals(left);
  print_codes({aclrtSetCurrentContext(left.second), launch_nothing(nullptr),
               aclrtDestroyContext(left.second), aclrtDestroyEvent(left.pending), aclFinalize()});
}

void live_beside_what_the_parent_left(const Inheritance&) {
  print_life();
  print_codes({aclFinalize(), aclInit(nullptr), aclrtSetDevice(0)});
  print_life();
  print_codes({aclrtSynchronizeDevice(), aclrtResetDevice(0), aclFinalize()});
}

void run_in_a_forked_child(void (*action)(const Inheritance&)) {
  Inheritance left;
  prepare(&left);
  const pid_t child = fork();
  if (child == 0) {
    forked = true;
    alarm(30);  // a child that hangs ends the test
    return action(left);
  }
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) std::printf("child ended with %d", status);
}

const std::map<std::string, void (*)()>& actions() {
  static const std::map<std::string, void (*)()> table = {
      {"devices", print_devices},
      {"memory", print_memory},
      {"soc", print_soc},
      {"failure", launch_a_failure},
      {"record", record_and_wait},
      {"past", read_past_a_block},
      {"log", log_lines},
      {"finalize", finalize_without_init},
      {"drop", drop_reference_without_init},
      {"versions", print_versions},
      {"no-versions", refuse_versions},
      {"address-space", run_out_of_address_space},
      {"exit-queued", exit_with_queued_work},
      {"exit-dirty", exit_without_cleaning_up},
      {"exit-late", exit_with_late_cleanup},
      {"fork", [] { run_in_a_forked_child(use_what_the_parent_left); }},
      {"fork-new", [] { run_in_a_forked_child(live_beside_what_the_parent_left); }},
  };
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  const auto action = actions().find(argc == 2 ? argv[1] : "");
  if (action == actions().end()) return 98;
  action->second();
  return 0;
}
