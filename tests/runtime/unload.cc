// dlopen, create a stream, dlclose, live on: the stream's worker must still find its code.
#include <dlfcn.h>

#include <chrono>
#include <thread>

#include "acl/acl.h"

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : nullptr;
  if (library == nullptr) return 1;
  const auto set_device =
      reinterpret_cast<decltype(&aclrtSetDevice)>(dlsym(library, "aclrtSetDevice"));
  const auto create_stream =
      reinterpret_cast<decltype(&aclrtCreateStream)>(dlsym(library, "aclrtCreateStream"));
  aclrtStream stream = nullptr;
  if (set_device == nullptr || create_stream == nullptr) return 2;
  if (set_device(0) != 0 || create_stream(&stream) != 0) return 3;
  dlclose(library);
  // Long enough for the worker to leave its busy wait, which would jump into unmapped memory.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return 0;
}
