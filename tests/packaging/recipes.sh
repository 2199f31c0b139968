#!/usr/bin/env bash
# Usage: recipes.sh ROOT SOURCE_DIR
# The examples compile without a warning by every documented way, run, and load our library by
# set_env.sh alone.
set -euo pipefail
root=$1 top=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC1091
. "$root/set_env.sh"

for program in "$top"/examples/*.cpp; do
  for recipe in "$top"/examples/recipe_*/; do
    build=$work/$(basename "$recipe")/$(basename "$program")
    mkdir -p "$build"
    cmake -S "$recipe" -B "$build" -DSOURCE="$program" -DCMAKE_CXX_COMPILER=g++ \
      -DCMAKE_SKIP_RPATH=TRUE -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror"
    make -C "$build"
    (cd "$build/bin" && ./opapi_test)
    if env -u LD_LIBRARY_PATH "$build/bin/opapi_test" >/dev/null 2>&1; then
      echo "$program does not depend on set_env.sh: is a run path left in it?" >&2
      exit 1
    fi
  done

  # The commands of the operator repositories' build.sh.
  includes=(-I "$root/include" -I "$root/include/aclnnop" -I "$root/include/aclnn")
  libraries=(-L "$ASCEND_OPP_PATH/lib64" -L "$ASCEND_HOME_PATH/lib64")
  g++ "$program" "${includes[@]}" "${libraries[@]}" -lopapi_nn -lopapi_math -lascendcl -lnnopbase \
    -o "$work/nn"
  "$work/nn"
  g++ "$program" "${includes[@]}" "${libraries[@]}" -lopapi -lopapi_transformer -lascendcl \
    -lnnopbase -lpthread -o "$work/transformer"
  "$work/transformer"
done
