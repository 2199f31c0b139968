#!/usr/bin/env bash
# Usage: scripts/setup.sh [package…]
# Installs the Debian packages that building and testing need, and those named, as root or through
# sudo.
# Asks no network and returns at once when all are there.
set -euo pipefail

packages=(
  g++ cmake ninja-build make # make: CANN's compile recipes use it
  libtbb-dev nlohmann-json3-dev
  libgtest-dev libbenchmark-dev libsimde-dev python3-minimal # tests and benches
  "$@"
)

command -v dpkg-query >/dev/null || {
  echo "setup: this is not Debian; going on, in the hope that these are installed: ${packages[*]}" >&2
  exit 0
}

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "setup: please install, as root: apt-get install ${missing[*]}" >&2
    exit 1
  }
  root=(sudo)
fi

echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{
  "${root[@]}" apt-get update -q &&
    "${root[@]}" apt-get install -q -y --no-install-recommends "${missing[@]}"
} >"$log" 2>&1 </dev/null || {
  cat "$log" >&2
  echo "setup: could not install ${missing[*]}" >&2
  exit 1
}
