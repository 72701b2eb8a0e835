# The order of things at the start and at the end.
# shellcheck shell=bash

cluster_up() {
    local started=$EPOCHREALTIME STARTED=() others
    if everything_is_well; then
        say "already up and healthy; KUBECONFIG=$ADMIN_CONF"
        return
    fi
    preflight
    if [ "$NODES" = 1 ] && [ "$(cat -- "$RUN/nodes" 2>/dev/null)" = 2 ]; then die "this cluster has two nodes: run $0 down first"; fi
    build_tools
    others=$(cat -- "$RUN/tools" 2>/dev/null) || others=$TOOLS
    [ "$others" = "$TOOLS" ] || say "this cluster runs the programs of $others: its parts restart with those of $TOOLS; pods and objects stay"
    rm -f -- "$RUN/up"
    mkdir -p -- "$RUN" "$STATE"
    : >"$STATE_MARK"
    printf '%s\n' "$STATE" >"$RUN/state"
    printf '%s\n' "$TOOLS" >"$RUN/tools"
    printf '%s\n' "$NODES" >"$RUN/nodes"
    printf '%s\n' "$TIMERS" >"$RUN/timers"
    heal_link
    write_configs
    clear_after_crash
    kill_strays
    make_bridge
    change_settings
    change_packet_filter
    make_cgroups
    start_parts
    await_node
    if [ "$NODES" = 2 ]; then node2_await; fi
    : >"$RUN/up"
    say "up in $(seconds_since "$started") s (started: ${STARTED[*]:-nothing}); KUBECONFIG=$ADMIN_CONF"
}

start_parts() {
    ensure containerd etcd
    part_await etcd
    ensure kube-apiserver
    part_await containerd
    import_pause
    part_await kube-apiserver
    kubectl_admin apply --validate=false -f "$HERE/config/cluster.yaml" >"$LOGS/apply.log" 2>&1 ||
        { tail -n 3 -- "$LOGS/apply.log" >&2 && die "the API server refused $HERE/config/cluster.yaml"; }
    ensure kube-controller-manager kube-scheduler coredns kubelet kube-proxy host-agent
    if [ "$NODES" = 2 ]; then node2_start; fi
    local part
    for part in "${PARTS[@]}"; do part_await "$part"; done
}

import_pause() {
    ctr --address "$CONTAINERD_SOCKET" -n k8s.io images import "$TOOLS/pause.tar" >"$LOGS/import.log" 2>&1 ||
        { tail -n 3 -- "$LOGS/import.log" >&2 && die "containerd did not import $TOOLS/pause.tar"; }
}

# The API server still has the last kubelet's status, so wait for one of this kubelet; and `kubectl exec` works only
# when the kubelet knows its pods.
kubelet_has_reported() {
    local heartbeat since
    since=$(stat -c %Y -- "$RUN/kubelet.pid" 2>/dev/null) || return 1
    heartbeat=$(kubectl_admin get node "$NODE" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].lastHeartbeatTime}' 2>/dev/null) || return 1
    [ -n "$heartbeat" ] && [ "$(date -d "$heartbeat" +%s)" -ge "$since" ] || return 1
    [ -z "$(kubectl_admin get pods -A --field-selector "spec.nodeName=$NODE" -o name 2>/dev/null)" ] ||
        grep -q '"uid"' <<<"$(kubectl_admin get --raw "/api/v1/nodes/$NODE/proxy/pods" 2>/dev/null)"
}

# Ready, with its GPUs, and able to run a pod: without the service account none is admitted.
await_node() {
    local end=$((SECONDS + HANG_S))
    until kubelet_has_reported && [ "$(node_line)" = "True $GPUS" ]; do
        [ "$SECONDS" -lt "$end" ] || part_fail kubelet "did not make the node ready with $GPUS GPUs in $HANG_S s"
        sleep 0.3
    done
    until kubectl_admin -n default get serviceaccount default >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || part_fail kube-controller-manager "made no default service account in $HANG_S s"
        sleep 0.3
    done
}

cluster_down() {
    local started=$EPOCHREALTIME
    # Without our mark the chains KUBE-* and the folder's mounts may belong to another cluster.
    if [ ! -e "$RUN/state" ] && [ ! -e "$STATE_MARK" ]; then
        say "nothing of ours is here"
        return
    fi
    require_settings
    remove_everything
    say "down in $(seconds_since "$started") s"
}
