# What runs, and whether it is well.
# shellcheck shell=bash

kubectl_admin() {
    "$TOOLS/kubectl" --kubeconfig "$ADMIN_CONF" --request-timeout=60s "$@"
}

# node_line [NODE]: "True 8" for a ready node with 8 GPUs.
node_line() {
    kubectl_admin get node "${1:-$NODE}" -o \
        'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.allocatable.nvidia\.com/gpu}' 2>/dev/null
}

# Check the health of all parts at once: each answer is a file, "ok" or empty.
probe_parts() {
    local part
    for part in "${PARTS[@]}"; do
        (if part_is_healthy "$part"; then printf ok >"$1/$part"; fi) 9>&- &
    done
    (node_line >"$1/node" || true) 9>&- &
    [ "$NODES" = 1 ] || (node_line "$NODE2" >"$1/node2" || true) 9>&- &
    wait
}

# everything_is_well: all parts healthy, the node ready with its GPUs.
everything_is_well() {
    local part answers result=0
    [ -e "$ADMIN_CONF" ] && [ -e "$RUN/up" ] && bridge_exists || return 1
    tool_is_current hyperkube || return 1
    for part in "${PARTS[@]}"; do
        part_is_current "$part" || return 1
    done
    [ "$NODES" = 1 ] || part_is_current node2 || return 1
    answers=$(mktemp -d)
    probe_parts "$answers"
    for part in "${PARTS[@]}"; do
        [ -s "$answers/$part" ] || result=1
    done
    [ "$(cat -- "$answers/node")" = "True $GPUS" ] || result=1
    [ "$NODES" = 1 ] || [ "$(cat -- "$answers/node2")" = "True $GPUS" ] || result=1
    rm -rf -- "$answers"
    return "$result"
}

# The parts are one binary, so their resident sizes overlap.
proportional_kb() {
    awk '/^Pss:/ { kb = $2 } END { print kb + 0 }' "/proc/$1/smaps_rollup" 2>/dev/null || printf 0
}

# print_node NODE FILE: FILE has its node_line.
print_node() {
    local ready="" count=""
    read -r ready count <"$2" || true
    [ "$ready" = True ] || { printf 'node %s: not ready; ' "$1" && return 1; }
    printf 'node %s: Ready, %s GPUs; ' "$1" "${count:-0}"
}

print_status() {
    local part pid rss health answers result=0 total=0
    answers=$(mktemp -d)
    probe_parts "$answers"
    printf '%-24s %8s %9s  %s\n' PART PID RSS HEALTH
    for part in "${PARTS[@]}"; do
        pid=$(part_pid "$part") || pid=-
        rss=0 health=healthy
        if [ "$pid" = - ]; then
            health="not running"
        else
            rss=$(awk '/^VmRSS:/ { print int($2 / 1024) }' "/proc/$pid/status" 2>/dev/null || printf 0)
            if [ ! -s "$answers/$part" ]; then health="not healthy; log: $LOGS/$part.log"; fi
        fi
        if [ "$health" != healthy ]; then result=1; fi
        total=$((total + $(proportional_kb "$pid")))
        printf '%-24s %8s %6s MB  %s\n' "$part" "$pid" "$rss" "$health"
    done
    print_node "$NODE" "$answers/node" || result=1
    if [ "$NODES" = 2 ]; then
        print_node "$NODE2" "$answers/node2" || result=1
        part_pid node2 >/dev/null || { printf 'it is down; ' && result=1; }
        [ ! -e "$RUN/link.cut" ] || printf 'its link is cut: %s; ' "$(cat -- "$RUN/link.cut")"
        [ ! -e "$RUN/link.slow" ] || printf 'its link is slow: %s; ' "$(cat -- "$RUN/link.slow")"
    fi
    rm -rf -- "$answers"
    printf 'all parts together %s MB, shared memory counted once\nKUBECONFIG=%s\n' $((total / 1024)) "$ADMIN_CONF"
    return "$result"
}
