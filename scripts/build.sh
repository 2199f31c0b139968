# Sourced by demo, test and run: the steps they share. Expects `set -euo pipefail`.

top=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cann=$top/build/cann
jobs=$(nproc)

# quietly COMMAND…: its output is shown only if it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 </dev/null || status=$?
  [ $status -eq 0 ] || cat "$log" >&2
  rm -f "$log"
  return $status
}

# configure PRESET BUILD_DIR [cmake options…]
configure() {
  quietly cmake -S "$top" --preset "$1" -B "$2" "${@:3}"
}

# Builds the library (release preset, no tests) and brings the CANN root in build/cann up to date.
# One at a time: ninja does not lock its folder.
install_root() (
  build=$top/build/release
  mkdir -p "$build"
  exec 9>"$build/.lock"
  flock 9
  [ -f "$build/build.ninja" ] || configure release "$build"
  cmake --build "$build" --target npuless --parallel "$jobs" >"$build/library.log" 2>&1 </dev/null || {
    cat "$build/library.log" >&2
    exit 1
  }
  quietly cmake --install "$build" --prefix "$cann"
)
