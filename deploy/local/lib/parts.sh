# What each part is: its command line, and how it shows that it is healthy.
# shellcheck shell=bash disable=SC2034  # COMMAND is for part.sh

# part_command PART: sets COMMAND.
part_command() {
    case $1 in
    containerd) COMMAND=(containerd --config "$CONFIG/containerd.toml" --log-level warn) ;;
    etcd) etcd_command ;;
    kube-apiserver) apiserver_command ;;
    kube-controller-manager) controller_manager_command ;;
    kube-scheduler)
        COMMAND=("$TOOLS/kube-scheduler" --kubeconfig="$CONFIG/kube-scheduler.conf" --bind-address=127.0.0.1
            --leader-elect=false --profiling=false)
        ;;
    coredns) COMMAND=("$TOOLS/coredns" -conf "$CONFIG/Corefile") ;;
    kubelet)
        COMMAND=("$TOOLS/kubelet" --config="$CONFIG/kubelet.yaml" --kubeconfig="$CONFIG/kubelet.conf"
            --root-dir="$STATE/kubelet" --cert-dir="$STATE/kubelet/pki" --hostname-override="$NODE"
            --node-ip="$BRIDGE_ADDRESS" --housekeeping-interval=30s)
        ;;
    kube-proxy)
        # The conntrack settings of the host stay as they are: 0 means hands off.
        COMMAND=("$TOOLS/kube-proxy" --kubeconfig="$CONFIG/kube-proxy.conf" --hostname-override="$NODE"
            --proxy-mode=iptables --detect-local-mode=BridgeInterface --pod-bridge-interface="$BRIDGE"
            --healthz-bind-address=127.0.0.1:10256 --metrics-bind-address=127.0.0.1:10249
            --nodeport-addresses="$BRIDGE_ADDRESS/32" --iptables-localhost-nodeports=false
            --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s
            --oom-score-adj=0)
        ;;
    host-agent)
        COMMAND=("$TOOLS/host-agent" -kubeconfig "$CONFIG/host-agent.conf" -node "$NODE" -gpus "$GPUS"
            -volumes "$VOLUMES" -health 127.0.0.1:10262)
        ;;
    esac
}

# No fsync: what a killed process wrote is safe, and so is this data after anything but a power cut.
etcd_command() {
    local tls=(--cert-file="$PKI/etcd.crt" --key-file="$PKI/etcd.key" --trusted-ca-file="$PKI/ca.crt" --client-cert-auth
        --peer-cert-file="$PKI/etcd.crt" --peer-key-file="$PKI/etcd.key" --peer-trusted-ca-file="$PKI/ca.crt" --peer-client-cert-auth)
    COMMAND=("$TOOLS/etcd" --name=local --data-dir="$STATE/etcd" "${tls[@]}"
        --listen-client-urls=https://127.0.0.1:2379 --advertise-client-urls=https://127.0.0.1:2379
        --listen-peer-urls=https://127.0.0.1:2380 --initial-advertise-peer-urls=https://127.0.0.1:2380
        --initial-cluster=local=https://127.0.0.1:2380 --listen-metrics-urls=http://127.0.0.1:2381
        --unsafe-no-fsync --auto-compaction-retention=1h --quota-backend-bytes=2147483648 --log-level=warn)
}

apiserver_command() {
    COMMAND=("$TOOLS/kube-apiserver" --bind-address="$BRIDGE_ADDRESS" --advertise-address="$BRIDGE_ADDRESS" --secure-port="$API_PORT"
        --etcd-servers=https://127.0.0.1:2379 --etcd-cafile="$PKI/ca.crt" --etcd-certfile="$PKI/etcd.crt" --etcd-keyfile="$PKI/etcd.key"
        --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/kube-apiserver.crt" --tls-private-key-file="$PKI/kube-apiserver.key"
        --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-client-certificate="$PKI/kube-apiserver.crt"
        --kubelet-client-key="$PKI/kube-apiserver.key" --kubelet-preferred-address-types=InternalIP
        --service-account-issuer="https://kubernetes.default.svc.$DNS_DOMAIN" --service-account-key-file="$PKI/sa.pub"
        --service-account-signing-key-file="$PKI/sa.key" --service-cluster-ip-range="$SERVICE_CIDR"
        "--authorization-mode=Node,RBAC" --allow-privileged=true
        "--enable-admission-plugins=NodeRestriction,PodSecurity,OwnerReferencesPermissionEnforcement"
        --audit-policy-file="$CONFIG/audit.yaml" --audit-log-path="$LOGS/audit.log" --audit-log-maxsize=100 --audit-log-maxbackup=3
        --profiling=false)
}

controller_manager_command() {
    COMMAND=("$TOOLS/kube-controller-manager" --kubeconfig="$CONFIG/kube-controller-manager.conf" --bind-address=127.0.0.1
        --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key"
        --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key"
        --use-service-account-credentials --flex-volume-plugin-dir="$STATE/kubelet/volume-plugins"
        --leader-elect=false --profiling=false)
}

# part_environment PART: sets ENVIRONMENT. Only containerd fetches from outside, so only it gets
# the user's proxies; the mark lets a later run find a part, or a shim of it, without its pid file.
part_environment() {
    local name
    ENVIRONMENT=("PATH=$PATH:/usr/sbin:/sbin" "HOME=$STATE" "TORCHKEEPER_PART=$1")
    [ "$1" = containerd ] || return 0
    for name in HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR; do
        if [ -n "${!name:-}" ]; then ENVIRONMENT+=("$name=${!name}"); fi
    done
}

ask() {
    curl --noproxy '*' --silent --fail --max-time 3 --output /dev/null "$@"
}

part_is_healthy() {
    case $1 in
    containerd) timeout 5 ctr --address "$CONTAINERD_SOCKET" version >/dev/null 2>&1 ;;
    etcd) ask http://127.0.0.1:2381/health ;;
    kube-apiserver) ask --cacert "$PKI/ca.crt" "$API_URL/readyz" ;;
    kube-controller-manager) ask --insecure https://127.0.0.1:10257/healthz ;;
    kube-scheduler) ask --insecure https://127.0.0.1:10259/healthz ;;
    coredns) ask http://127.0.0.1:10261/ready ;;
    kubelet) ask http://127.0.0.1:10248/healthz ;;
    kube-proxy) ask http://127.0.0.1:10256/healthz ;;
    host-agent) ask http://127.0.0.1:10262/healthz ;;
    esac
}
