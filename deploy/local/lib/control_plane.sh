# The control plane's command lines and health, the same with a node (cluster) and without one (servers).
# Their settings: API_ADDRESS, API_PORT, API_URL, the ports of etcd and of the other two, and SERVERS, the folder of
# the Kubernetes programs of the version that runs.
# shellcheck shell=bash disable=SC2034  # COMMAND is for part.sh

# No fsync: data of a killed process are safe; only a power cut could lose them.
etcd_command() {
    local tls=(--cert-file="$PKI/etcd.crt" --key-file="$PKI/etcd.key" --trusted-ca-file="$PKI/ca.crt" --client-cert-auth
        --peer-cert-file="$PKI/etcd.crt" --peer-key-file="$PKI/etcd.key" --peer-trusted-ca-file="$PKI/ca.crt" --peer-client-cert-auth)
    local client=https://127.0.0.1:$ETCD_PORT peer=https://127.0.0.1:$ETCD_PEER_PORT
    COMMAND=("$TOOLS/etcd" --name=local --data-dir="$STATE/etcd" "${tls[@]}"
        --listen-client-urls="$client" --advertise-client-urls="$client"
        --listen-peer-urls="$peer" --initial-advertise-peer-urls="$peer"
        --initial-cluster=local="$peer" --listen-metrics-urls="http://127.0.0.1:$ETCD_METRICS_PORT"
        --unsafe-no-fsync --auto-compaction-retention=1h --quota-backend-bytes=2147483648 --log-level=warn)
}

apiserver_command() {
    COMMAND=("$SERVERS/kube-apiserver" --bind-address="$API_ADDRESS" --advertise-address="$API_ADDRESS" --secure-port="$API_PORT"
        --etcd-servers="https://127.0.0.1:$ETCD_PORT" --etcd-cafile="$PKI/ca.crt" --etcd-certfile="$PKI/etcd.crt" --etcd-keyfile="$PKI/etcd.key"
        --client-ca-file="$PKI/ca.crt" --tls-cert-file="$PKI/kube-apiserver.crt" --tls-private-key-file="$PKI/kube-apiserver.key"
        --service-account-issuer="https://kubernetes.default.svc.$DNS_DOMAIN" --service-account-key-file="$PKI/sa.pub"
        --service-account-signing-key-file="$PKI/sa.key" --service-cluster-ip-range="$SERVICE_CIDR"
        "--authorization-mode=Node,RBAC" --allow-privileged=true
        --requestheader-client-ca-file="$PKI/ca.crt" --requestheader-allowed-names=front-proxy-client
        --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group
        --requestheader-extra-headers-prefix=X-Remote-Extra-
        --proxy-client-cert-file="$PKI/front-proxy-client.crt" --proxy-client-key-file="$PKI/front-proxy-client.key"
        "--enable-admission-plugins=NodeRestriction,PodSecurity,OwnerReferencesPermissionEnforcement"
        --audit-policy-file="$CONFIG/audit.yaml" --audit-log-path="$LOGS/audit.log" --audit-log-maxsize=100 --audit-log-maxbackup=3
        --profiling=false)
}

controller_manager_command() {
    COMMAND=("$SERVERS/kube-controller-manager" --kubeconfig="$CONFIG/kube-controller-manager.conf" --bind-address=127.0.0.1
        --secure-port="$CONTROLLER_MANAGER_PORT" --root-ca-file="$PKI/ca.crt" --service-account-private-key-file="$PKI/sa.key"
        --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key"
        --use-service-account-credentials --flex-volume-plugin-dir="$STATE/kubelet/volume-plugins"
        --leader-elect=false --profiling=false)
}

scheduler_command() {
    COMMAND=("$SERVERS/kube-scheduler" --kubeconfig="$CONFIG/kube-scheduler.conf" --bind-address=127.0.0.1
        --secure-port="$SCHEDULER_PORT" --leader-elect=false --profiling=false)
}

# A part that starves answers late, one that does not run at once.
ask() {
    curl --noproxy '*' --silent --fail --max-time 60 --output /dev/null "$@"
}

control_plane_is_healthy() {
    case $1 in
    etcd) ask "http://127.0.0.1:$ETCD_METRICS_PORT/health" ;;
    kube-apiserver) ask --cacert "$PKI/ca.crt" "$API_URL/readyz" ;;
    kube-controller-manager) ask --insecure "https://127.0.0.1:$CONTROLLER_MANAGER_PORT/healthz" ;;
    kube-scheduler) ask --insecure "https://127.0.0.1:$SCHEDULER_PORT/healthz" ;;
    esac
}
