#!/usr/bin/env bash
# Usage: consumer.sh ROOT SOURCE_DIR
# A CMake project finds the package, links its target and runs without any environment.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for prefix in "$1" "$1/$(uname -m)-linux"; do
  build=$work/$(basename "$prefix")
  cmake -S "$2/tests/packaging/consumer" -B "$build" -DCMAKE_PREFIX_PATH="$prefix"
  cmake --build "$build"
  env -u LD_LIBRARY_PATH "$build/consumer"
done
