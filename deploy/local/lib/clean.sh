# Remove the remains of a crash or a `down`. Every function may run twice.
# shellcheck shell=bash

# our_mounts: deepest first. The kernel writes odd characters as \ooo.
our_mounts() {
    local path
    awk '{ print $5 }' /proc/self/mountinfo | while read -r path; do
        path=$(printf '%b' "${path//\\/\\0}")
        case $path in
        "$NODE2_NET") ;; # its processes live in it
        "$STATE"/* | "$RUN"/*) printf '%s\n' "$path" ;;
        esac
    done | sort -r
}

unmount_all() {
    local path
    while read -r path; do
        umount -- "$path" 2>/dev/null || umount -l -- "$path" 2>/dev/null || true
    done < <(our_mounts)
    [ -z "$(our_mounts)" ] || die "cannot unmount $(our_mounts | head -n 1)"
}

shim_pids() {
    local pid
    for pid in $(marked_pids); do
        if tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -- 'containerd-shim.*-address '"$CONTAINERD_SOCKET" >/dev/null; then
            printf '%s\n' "$pid"
        fi
    done
}

# Remove all pods with their containers and mounts; the control plane stays.
clear_pods() {
    local pids
    mapfile -t pids < <(shim_pids)
    kill_all "${pids[@]}"
    # A killed process may leave a new child, so repeat until none is left.
    for _ in 1 2 3 4 5; do
        mapfile -t pids < <(pod_pids)
        [ ${#pids[@]} -gt 0 ] || break
        kill_all "${pids[@]}"
    done
    unmount_all
    remove_ports
    rm -rf --one-file-system -- "$RUN/containerd" "$RUN/runc" "$STATE/leases"
    remove_network_notes
    remove_dead_sockets
}

# The CNI plugins' records of our pods, and those of the same pods' loopback, which has another name.
remove_network_notes() {
    local note id
    for note in /var/lib/cni/results/torchkeeper-*; do
        id=${note#*/torchkeeper-}
        rm -f -- "$note" "/var/lib/cni/results/cni-loopback-${id%-eth0}-lo"
    done
}

# The pods' ends of the bridge; those whose network namespace is gone went with it.
remove_ports() {
    local port
    for port in "/sys/class/net/$BRIDGE/brif"/*; do
        if [ -e "$port" ]; then ip link delete "${port##*/}" 2>/dev/null || true; fi
    done
}

# containerd puts the sockets of all shims here, also of other containerds, and each kubelet its device socket: remove
# only sockets that no process has open.
remove_dead_sockets() {
    local path
    for path in /run/containerd/s/* /var/lib/kubelet/device-plugins/kubelet.sock; do
        if [ -S "$path" ] && ! grep -q -F -- "$path" /proc/net/unix; then rm -f -- "$path"; fi
    done
    rmdir -- /run/containerd/s /run/containerd /var/lib/kubelet/device-plugins /var/lib/kubelet 2>/dev/null || true
}

remove_log_links() {
    local link
    for link in /var/log/containers/*; do
        case $(readlink -- "$link" 2>/dev/null || true) in
        "$STATE"/*) rm -f -- "$link" ;;
        esac
    done
    rmdir -- /var/log/containers /var/lib/cni/results /var/lib/cni 2>/dev/null || true
}

# After a crash of everything, or a reboot: containerd and its shims have ended, but their mounts remain.
clear_after_crash() {
    local shims
    mapfile -t shims < <(shim_pids)
    if part_pid containerd >/dev/null && bridge_exists; then return; fi
    if [ ${#shims[@]} -gt 0 ] && bridge_exists; then return; fi
    part_stop kubelet
    part_stop containerd
    kill_strays
    clear_pods
}

# Parts that an interrupted run started without writing a pid file.
kill_strays() {
    local pid part known pids=()
    for pid in $(marked_pids); do
        known=
        for part in "${PARTS[@]}" slow kueue coscheduling; do
            if [ "$(part_pid "$part")" = "$pid" ]; then known=1; fi
        done
        if [ -z "$known" ] && ! grep -qx -- "$pid" < <(shim_pids); then pids+=("$pid"); fi
    done
    kill_all "${pids[@]}"
}

remove_everything() {
    local pids part
    remove_node2
    # The kubelet first: it would restart stopped containers.
    for part in kubelet containerd; do part_kill "$part"; done
    clear_pods
    mapfile -t pids < <(marked_pids)
    kill_all "${pids[@]}"
    restore_packet_filter
    remove_bridge
    remove_cgroups
    restore_settings
    remove_log_links
    unmount_all
    remove_state
    rm -rf --one-file-system -- "$RUN"
}

# Remove the mark last: after an interruption it shows that the rest is ours.
remove_state() {
    [ -e "$STATE_MARK" ] || return 0
    find "$STATE" -xdev -mindepth 1 -maxdepth 1 ! -path "$STATE_MARK" -exec rm -rf --one-file-system -- {} +
    rm -f -- "$STATE_MARK"
    rmdir -- "$STATE" 2>/dev/null || true
}

part_kill() {
    local pid
    pid=$(part_pid "$1") || return 0
    kill_all "$pid"
}
