// acl_rt_lifecycle.h: initialisation, versions, error reports.
#include <cstdio>

#include "acl/acl_rt.h"
#include "runtime/current.h"
#include "runtime/lifecycle.h"
#include "runtime/soc.h"
#include "runtime/version.h"

namespace npuless::runtime {
namespace {

// Names of the folders below share/info, by aclCANNPackageName.
constexpr const char* kPackages[] = {"cann",    "runtime", "compiler",   "hccl",
                                     "toolkit", "opp",     "opp_kernel", "driver"};

template <size_t N>
void copy_text(char (&target)[N], const char* text) {
  std::snprintf(target, N, "%s", text);
}

Status package_version(aclCANNPackageName name, aclCANNPackageVersion* version) {
  NPULESS_TRY(require(version, "version"));
  if (name < ACL_PKG_NAME_CANN || name > ACL_PKG_NAME_DRIVER) {
    return fail(code::kInvalidParam, "name %d is no aclCANNPackageName", static_cast<int>(name));
  }
  Version found;
  NPULESS_TRY(read_version(kPackages[name], &found));
  *version = aclCANNPackageVersion{};
  copy_text(version->version, found.text.c_str());
  copy_text(version->majorVersion, found.part(0).c_str());
  copy_text(version->minorVersion, found.part(1).c_str());
  copy_text(version->releaseVersion, found.part(2).c_str());
  copy_text(version->patchVersion, found.part(3).c_str());
  return {};
}

// The code is itself what these calls return, so they leave it alone.
aclError last_error(aclrtLastErrLevel level, bool clear) {
  if (level != ACL_RT_THREAD_LEVEL) return ACL_ERROR_INVALID_PARAM;
  const aclError code = this_thread().last_error;
  if (clear) this_thread().last_error = ACL_SUCCESS;
  return code;
}

}  // namespace
}  // namespace npuless::runtime

using namespace npuless;
using namespace npuless::runtime;

extern "C" {

aclError aclInit(const char* configPath) {
  return api(__func__, [&] { return initialize(configPath); });
}

aclError aclFinalize(void) {
  return api(__func__, [] { return finalize(); });
}

aclError aclFinalizeReference(uint64_t* refCount) {
  return api(__func__, [&] {
    uint64_t remaining = 0;
    const Status status = finalize_reference(&remaining);
    if (refCount != nullptr) *refCount = remaining;
    return status;
  });
}

const char* aclGetRecentErrMsg(void) {
  return take_last_error();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  return last_error(level, false);
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  return last_error(level, true);
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(majorVersion, "majorVersion"));
    NPULESS_TRY(require(minorVersion, "minorVersion"));
    NPULESS_TRY(require(patchVersion, "patchVersion"));
    *majorVersion = ACL_MAJOR_VERSION;
    *minorVersion = ACL_MINOR_VERSION;
    *patchVersion = ACL_PATCH_VERSION;
    return {};
  });
}

const char* aclrtGetSocName(void) {
  return soc_name();
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(runMode, "runMode"));
    *runMode = ACL_HOST;
    return {};
  });
}

aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion* version) {
  return api(__func__, [&] { return package_version(name, version); });
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(pkgName, "pkgName"));
    NPULESS_TRY(require(versionStr, "versionStr"));
    Version found;
    NPULESS_TRY(read_version(pkgName, &found));
    std::snprintf(versionStr, ACL_PKG_VERSION_MAX_SIZE, "%s", found.text.c_str());
    return {};
  });
}

aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum) {
  return api(__func__, [&]() -> Status {
    NPULESS_TRY(require(pkgName, "pkgName"));
    NPULESS_TRY(require(versionNum, "versionNum"));
    Version found;
    NPULESS_TRY(read_version(pkgName, &found));
    *versionNum = found.number();
    return {};
  });
}

}  // extern "C"
