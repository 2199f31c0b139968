# Source this to use the CANN root it lies in:  source <root>/set_env.sh
# Works in bash, zsh and dash, under `set -eu`, and after the root was moved.

if [ -n "${BASH_VERSION:-}" ]; then
  npuless_self=$BASH_SOURCE
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval 'npuless_self=${(%):-%x}'
else
  # Shells that do not tell a sourced file its name still hold it open while they read it.
  npuless_self=
  for npuless_fd in /proc/$$/fd/*; do
    npuless_file=$(readlink "$npuless_fd" || true)
    case "$npuless_file" in
      */set_env.sh) npuless_self=$npuless_file ;;
    esac
  done
  unset npuless_fd npuless_file
fi
npuless_root=$(CDPATH='' cd -- "$(dirname -- "$npuless_self")" && pwd)

# npuless_prepend VARIABLE DIRECTORY: unless it comes first already or does not exist.
npuless_prepend() {
  [ -d "$2" ] || return 0
  eval "npuless_old=\${$1:-}"
  case "$npuless_old:" in
    "$2:"*) ;;
    *) eval "export $1=\"\$2\${npuless_old:+:\$npuless_old}\"" ;;
  esac
  unset npuless_old
}

export ASCEND_TOOLKIT_HOME="$npuless_root"
export ASCEND_HOME_PATH="$npuless_root"
export ASCEND_CUSTOM_PATH="$npuless_root"
export ASCEND_AICPU_PATH="$npuless_root"
export ASCEND_OPP_PATH="$npuless_root/opp"
npuless_prepend LD_LIBRARY_PATH "$npuless_root/lib64"
npuless_prepend PATH "$npuless_root/bin"
npuless_prepend PYTHONPATH "$npuless_root/python/site-packages"

unset -f npuless_prepend
unset npuless_self npuless_root
