#!/usr/bin/env bash
# Process 1 of the second node: makes its mounts and its network, starts its parts, and starts each again that ends.
set -euo pipefail
export LC_ALL=C

HERE=$(dirname -- "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")")
readonly HERE
for file in basics settings say control_plane parts part host clean; do
    # shellcheck source=/dev/null
    . "$HERE/lib/$file.sh"
done
[ $$ = 1 ] || die "only the second node's process 1 runs this: $HERE/cluster node 2 up"

# A copy of the first node's mounts would keep its pods' networks alive.
unmount_all
use_node2
# Paths that kubelet, CNI plugins and containerd's shims have by heart.
for folder in /var/lib/kubelet /var/log/containers /var/lib/cni /run/containerd; do
    mount -t tmpfs none "$folder"
done
mount --bind "$STATE" "$STATE"
mount --make-shared "$STATE"
ip link set lo up
change_settings
make_bridge

part_start containerd
until part_is_healthy containerd; do sleep 0.05; done
while :; do
    for part in containerd kubelet kube-proxy; do
        part_pid "$part" >/dev/null || part_start "$part"
    done
    wait -n || true
    sleep 1
done
