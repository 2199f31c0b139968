# The name under which older CANN releases installed set_env.sh.
source "$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)/../set_env.sh"
