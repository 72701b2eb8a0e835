# Print one line for each reason not to start, before anything is changed.
# shellcheck shell=bash

readonly NEEDED_COMMANDS="containerd:containerd ctr:containerd runc:runc iptables:iptables ip:iproute2 ss:iproute2 openssl:openssl curl:curl socat:socat gcc:gcc"

require_root() {
    [ "$(id -u)" = 0 ] || die "you are not root: the cluster needs root for containers and the network; run it with sudo"
}

require_platform() {
    case $(uname -s)-$(uname -m) in
    Linux-x86_64 | Linux-aarch64) ;;
    *) die "this is $(uname -s) on $(uname -m): expected Linux on x86_64 or aarch64" ;;
    esac
}

require_settings() {
    case $GPUS in
    '' | *[!0-9]*) die "GPUS is '$GPUS': expected a number from 0 to 1024" ;;
    esac
    if [ "${#GPUS}" -gt 4 ] || [ "$GPUS" -gt 1024 ]; then die "GPUS is $GPUS: expected a number from 0 to 1024"; fi
    case $NODES in
    1 | 2) ;;
    *) die "NODES is '$NODES': expected 1 or 2" ;;
    esac
    case $TIMERS in
    default | short) ;;
    *) die "TIMERS is '$TIMERS': expected default or short" ;;
    esac
    [ "${#STATE}" -le 60 ] || die "TORCHKEEPER_STATE has ${#STATE} characters: expected at most 60, for the sockets below it"
    case $STATE in
    *[!A-Za-z0-9/._-]*) die "TORCHKEEPER_STATE is '$STATE': expected only letters, digits and / . _ -" ;;
    esac
    if [ -d "$STATE" ] && [ ! -e "$STATE_MARK" ] && [ -n "$(ls -A -- "$STATE")" ]; then
        die "TORCHKEEPER_STATE $STATE holds files of somebody else: expected an empty or a new folder"
    fi
    local other
    other=$(cat -- "$RUN/state" 2>/dev/null) || other=$STATE
    [ "$other" = "$STATE" ] || die "a cluster with its state in $other is here already: run TORCHKEEPER_STATE=$other $0 down"
}

require_commands() {
    local pair packages=""
    for pair in $NEEDED_COMMANDS; do
        command -v "${pair%%:*}" >/dev/null || packages+=" ${pair##*:}"
    done
    [ -n "$(cni_folder)" ] || packages+=" containernetworking-plugins"
    [ -e /usr/lib/gcc ] || packages+=" libc6-dev"
    [ -z "$packages" ] || die "missing programs: run apt-get install -y$(tr ' ' '\n' <<<"$packages" | sort -u | tr '\n' ' ' | sed 's/ *$//')"
}

# Free space for the first build and run; a machine that has the programs has what they took.
require_disk() {
    local path free used
    if tool_is_current hyperkube; then return; fi
    for path in "$STATE" "$REPO"; do
        while [ ! -e "$path" ]; do path=$(dirname -- "$path"); done
        free=$(df --output=avail -k -- "$path" | tail -n 1)
        used=$(du -sxk -- "$STATE" 2>/dev/null | cut -f 1) || true
        [ $((free + ${used:-0})) -ge $((DISK_NEEDED_GB * 1024 * 1024)) ] ||
            die "$path has $((free / 1024 / 1024)) GB free: expected $DISK_NEEDED_GB GB"
    done
}

# Another Kubernetes would share the packet filter's chains with ours, and each would remove the other's rules.
require_no_other_kubernetes() {
    local comm pid
    for comm in /proc/[0-9]*/comm; do
        pid=${comm#/proc/}
        pid=${pid%/comm}
        # A zombie has a name, but nothing else.
        process_start "$pid" >/dev/null || continue
        case $(cat -- "$comm" 2>/dev/null) in
        kubelet | kube-proxy | k3s | k3s-server | k0s | rke2)
            if ! grep -qzsE "$ANY_MARK" "/proc/$pid/environ"; then
                die "another Kubernetes runs here: $(cat -- "$comm"), pid $pid; stop it first"
            fi
            ;;
        esac
    done
}

require_network() {
    local route cidr
    route=$(ip -4 route show root "$POD_CIDR" 2>/dev/null | grep -v "dev $BRIDGE " | head -n 1) || true
    [ -z "$route" ] || die "the pods' network $POD_CIDR is in use here: $route"
    route=$(ip -4 route show root "$SERVICE_CIDR" 2>/dev/null | head -n 1) || true
    [ -z "$route" ] || die "the services' network $SERVICE_CIDR is in use here: $route"
    [ "$NODES" = 2 ] || return 0
    for cidr in "$NODE2_LINK_CIDR" "$NODE2_POD_CIDR"; do
        route=$(ip -4 route show root "$cidr" 2>/dev/null | grep -v "dev $NODE2 " | head -n 1) || true
        [ -z "$route" ] || die "the second node's network $cidr is in use here: $route"
    done
}

# A port of a part that runs is in use by right.
require_ports() {
    local entry part protocol address port line holder
    for entry in "${PORTS[@]}"; do
        read -r part protocol address port <<<"$entry"
        if part_pid "$part" >/dev/null; then continue; fi
        line=$(ss -Hnlp "--$protocol" "sport = :$port" | awk -v at="$address" -v port="$port" '
            $4 == at ":" port || $5 == at ":" port || $4 ~ /^(0\.0\.0\.0|\*|\[::\]):/ || $5 ~ /^(0\.0\.0\.0|\*|\[::\]):[0-9]/ { print; exit }')
        [ -n "$line" ] || continue
        holder=$(sed -n 's/.*users:(("\([^"]*\)",pid=\([0-9]*\).*/by \1, pid \2/p' <<<"$line")
        grep -qzsE "$ANY_MARK" "/proc/${holder##* }/environ" && continue
        die "port $address:$port/$protocol, which $part needs, is taken ${holder:-by an unknown process}"
    done
}

preflight() {
    require_platform
    require_settings
    require_commands
    require_disk
    require_no_other_kubernetes
    require_network
    require_ports
}
