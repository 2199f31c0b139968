/* The runtime from C: device, memory, streams, events, errors. Includes acl/acl.h alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "acl/acl.h"

static int failures = 0;

static void check(int passed, const char* what, int line) {
  if (passed) return;
  ++failures;
  printf("%s:%d: %s\n", __FILE__, line, what);
}

#define CHECK(condition) check((condition), #condition, __LINE__)

enum { kSize = 1000 };

static void copies(aclrtStream stream) {
  unsigned char host[kSize], back[kSize];
  void* device = NULL;
  for (int i = 0; i < kSize; ++i) host[i] = (unsigned char)(i * 7);
  CHECK(aclrtMalloc(&device, kSize, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_SUCCESS);
  CHECK(aclrtMemcpy(device, kSize, host, kSize, ACL_MEMCPY_HOST_TO_DEVICE) == ACL_SUCCESS);
  CHECK(aclrtMemcpy(back, kSize, device, kSize, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
  CHECK(memcmp(host, back, kSize) == 0);
  CHECK(aclrtMemsetAsync(device, kSize, 0x5A, kSize / 2, stream) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeStream(stream) == ACL_SUCCESS);
  CHECK(aclrtMemcpy(back, kSize, device, kSize, ACL_MEMCPY_DEVICE_TO_HOST) == ACL_SUCCESS);
  CHECK(back[0] == 0x5A && back[kSize / 2 - 1] == 0x5A);
  CHECK(back[kSize / 2] == host[kSize / 2]);
  CHECK(aclrtMemcpy(device, kSize - 1, host, kSize, ACL_MEMCPY_HOST_TO_DEVICE) ==
        ACL_ERROR_RT_PARAM_INVALID);
  CHECK(aclrtFree(device) == ACL_SUCCESS);
}

static void events(aclrtStream stream) {
  aclrtEvent event = NULL;
  CHECK(aclrtCreateEvent(&event) == ACL_SUCCESS);
  CHECK(aclrtRecordEvent(event, stream) == ACL_SUCCESS);
  CHECK(aclrtSynchronizeEvent(event) == ACL_SUCCESS);
  CHECK(aclrtDestroyEvent(event) == ACL_SUCCESS);
}

static void errors(void) {
  CHECK(aclrtMalloc(NULL, 1, ACL_MEM_MALLOC_HUGE_FIRST) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclGetRecentErrMsg() != NULL);
  CHECK(aclGetRecentErrMsg() == NULL);
  CHECK(aclrtSetDevice(-1) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK(aclrtFree(NULL) == ACL_ERROR_INVALID_PARAM);
  CHECK(aclrtDestroyStream(NULL) == ACL_ERROR_INVALID_PARAM);
}

int main(void) {
  aclrtStream stream = NULL;
  int32_t device = -1;
  uint32_t count = 0;
  CHECK(aclInit(NULL) == ACL_SUCCESS);
  CHECK(aclrtGetDeviceCount(&count) == ACL_SUCCESS && count >= 1);
  CHECK(aclrtSetDevice(0) == ACL_SUCCESS);
  CHECK(aclrtGetDevice(&device) == ACL_SUCCESS && device == 0);
  CHECK(aclrtCreateStream(&stream) == ACL_SUCCESS);
  copies(stream);
  events(stream);
  errors();
  CHECK(aclDataTypeSize(ACL_BF16) == 2);
  CHECK(aclFloat16ToFloat(aclFloatToFloat16(1.5f)) == 1.5f);
  CHECK(aclrtDestroyStream(stream) == ACL_SUCCESS);
  CHECK(aclrtResetDevice(0) == ACL_SUCCESS);
  CHECK(aclFinalize() == ACL_SUCCESS);
  if (failures != 0) printf("%d checks failed\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
