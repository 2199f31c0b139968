/* Part of acl_rt.h: initialisation, versions, error reports. */
#ifndef NPULESS_ACL_ACL_RT_LIFECYCLE_H_
#define NPULESS_ACL_ACL_RT_LIFECYCLE_H_

#include "acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the API that this header follows. */
#define ACL_MAJOR_VERSION 1
#define ACL_MINOR_VERSION 17
#define ACL_PATCH_VERSION 0

#define ACL_PKG_VERSION_MAX_SIZE 128
#define ACL_PKG_VERSION_PARTS_MAX_SIZE 64

typedef enum { ACL_DEVICE = 0, ACL_HOST = 1 } aclrtRunMode;

typedef enum { ACL_RT_THREAD_LEVEL = 0 } aclrtLastErrLevel;

typedef enum {
  ACL_PKG_NAME_CANN = 0,
  ACL_PKG_NAME_RUNTIME = 1,
  ACL_PKG_NAME_COMPILER = 2,
  ACL_PKG_NAME_HCCL = 3,
  ACL_PKG_NAME_TOOLKIT = 4,
  ACL_PKG_NAME_OPP = 5,
  ACL_PKG_NAME_OPP_KERNEL = 6,
  ACL_PKG_NAME_DRIVER = 7
} aclCANNPackageName;

/* Zero-terminated texts; a part that is unknown is "0". */
typedef struct aclCANNPackageVersion {
  char version[ACL_PKG_VERSION_MAX_SIZE];
  char majorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char minorVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char releaseVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char patchVersion[ACL_PKG_VERSION_PARTS_MAX_SIZE];
  char reserved[ACL_PKG_VERSION_MAX_SIZE];
} aclCANNPackageVersion;

/* Starts the library. configPath names a JSON file or is NULL; the key
 * defaultDevice.default_device makes a device current in threads that never set one.
 * Repeated with the same content: counts one more reference and returns 100002, which may be
 * ignored. With other content: 100000. Unreadable file: 100003. Not JSON: 100006. */
ACL_FUNC_VISIBILITY aclError aclInit(const char* configPath);
/* Drops all references at once; 100037 when already finalised. aclInit may follow. */
ACL_FUNC_VISIBILITY aclError aclFinalize(void);
/* Drops one reference and stores how many remain in *refCount (may be NULL); the last one
 * finalises. 100037 when none is left. */
ACL_FUNC_VISIBILITY aclError aclFinalizeReference(uint64_t* refCount);

/* The sentence that this thread's last failing call left, or NULL. Reading clears it; the text
 * lives until this thread's next call. */
ACL_FUNC_VISIBILITY const char* aclGetRecentErrMsg(void);
/* This thread's last error code without and with clearing it. `level` is ACL_RT_THREAD_LEVEL. */
ACL_FUNC_VISIBILITY aclError aclrtPeekAtLastError(aclrtLastErrLevel level);
ACL_FUNC_VISIBILITY aclError aclrtGetLastError(aclrtLastErrLevel level);

/* The API version, ACL_MAJOR_VERSION and so on. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                             int32_t* patchVersion);
/* "Ascend910B1", or the value of NPULESS_SOC_NAME. */
ACL_FUNC_VISIBILITY const char* aclrtGetSocName(void);
/* ACL_HOST: the program runs beside the device, not on it. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode* runMode);

/* The version of an installed package, read from share/info/<package>/version.info below
 * ASCEND_HOME_PATH. Not found: 100003. */
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name,
                                                  aclCANNPackageVersion* version);
/* The same by name ("runtime"): as text, into ACL_PKG_VERSION_MAX_SIZE bytes, and as the number
 * major * 10^7 + minor * 10^5 + release * 10^3. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char* pkgName, char* versionStr);
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum);

#ifdef __cplusplus
}
#endif

#endif /* NPULESS_ACL_ACL_RT_LIFECYCLE_H_ */
