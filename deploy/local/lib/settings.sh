# Names, addresses, ports and paths of the cluster. What a node has of its own is not readonly: use_node2 changes it.
# shellcheck shell=bash disable=SC2034  # the other parts read these

readonly BRIDGE=torchkeeper0
readonly BRIDGE_ADDRESS=10.200.0.1
readonly FIRST_POD_CIDR=10.200.0.0/22
# Every address of every node's pods, and of the nodes.
readonly ALL_PODS=10.200.0.0/20

NODE=torchkeeper
NODE_ADDRESS=$BRIDGE_ADDRESS
GATEWAY=$BRIDGE_ADDRESS
POD_CIDR=$FIRST_POD_CIDR

# The second node: its name is that of its cgroup and of the host's end of the link to it, too.
readonly NODE2=torchkeeper2
readonly NODE2_LINK_CIDR=10.200.4.0/30
readonly NODE2_HOST_ADDRESS=10.200.4.1
readonly NODE2_ADDRESS=10.200.4.2
readonly NODE2_GATEWAY=10.200.8.1
readonly NODE2_POD_CIDR=10.200.8.0/22
readonly SLOW_DEVICE=torchkeeperslow

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
readonly GPUS

readonly ADMIN_CONF=$STATE/admin.conf
readonly VOLUMES=$STATE/volumes
readonly STATE_MARK=$STATE/.torchkeeper-state

# Sockets and files that must not survive a reboot; a socket's path may have at most 107 bytes.
RUN=/run/torchkeeper
readonly LOCK=/run/torchkeeper.lock
# The second node's network namespace.
readonly NODE2_NET=$RUN/node2.net

# node_paths: what lies below STATE and RUN.
node_paths() {
    PKI=$STATE/pki CONFIG=$STATE/config LOGS=$STATE/logs CONTAINERD_SOCKET=$RUN/containerd.sock
}
node_paths
CGROUP=torchkeeper
# The variable that each process of a node has in its environment.
MARK_NAME=TORCHKEEPER_PART
MARK=^$MARK_NAME=
readonly ANY_MARK='^TORCHKEEPER_(PART|NODE2)='

# How many nodes, and Kubernetes' timers; what the running cluster has unless given.
NODES=${NODES:-$(cat -- "$RUN/nodes" 2>/dev/null || printf 1)}
TIMERS=${TIMERS:-$(cat -- "$RUN/timers" 2>/dev/null || printf default)}
readonly NODES TIMERS

# For a subshell: from here on, a node is the second one.
use_node2() {
    NODE=$NODE2 NODE_ADDRESS=$NODE2_ADDRESS GATEWAY=$NODE2_GATEWAY POD_CIDR=$NODE2_POD_CIDR CGROUP=$NODE2
    STATE=$STATE/node2 RUN=$RUN/node2
    node_paths
    MARK_NAME=TORCHKEEPER_NODE2
    MARK=^$MARK_NAME=
}

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
