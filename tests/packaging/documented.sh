#!/usr/bin/env bash
# Usage: documented.sh SOURCE_DIR
# README's table names every operator there is and no other.
set -euo pipefail
declared=$(sed -nE 's/.*aclnnStatus (aclnn[A-Za-z0-9]+)\(void\* workspace.*/\1/p' \
  "$1"/include/aclnnop/*.h | sort)
listed=$(sed -nE 's/^\| `(aclnn[A-Za-z0-9]+)` \|.*/\1/p' "$1/README.md" | sort)
[ -n "$declared" ]
diff <(echo "$declared") <(echo "$listed")
