#!/usr/bin/env bash
# Usage: run.sh SOURCE_DIR
# ./run passes arguments, output and exit codes through, works from any folder and with any file
# name, and leaves the file as it is.
set -euo pipefail
run=$1/run
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir "a folder"
cat >"a folder/exit code.cpp" <<'END'
#include <cstdio>
#include <cstdlib>
#include "acl/acl.h"
int main(int argc, char** argv) {
  if (aclInit(nullptr) != ACL_SUCCESS || aclFinalize() != ACL_SUCCESS) return 1;
  std::puts(argv[2]);
  return argc == 3 ? std::atoi(argv[1]) : 1;
}
END
echo 'int main() { return undeclared; }' >broken.cpp
echo 'int main() { auto f = [](auto x) { return x; }; return f(0); }' >modern.cpp
before=$(cksum "a folder/exit code.cpp")

# expect CODE OUTPUT COMMAND…
expect() {
  local code=0 output
  output=$("${@:3}" 2>&1) || code=$?
  if [ $code -ne "$1" ] || [[ $output != *"$2"* ]]; then
    echo "${*:3}: exit code $code instead of $1, printed:" "$output" >&2
    exit 1
  fi
}
expect 7 "two words" "$run" "a folder/exit code.cpp" 7 "two words"
expect 0 "x" "$run" "$work/a folder/../a folder/exit code.cpp" 0 x
expect 1 "was not declared" "$run" broken.cpp
expect 1 "error" env CXXFLAGS="-std=c++11 -pedantic-errors" "$run" modern.cpp
expect 0 "" env CXXFLAGS=-std=c++17 "$run" modern.cpp
expect 2 "no such file" "$run" missing.cpp
expect 2 "Usage" "$run"

[ "$(cksum "a folder/exit code.cpp")" = "$before" ]
[ "$(find . -type f | wc -l)" -eq 3 ]
