#!/usr/bin/env bash
# Usage: versions.sh ROOT CXX VERSION
# Every package that the version calls can ask for answers VERSION from the installed root.
set -euo pipefail
root=$1 cxx=$2 version=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cxx" -x c++ - -x none -I "$root/include" -L "$root/lib64" -lascendcl -o "$work/program" <<'END'
#include <cstdio>
#include "acl/acl.h"
int main(int argc, char** argv) {
  for (int name = ACL_PKG_NAME_CANN; name <= ACL_PKG_NAME_DRIVER; ++name) {
    aclCANNPackageVersion version = {};
    const aclError code = aclsysGetCANNVersion(static_cast<aclCANNPackageName>(name), &version);
    std::printf("package %d: %d %s\n", name, code, version.version);
  }
  for (int i = 1; i < argc; ++i) {
    char version[ACL_PKG_VERSION_MAX_SIZE] = "";
    const aclError code = aclsysGetVersionStr(argv[i], version);
    std::printf("package %s: %d %s\n", argv[i], code, version);
  }
}
END
packages=(cann runtime compiler hccl toolkit opp opp_kernel driver)
# shellcheck disable=SC1091
. "$root/set_env.sh"
diff <(printf "package %s: 0 $version\n" {0..7} "${packages[@]}") <("$work/program" "${packages[@]}")
