#!/usr/bin/env bash
# down.sh - `cluster down` must leave nothing of ours on the machine; lists what it finds and fails otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
deploy/local/cluster down

left() {
    local environ
    for environ in /proc/[0-9]*/environ; do
        if grep -qzsE '^TORCHKEEPER_(PART|NODE2)=' "$environ"; then
            echo "process ${environ//[^0-9]/}"
        fi
    done
    grep -o ' /[^ ]*torchkeeper/[^ ]*' /proc/self/mounts | grep -v "$PWD" | sed 's/^/mount/' || true
    ip -brief link | grep -i torchkeeper | sed 's/^/link /' || true
    ip rule | grep torchkeeper | sed 's/^/routing rule /' || true
    iptables-save | grep -E 'KUBE|CNI|TORCHKEEPER' | sed 's/^/rule /' || true
    find /sys/fs/cgroup -maxdepth 2 -name 'torchkeeper*' | sed 's/^/cgroup /'
    find /var/lib/torchkeeper /run/torchkeeper -maxdepth 0 2>/dev/null | sed 's/^/folder /' || true
}

found=$(left)
[ -z "$found" ] || {
    printf 'cluster down left behind:\n%s\n' "$found" >&2
    exit 1
}
echo "cluster down left nothing behind"
