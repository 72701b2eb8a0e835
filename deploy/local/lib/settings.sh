# Names, addresses, ports and paths of the one-node cluster; variables only.
# shellcheck shell=bash disable=SC2034  # the other parts read these

readonly NODE=torchkeeper
readonly BRIDGE=torchkeeper0
readonly BRIDGE_ADDRESS=10.200.0.1
readonly POD_CIDR=10.200.0.0/22

readonly SERVERS=$TOOLS
readonly API_ADDRESS=$BRIDGE_ADDRESS
readonly API_PORT=6443
readonly API_URL=https://$API_ADDRESS:$API_PORT
readonly ETCD_PORT=2379
readonly ETCD_PEER_PORT=2380
readonly ETCD_METRICS_PORT=2381
readonly CONTROLLER_MANAGER_PORT=10257
readonly SCHEDULER_PORT=10259
readonly BESIDE_PORT=10270 # and three more: kueue, coscheduling

# The most space that the cluster, its images and the first build have used, plus test images.
readonly DISK_NEEDED_GB=15
readonly PAUSE_IMAGE=localhost/torchkeeper/pause:1

GPUS=${GPUS:-8}
STATE=$(realpath -m -- "${TORCHKEEPER_STATE:-/var/lib/torchkeeper}")
readonly GPUS STATE

readonly PKI=$STATE/pki
readonly CONFIG=$STATE/config
readonly LOGS=$STATE/logs
readonly VOLUMES=$STATE/volumes
readonly STATE_MARK=$STATE/.torchkeeper-state
readonly MARK=^TORCHKEEPER_PART=

# Sockets and files that must not survive a reboot; a socket's path may have at most 107 bytes.
readonly RUN=/run/torchkeeper
readonly LOCK=/run/torchkeeper.lock
readonly CONTAINERD_SOCKET=$RUN/containerd.sock
readonly CGROUP=torchkeeper

# In the order in which they start; the first three wait for one another, the rest do not.
readonly PARTS=(containerd etcd kube-apiserver kube-controller-manager kube-scheduler coredns kubelet kube-proxy host-agent)

# part, protocol, address and port, for each listening socket.
readonly PORTS=(
    "etcd tcp 127.0.0.1 $ETCD_PORT"
    "etcd tcp 127.0.0.1 $ETCD_PEER_PORT"
    "etcd tcp 127.0.0.1 $ETCD_METRICS_PORT"
    "kube-apiserver tcp $API_ADDRESS $API_PORT"
    "kube-controller-manager tcp 127.0.0.1 $CONTROLLER_MANAGER_PORT"
    "kube-scheduler tcp 127.0.0.1 $SCHEDULER_PORT"
    "coredns tcp $BRIDGE_ADDRESS 53"
    "coredns udp $BRIDGE_ADDRESS 53"
    "coredns tcp 127.0.0.1 10261"
    "kubelet tcp $BRIDGE_ADDRESS 10250"
    "kubelet tcp 127.0.0.1 10248"
    "kube-proxy tcp 127.0.0.1 10249"
    "kube-proxy tcp 127.0.0.1 10256"
    "host-agent tcp 127.0.0.1 10262"
)
