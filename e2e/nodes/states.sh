#!/usr/bin/env bash
# states.sh - `cluster down` of two nodes leaves nothing behind, whatever was killed, cut or delayed before (root; no cluster is up).
set -euo pipefail
cd "$(dirname "$0")/../.."
export NODES=2 TIMERS=short
CLUSTER=deploy/local/cluster
[ ! -e /run/torchkeeper ] || { echo "states.sh: a cluster is up; run $CLUSTER down first" >&2 && exit 1; }

pod() { # a pod on the second node
    eval "$($CLUSTER env)"
    build/tools/kubectl run left --image=localhost/torchkeeper/pause:1 --overrides='{"spec": {"nodeName": "torchkeeper2"}}' >/dev/null
    build/tools/kubectl wait --for=condition=Ready pod/left --timeout=600s >/dev/null
}
kill_part() { # kill_part NAME: of the second node
    local environ
    # A process may end while we look.
    { grep -lzs "^TORCHKEEPER_NODE2=$1" /proc/[0-9]*/environ || true; } | while read -r environ; do
        if [ "$(cat "${environ%environ}comm")" = "$1" ]; then kill -KILL "$(tr -dc 0-9 <<<"$environ")"; fi
    done
}

states=(
    "$CLUSTER node 2 down"
    "$CLUSTER node 2 down && $CLUSTER node 2 up && $CLUSTER node 2 cut"
    "$CLUSTER node 2 cut api && $CLUSTER node 2 slow 30"
    "$CLUSTER node 2 slow 30 && $CLUSTER node 2 isolate && $CLUSTER node 2 heal && kill_part containerd"
    "rm /run/torchkeeper/node2.pid"
    "$CLUSTER node 2 slow 30 && kill -KILL \$(cut -d ' ' -f 1 /run/torchkeeper/slow.pid /run/torchkeeper/node2.pid)"
)
[ $# -eq 0 ] || states=("$@")
for state in "${states[@]}"; do
    printf '%s\n' "$state"
    $CLUSTER up
    pod
    eval "$state"
    e2e/down.sh
done
