# The second node: a tree of processes in namespaces of its own (network, mounts, processes) behind a routed link. On the host
# it is one part, `node2`; its process 1 is init.sh.
# shellcheck shell=bash

in_node2_network() {
    nsenter --net="$NODE2_NET" "$@"
}

make_node2_network() {
    if ! mountpoint -q -- "$NODE2_NET"; then
        : >"$NODE2_NET"
        unshare --net="$NODE2_NET" true
    fi
    if ! ip link show dev "$NODE2" >/dev/null 2>&1; then
        ip link add "$NODE2" type veth peer name uplink netns "$NODE2_NET"
    fi
    ip address replace "$NODE2_HOST_ADDRESS/${NODE2_LINK_CIDR#*/}" dev "$NODE2"
    ip link set "$NODE2" up
    in_node2_network ip address replace "$NODE2_ADDRESS/${NODE2_LINK_CIDR#*/}" dev uplink
    in_node2_network ip link set uplink up
    in_node2_network ip route replace default via "$NODE2_HOST_ADDRESS"
    ip route replace "$NODE2_POD_CIDR" via "$NODE2_ADDRESS" dev "$NODE2"
}

# Its certificates are signed by the cluster's authority, a copy of which is with them.
write_node2_configs() (
    local authority=$PKI
    use_node2
    mkdir -p -- "$PKI" "$RUN"
    chmod 0700 -- "$PKI"
    if ! cmp -s -- "$authority/ca.crt" "$PKI/ca.crt"; then
        rm -f -- "$PKI"/*
        cp -p -- "$authority/ca.key" "$authority/ca.crt" "$PKI/"
    fi
    write_node_configs
    make_cgroups
)

# node2_start: leaves a node alone that runs as it would be started now.
node2_start() {
    write_node2_configs
    make_node2_network
    if part_is_current node2; then return; fi
    node2_kill
    (use_node2 && rm -rf --one-file-system -- "$RUN" "$STATE/leases" && mkdir -p -- "$RUN")
    mkdir -p -- /var/lib/kubelet /var/log/containers /var/lib/cni /run/containerd
    part_start node2
    STARTED+=(node2)
}

node2_await() (
    local end=$((SECONDS + HANG_S))
    part_pid node2 >/dev/null || part_fail node2 "ended at its start"
    use_node2
    until part_is_healthy containerd; do
        [ "$SECONDS" -lt "$end" ] || part_fail containerd "is not healthy after $HANG_S s"
        sleep 0.1
    done
    import_pause
    await_node
)

# Everything of the node at once, like a power cut.
node2_kill() {
    local pids
    part_kill node2
    for _ in 1 2 3 4 5; do
        mapfile -t pids < <(use_node2 && { marked_pids || true; } && pod_pids)
        [ ${#pids[@]} -gt 0 ] || break
        kill_all "${pids[@]}"
    done
    rm -f -- "$RUN/node2.pid"
}

remove_node2() {
    node2_kill
    heal_link
    ip link delete "$NODE2" 2>/dev/null || true
    if mountpoint -q -- "$NODE2_NET"; then umount -- "$NODE2_NET"; fi
    (use_node2 && remove_cgroups)
}

require_node2() {
    if [ ! -e "$RUN/up" ] || [ "$(cat -- "$RUN/nodes")" != 2 ]; then die "there is no second node: run NODES=2 $0 up first"; fi
}

# node2_verb VERB [WORD]
node2_verb() {
    local started=$EPOCHREALTIME STARTED=()
    case $1 in
    # The link first: a machine without power answers nothing, while this kernel would reset the connections.
    down)
        cut_link all
        node2_kill
        ;;
    up)
        [ -n "$(part_pid node2)" ] || heal_link
        node2_start
        node2_await
        ;;
    cut) cut_link "${2:-all}" ;;
    isolate) cut_link isolate ;;
    slow) slow_link "$2" ;;
    heal) heal_link ;;
    esac
    say "node 2: $* done in $(seconds_since "$started") s"
}
