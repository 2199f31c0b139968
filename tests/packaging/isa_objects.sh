#!/usr/bin/env bash
# Usage: isa_objects.sh CXX OBJECT…
# Each per-ISA object must define one global symbol, its table, and nothing weak: the linker could
# pick a weak function compiled for one processor to serve every processor.
set -euo pipefail

# check OBJECT: complains and fails unless the object keeps the rule.
check() {
  local globals
  globals=$(nm --defined-only --demangle "$1" | sed -E 's/^[0-9a-f]+ //' | grep -E '^[A-ZuvwV] ' || true)
  if [ "$(grep -c '^[DRB] ' <<<"$globals")" -eq 1 ] && [ "$(wc -l <<<"$globals")" -eq 1 ]; then
    return 0
  fi
  echo "$1 should define one global table, but defines:"
  echo "$globals"
  return 1
}

cxx=$1
shift

# The check itself, on one good object and three bad ones.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
verdict() {
  "$cxx" -std=c++20 -O1 -c -x c++ - -o "$work/sample.o" <<<"$1"
  if check "$work/sample.o" >/dev/null; then echo good; else echo bad; fi
}
table='extern "C" int (*const table[])(int); static int f(int x) { return x; } int (*const table[])(int) = {f};'
[ "$(verdict "$table")" = good ]
[ "$(verdict "$table inline int weak(int x) { return x; } int (*leak)(int) = weak;")" = bad ]
[ "$(verdict "$table int function(int x) { return x; }")" = bad ]
[ "$(verdict "static int unused;")" = bad ]

checked=0 status=0
for object in "$@"; do
  [[ $object =~ /(portable|avx2|avx512|avx512_bf16)\.cc\.o$ ]] || continue
  checked=$((checked + 1))
  check "$object" || status=1
done
echo "$checked per-ISA objects checked"
[ $checked -gt 0 ] || status=1
exit $status
