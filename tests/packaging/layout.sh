#!/usr/bin/env bash
# Usage: layout.sh ROOT CXX
# The installed root has the files and library names that CANN's scripts and recipes look for, and
# holds no path of the machine that built it.
set -euo pipefail
root=$1 cxx=$2
fail() {
  echo "layout: $*" >&2
  exit 1
}

arch=$(uname -m)-linux
for file in set_env.sh bin/setenv.bash include/acl/acl.h include/aclnn/acl_meta.h \
  include/aclnnop/aclnn_util.h include/aclnnop/level2/aclnn_util.h opp/lib64/libopapi.so \
  "$arch/include/acl/acl.h" "$arch/lib64/libacl_rt.so" share/info/runtime/version.info \
  share/cmake/npuless/npulessConfig.cmake lib64/libnpuless.so lib64/libnpuless.so.1; do
  [ -f "$root/$file" ] || fail "$file is missing"
done
while read -r link; do
  case $(readlink "$link") in /*) fail "$link is an absolute link" ;; esac
  [ -e "$link" ] || fail "$link leads nowhere"
done < <(find "$root" -type l)

names=(ascendcl acl_rt nnopbase opapi opapi_math opapi_nn opapi_transformer)
for name in "${names[@]}"; do
  [ "$root/lib64/lib$name.so" -ef "$root/lib64/libnpuless.so.1" ] || fail "lib$name.so is not the library"
done

dynamic=$(readelf -d "$root/lib64/libnpuless.so.1")
grep -q 'SONAME.*\[libnpuless\.so\.1\]' <<<"$dynamic" || fail "wrong soname"
! grep -qE 'RPATH|RUNPATH' <<<"$dynamic" || fail "the library has a run path"
! grep -rIlF "$(dirname "$root")" "$root" || fail "the files above name the place of installation"

# A program that links every name records, and so loads, one library.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cxx" -x c++ - -x none -I "$root/include" -L "$root/lib64" -Wl,--no-as-needed "${names[@]/#/-l}" \
  -o "$work/program" <<<'#include "acl/acl.h"
int main() { return aclInit(nullptr) == ACL_SUCCESS ? aclFinalize() : 1; }'
needed=$(readelf -d "$work/program" | grep NEEDED | grep -vE 'libc\.so|libstdc\+\+|libm\.so|libgcc_s')
[ "$(grep -c . <<<"$needed")" -eq 1 ] || fail "a program needs more than one library: $needed"
LD_LIBRARY_PATH=$root/lib64 "$work/program"
