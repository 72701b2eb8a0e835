# Each part's command line and health check.
# shellcheck shell=bash disable=SC2034  # COMMAND is for part.sh

# part_command PART: sets COMMAND.
part_command() {
    case $1 in
    containerd) COMMAND=(containerd --config "$CONFIG/containerd.toml" --log-level warn) ;;
    etcd) etcd_command ;;
    kube-apiserver)
        apiserver_command
        COMMAND+=(--kubelet-certificate-authority="$PKI/ca.crt" --kubelet-client-certificate="$PKI/kube-apiserver.crt"
            --kubelet-client-key="$PKI/kube-apiserver.key" --kubelet-preferred-address-types=InternalIP)
        [ "$TIMERS" = default ] || COMMAND+=(--default-not-ready-toleration-seconds=15 --default-unreachable-toleration-seconds=15)
        ;;
    kube-controller-manager)
        controller_manager_command
        [ "$TIMERS" = default ] || COMMAND+=(--node-monitor-grace-period=12s --node-monitor-period=2s --node-eviction-rate=1)
        ;;
    kube-scheduler) scheduler_command ;;
    coredns) COMMAND=("$TOOLS/coredns" -conf "$CONFIG/Corefile") ;;
    kubelet)
        COMMAND=("$TOOLS/kubelet" --config="$CONFIG/kubelet.yaml" --kubeconfig="$CONFIG/kubelet.conf"
            --root-dir="$STATE/kubelet" --cert-dir="$STATE/kubelet/pki" --hostname-override="$NODE"
            --node-ip="$NODE_ADDRESS" --housekeeping-interval=30s)
        ;;
    kube-proxy)
        # Do not change the host's conntrack settings: 0 means unchanged.
        COMMAND=("$TOOLS/kube-proxy" --kubeconfig="$CONFIG/kube-proxy.conf" --hostname-override="$NODE"
            --proxy-mode=iptables --detect-local-mode=BridgeInterface --pod-bridge-interface="$BRIDGE"
            --healthz-bind-address=127.0.0.1:10256 --metrics-bind-address=127.0.0.1:10249
            --nodeport-addresses="$NODE_ADDRESS/32" --iptables-localhost-nodeports=false
            --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s
            --oom-score-adj=0)
        ;;
    host-agent)
        COMMAND=("$TOOLS/host-agent" -kubeconfig "$CONFIG/host-agent.conf" -gpus "$GPUS"
            -volumes "$VOLUMES" -health 127.0.0.1:10262)
        ;;
    # The second node: killing this process kills its process 1, and so all that runs there.
    node2)
        COMMAND=(nsenter --net="$NODE2_NET" unshare --mount --propagation slave --pid --fork --mount-proc --kill-child
            bash "$HERE/lib/init.sh")
        ;;
    slow) COMMAND=(python3 "$HERE/lib/slow.py" "$SLOW_DEVICE" "$SLOW_MS") ;;
    esac
}

# part_environment PART: sets ENVIRONMENT. Only containerd fetches from outside, so only it (and the second
# node, for its own) gets the user's proxies; the mark lets a later run find a part, or a shim of it, without its pid file.
part_environment() {
    local name
    ENVIRONMENT=("PATH=$PATH:/usr/sbin:/sbin" "HOME=$STATE" "$MARK_NAME=$1")
    case $1 in
    containerd) ;;
    node2)
        ENVIRONMENT=("PATH=$PATH:/usr/sbin:/sbin" "HOME=$STATE" TORCHKEEPER_NODE2=init "TORCHKEEPER_STATE=$STATE" "GPUS=$GPUS"
            NODES=2 "TIMERS=$TIMERS")
        ;;
    *) return 0 ;;
    esac
    for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR; do
        if [ -n "${!name:-}" ]; then ENVIRONMENT+=("$name=${!name}"); fi
    done
}

# part_files PART: what else decides how the part runs.
part_files() {
    case $1 in
    containerd) printf '%s\n' "$CONFIG/containerd.toml" ;;
    coredns) printf '%s\n' "$CONFIG/Corefile" "$TOOLS/hyperkube.stamp" ;;
    kubelet) printf '%s\n' "$CONFIG/kubelet.yaml" "$TOOLS/hyperkube.stamp" ;;
    node2)
        printf '%s\n' "$STATE/node2/config/containerd.toml" "$STATE/node2/config/kubelet.yaml" "$TOOLS/hyperkube.stamp" \
            "$HERE/lib/init.sh" "$HERE/lib/parts.sh"
        ;;
    kube-apiserver) printf '%s\n' "$CONFIG/audit.yaml" "$TOOLS/hyperkube.stamp" ;;
    *) printf '%s\n' "$TOOLS/hyperkube.stamp" ;;
    esac
}

part_is_healthy() {
    case $1 in
    containerd) timeout 60 ctr --address "$CONTAINERD_SOCKET" version >/dev/null 2>&1 ;;
    etcd | kube-apiserver | kube-controller-manager | kube-scheduler) control_plane_is_healthy "$1" ;;
    coredns) ask http://127.0.0.1:10261/ready ;;
    kubelet) ask http://127.0.0.1:10248/healthz ;;
    kube-proxy) ask http://127.0.0.1:10256/healthz ;;
    host-agent) ask http://127.0.0.1:10262/healthz ;;
    esac
}
