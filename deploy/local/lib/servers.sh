# A control plane without a node: its settings, its parts, its start and its end.
# shellcheck shell=bash disable=SC2034  # control_plane.sh and keys.sh read the settings

# One block of ports for each: API server, etcd (3), controller manager, scheduler, two of the tests, four of what runs beside. Below
# the kernel's own choices.
readonly FIRST_BLOCK=20000 BLOCKS=1000 BLOCK_PORTS=12
readonly API_ADDRESS=127.0.0.1
readonly ALL_PARTS=(etcd kube-apiserver kube-controller-manager kube-scheduler)

# versions: each minor version that can run, and its release.
versions() {
    local mod
    for mod in "$HERE/hyperkube/go.mod" "$HERE"/kubernetes/versions/*.mod; do
        kubernetes_version "$mod"
    done | sort -V | sed 's/^v\([0-9]*\.[0-9]*\)\..*/\1 &/'
}

use_folder() {
    [ "${#1}" -gt 0 ] || usage_error "expected the folder of the servers"
    STATE=$(realpath -m -- "$1")
    case $STATE in
    *[!A-Za-z0-9/._-]*) die "the folder is '$STATE': expected only letters, digits and / . _ -" ;;
    /) die "the folder is /: expected one of its own" ;;
    esac
    PKI=$STATE/pki CONFIG=$STATE/config LOGS=$STATE/logs RUN=$STATE/run
    STATE_MARK=$STATE/.torchkeeper-servers
    MARK="^TORCHKEEPER_SERVERS=${STATE//./\\.}\$"
    if [ -d "$STATE" ] && [ ! -e "$STATE_MARK" ] && [ -n "$(ls -A -- "$STATE")" ]; then
        die "$STATE holds files of somebody else: expected an empty or a new folder"
    fi
}

use_version() {
    local known
    known=$(versions | awk -v minor="$1" '$1 == minor { print $2 }')
    [ -n "$known" ] || die "--version is '$1': expected one of $(versions | cut -d ' ' -f 1 | paste -sd ' ')"
    RELEASE=$known
    if [ "$RELEASE" = "$KUBERNETES_VERSION" ]; then SERVERS=$TOOLS; else SERVERS=$TOOLS/v$1; fi
}

use_port() {
    case $1 in
    '' | *[!0-9]*) die "--port is '$1': expected a number from 1024 to 65524" ;;
    esac
    if [ "${#1}" -gt 5 ] || [ "$1" -lt 1024 ] || [ "$1" -gt 65524 ]; then die "--port is $1: expected a number from 1024 to 65524"; fi
    API_PORT=$1
    API_URL=https://$API_ADDRESS:$API_PORT
    ETCD_PORT=$((API_PORT + 1)) ETCD_PEER_PORT=$((API_PORT + 2)) ETCD_METRICS_PORT=$((API_PORT + 3))
    CONTROLLER_MANAGER_PORT=$((API_PORT + 4)) SCHEDULER_PORT=$((API_PORT + 5)) BESIDE_PORT=$((API_PORT + 8))
}

# free_block: the first port of a block of free ports.
free_block() {
    local port taken
    taken=$(ss -Htnl | awk '{ sub(/.*:/, "", $4); print $4 }')
    for _ in {1..100}; do
        port=$((FIRST_BLOCK + (RANDOM % BLOCKS) * BLOCK_PORTS))
        if ! awk -v first="$port" -v count="$BLOCK_PORTS" '$1 >= first && $1 < first + count { exit 1 }' <<<"$taken"; then continue; fi
        printf '%s' "$port"
        return
    done
    die "found no $BLOCK_PORTS free ports in a row from $FIRST_BLOCK on: give --port"
}

# A port of a part that runs is in use by right.
require_free_ports() {
    local part port
    while read -r part port; do
        if part_pid "$part" >/dev/null; then continue; fi
        [ -z "$(ss -Htnl "sport = :$port")" ] || die "port $port, which $part needs, is taken: give another --port"
    done <<END
etcd $ETCD_PORT
etcd $ETCD_PEER_PORT
etcd $ETCD_METRICS_PORT
kube-apiserver $API_PORT
kube-controller-manager $CONTROLLER_MANAGER_PORT
kube-scheduler $SCHEDULER_PORT
END
}

part_command() {
    case $1 in
    etcd) etcd_command ;;
    kube-apiserver)
        apiserver_command
        # The API server refuses an endpoint on loopback, so turn off its writing.
        COMMAND+=(--endpoint-reconciler-type=none "${APISERVER_ARGUMENTS[@]}")
        ;;
    kube-controller-manager)
        controller_manager_command
        COMMAND+=(--terminated-pod-gc-threshold=0) # tests count finished pods: none goes by itself
        ;;
    kube-scheduler) scheduler_command ;;
    esac
}

part_environment() {
    ENVIRONMENT=("PATH=$PATH" "HOME=$STATE" "TORCHKEEPER_SERVERS=$STATE")
}

part_files() {
    local stamp=$TOOLS/hyperkube.stamp
    if [ "$1" != etcd ] && [ "$SERVERS" != "$TOOLS" ]; then stamp=$TOOLS/kubernetes-${SERVERS##*/v}.stamp; fi
    printf '%s\n' "$stamp" "$CONFIG/audit.yaml"
}

part_is_healthy() {
    control_plane_is_healthy "$1"
}

require_server_commands() {
    local pair packages=""
    for pair in openssl:openssl curl:curl ss:iproute2 setsid:util-linux; do
        command -v "${pair%%:*}" >/dev/null || packages+=" ${pair##*:}"
    done
    [ -z "$packages" ] || die "missing programs: run apt-get install -y$packages"
}

build_servers() {
    local name=kubernetes-${SERVERS##*/v}
    # etcd and kubectl are the same for every version; build only what is needed.
    if ! tool_is_current hyperkube || ! [ -x "$TOOLS/etcd" ]; then
        lock_tools
        build_hyperkube
        unlock_tools
    fi
    [ "$SERVERS" = "$TOOLS" ] && return
    if ! tool_is_current "$name"; then
        lock_tools
        build_tool "$name" "Kubernetes $RELEASE: about 4 minutes the first time on 2 cores"
        unlock_tools
    fi
    link_parts "../$name" "$SERVERS" kube-apiserver kube-controller-manager kube-scheduler
}

# Use the settings of an earlier `up` of this folder, unless this one changes them.
recall() {
    cat -- "$CONFIG/$1" 2>/dev/null
}

prepare_folder() {
    mkdir -p -- "$STATE" "$CONFIG" "$LOGS" "$RUN"
    : >"$STATE_MARK"
    # The address is part of them.
    if [ "$(recall port)" != "$API_PORT" ]; then rm -f -- "$STATE/admin.conf" "$CONFIG"/*.conf; fi
    printf '%s\n' "$API_PORT" | write_file "$CONFIG/port"
    versions | awk -v release="$RELEASE" '$2 == release { print $1 }' | write_file "$CONFIG/version"
    make_control_plane_keys
    cp -- "$HERE/config/audit.yaml" "$CONFIG/audit.yaml"
}

# If the start fails, stop all parts; the logs stay.
stop_servers() {
    local pids
    mapfile -t pids < <(marked_pids)
    kill_all "${pids[@]}"
}

lock_ports() {
    exec 8<"$HERE/lib/servers.sh"
    flock 8
}

# A controller manager answers before it has created the service account that a pod needs.
await_service_account() {
    local end=$((SECONDS + HANG_S))
    until "$TOOLS/kubectl" --kubeconfig "$STATE/admin.conf" -n default get serviceaccount default >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || part_fail kube-controller-manager "made no default service account in $HANG_S s"
        sleep 0.2
    done
}

# servers_up PORT PART...: no port is the one as before, or a free one.
servers_up() {
    local port=$1 part started=$EPOCHREALTIME STARTED=()
    shift
    trap 'rmdir -- "$STATE" 2>/dev/null || true' EXIT # remove an empty folder
    build_servers
    lock_ports # until the parts listen, so that no other run chooses the same ports
    use_port "${port:-$(recall port || free_block)}"
    require_free_ports
    prepare_folder
    trap 'stop_servers' EXIT
    for part in "${ALL_PARTS[@]}"; do
        case " etcd kube-apiserver $* " in
        *" $part "*) ;;
        *) part_stop "$part" ;;
        esac
    done
    ensure etcd
    part_await etcd
    ensure kube-apiserver
    part_await kube-apiserver
    ensure "$@"
    exec 8<&-
    for part in "$@"; do part_await "$part"; done
    case " $* " in
    *" kube-controller-manager "*) await_service_account ;;
    esac
    trap - EXIT
    say "Kubernetes $RELEASE is up in $(seconds_since "$started") s (started: ${STARTED[*]:-nothing}); KUBECONFIG=$STATE/admin.conf"
}

servers_down() {
    if [ ! -e "$STATE_MARK" ]; then
        say "nothing of ours is in $STATE"
        return
    fi
    stop_servers
    # Remove the mark last: after an interruption it shows that the rest is ours.
    find "$STATE" -xdev -mindepth 1 -maxdepth 1 ! -path "$STATE_MARK" -exec rm -rf --one-file-system -- {} +
    rm -f -- "$STATE_MARK"
    rmdir -- "$STATE"
    say "$STATE is down"
}
