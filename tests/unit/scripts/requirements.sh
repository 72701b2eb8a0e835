#!/usr/bin/env bash
# requirements.sh TREE - each list of Python packages in the tree pins every one of them by version and hash, so that pip refuses others.
set -euo pipefail
cd "$1"
lists=0
while read -r list; do
    lists=$((lists + 1))
    # A line each, as pip joins them.
    if wrong=$(sed -e '/^#/d' -e ':more' -e '/\\$/{N;s/\\\n//;b more' -e '}' "$list" |
        grep -vE '^[a-z0-9][a-z0-9._-]*==[0-9][^ ]*( +--hash=sha256:[0-9a-f]{64})+ *$'); then
        printf '%s: expected NAME==VERSION and hashes, got %s\n' "$list" "$wrong" >&2
        exit 1
    fi
done < <(find . -name build -prune -o -name '*requirements.txt' -print)
[ "$lists" -ge 4 ]
