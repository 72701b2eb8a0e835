# The parts' configuration files, written at each start.
# shellcheck shell=bash

write_containerd_config() {
    write_file "$CONFIG/containerd.toml" <<END
version = 2
root = "$STATE/containerd"
state = "$RUN/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]

[grpc]
  address = "$CONTAINERD_SOCKET"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "$PAUSE_IMAGE"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  netns_mounts_under_state_dir = true
  # Without CAP_SYS_RESOURCE (root in a container, say) no sandbox starts otherwise.
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "$(cni_folder)"
  conf_dir = "$CONFIG/cni"
  max_conf_num = 1

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"
  default_runtime_name = "runc"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = false
  Root = "$RUN/runc"
END
}

cni_folder() {
    local folder
    for folder in /usr/lib/cni /opt/cni/bin; do
        if [ -x "$folder/bridge" ]; then
            printf '%s' "$folder"
            return
        fi
    done
}

# The bridge has its address and its masquerading from us (host.sh): one rule for all pods rather
# than a chain for each.
write_cni_config() {
    mkdir -p -- "$CONFIG/cni"
    write_file "$CONFIG/cni/10-torchkeeper.conflist" <<END
{"cniVersion": "0.4.0", "name": "torchkeeper", "plugins": [
  {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "ipMasq": false, "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "$STATE/leases", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "$POD_CIDR", "gateway": "$GATEWAY"}]]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}
]}
END
}

# A stub resolver on loopback serves the host, not a pod.
resolver_file() {
    if grep -q '^nameserver 127\.' /etc/resolv.conf 2>/dev/null && [ -s /run/systemd/resolve/resolv.conf ]; then
        printf /run/systemd/resolve/resolv.conf
    else
        printf /etc/resolv.conf
    fi
}

# The kubelet polls as rarely as the tests allow: it shares the cores with training.
write_kubelet_config() {
    write_file "$CONFIG/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_ADDRESS
healthzBindAddress: 127.0.0.1
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $PKI/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet-server.crt
tlsPrivateKeyFile: $PKI/kubelet-server.key
containerRuntimeEndpoint: unix://$CONTAINERD_SOCKET
clusterDNS: [$BRIDGE_ADDRESS]
clusterDomain: $DNS_DOMAIN
resolvConf: $(resolver_file)
podLogsDir: $STATE/pod-logs
volumePluginDir: $STATE/kubelet/volume-plugins
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%, imagefs.inodesFree: 0%}
volumeStatsAggPeriod: -1s
syncFrequency: 1m
maxPods: 200
$(kubelet_timers)
END
}

# How soon the API server notices a dead node: the controller manager's and the API server's part is in parts.sh.
kubelet_timers() {
    [ "$TIMERS" = default ] || printf 'nodeStatusUpdateFrequency: 2s\nnodeStatusReportFrequency: 2s\nnodeLeaseDurationSeconds: 8\n'
}

write_coredns_config() {
    local forward=""
    if grep -q '^nameserver' /etc/resolv.conf 2>/dev/null; then forward="forward . /etc/resolv.conf"; fi
    write_file "$CONFIG/Corefile" <<END
.:53 {
    bind $BRIDGE_ADDRESS
    ready 127.0.0.1:10261
    errors
    cache 30 $DNS_DOMAIN {
        disable success $DNS_DOMAIN
        disable denial $DNS_DOMAIN
    }
    kubernetes $DNS_DOMAIN in-addr.arpa ip6.arpa {
        kubeconfig $CONFIG/coredns.conf torchkeeper
        pods insecure
        ttl 1
    }
    $forward
}
END
}

write_node_configs() {
    mkdir -p -- "$CONFIG" "$LOGS" "$STATE/kubelet"
    chmod 0711 -- "$STATE"
    make_node_keys
    write_containerd_config
    write_cni_config
    write_kubelet_config
}

write_configs() {
    mkdir -p -- "$CONFIG" "$LOGS" "$VOLUMES"
    chmod 0711 -- "$VOLUMES"
    make_control_plane_keys
    make_service_keys
    write_node_configs
    write_coredns_config
    cp -- "$HERE/config/audit.yaml" "$CONFIG/audit.yaml"
}
