#!/usr/bin/env bash
# Usage: consumer.sh ROOT SOURCE_DIR
# A CMake project finds the package by prefix or by set_env.sh, links its target and runs
# without LD_LIBRARY_PATH.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# build NAME [cmake option…]
build() {
  cmake -S "$2/tests/packaging/consumer" -B "$work/$1" "${@:3}"
  cmake --build "$work/$1"
  env -u LD_LIBRARY_PATH "$work/$1/consumer"
}

build by_prefix "$2" -DCMAKE_PREFIX_PATH="$1"
# shellcheck disable=SC1091
. "$1/set_env.sh"
build by_environment "$2"
