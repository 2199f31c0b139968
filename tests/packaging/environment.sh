#!/usr/bin/env bash
# Usage: environment.sh ROOT
# set_env.sh finds its own root in every shell here, under `set -eu`, relative and absolute, also
# after the root was moved to a folder with a space, and changes nothing when sourced again.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -a "$1" "$work/moved root"
root="$work/moved root"

# try SHELL COMMAND: sources by COMMAND twice, then prints what was set.
try() {
  env -u LD_LIBRARY_PATH -u PYTHONPATH "$1" -c "set -eu
    cd '$root/bin'
    $2
    $2
    printf '%s\n' \"\$ASCEND_HOME_PATH\" \"\$ASCEND_TOOLKIT_HOME\" \"\$ASCEND_CUSTOM_PATH\" \
      \"\$ASCEND_OPP_PATH\" \"\$LD_LIBRARY_PATH\" \"\${PATH%%:*}\" \"\${PYTHONPATH-none}\"
    LD_LIBRARY_PATH=/elsewhere
    $2
    printf '%s\n' \"\$LD_LIBRARY_PATH\""
}
expected=$(printf '%s\n' "$root" "$root" "$root" "$root/opp" "$root/lib64" "$root/bin" none \
  "$root/lib64:/elsewhere")

for shell in bash dash zsh; do
  command -v $shell >/dev/null || continue
  for command in ". '$root/set_env.sh'" ". ../set_env.sh"; do
    actual=$(try $shell "$command")
    [ "$actual" = "$expected" ] || {
      printf '%s\n' "$shell, $command, set:" "$actual" "instead of:" "$expected" >&2
      exit 1
    }
  done
done
[ "$(try bash "source '$root/bin/setenv.bash'")" = "$expected" ]
[ -z "$(bash -c "source '$root/set_env.sh'; compgen -v npuless; compgen -A function npuless")" ]
