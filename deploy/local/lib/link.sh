# Cuts, delays and heals the second node's link. Every packet between the nodes passes the host's packet filter there.
# shellcheck shell=bash

readonly SLOW_TABLE=2107 # of routes, for packets that come out of the relay

# link_rules WAY: what is dropped of the packets from the node (FROM2) and to it (TO2).
link_rules() {
    case $1 in
    all) link_rules in && link_rules out ;;
    in) printf -- '-A TORCHKEEPER-TO2 -o %s -j DROP\n' "$NODE2" ;;
    out) printf -- '-A TORCHKEEPER-FROM2 -i %s -j DROP\n' "$NODE2" ;;
    pods)
        printf -- '-A TORCHKEEPER-TO2 -o %s -d %s -j DROP\n' "$NODE2" "$NODE2_POD_CIDR"
        printf -- '-A TORCHKEEPER-FROM2 -i %s -s %s -j DROP\n' "$NODE2" "$NODE2_POD_CIDR"
        ;;
    api) printf -- '-A TORCHKEEPER-FROM2 -i %s -d %s -p tcp --dport %s -j DROP\n' "$NODE2" "$API_ADDRESS" "$API_PORT" ;;
    # The address of the API server and of DNS is one of the first node's network.
    isolate)
        printf -- '-A TORCHKEEPER-TO2 -o %s ! -s %s -j TORCHKEEPER-PODS2\n' "$NODE2" "$BRIDGE_ADDRESS"
        printf -- '-A TORCHKEEPER-FROM2 -i %s ! -d %s -j TORCHKEEPER-PODS2\n' "$NODE2" "$BRIDGE_ADDRESS"
        printf -- '-A TORCHKEEPER-PODS2 -s %s -d %s -j DROP\n' "$FIRST_POD_CIDR" "$NODE2_POD_CIDR" "$NODE2_POD_CIDR" "$FIRST_POD_CIDR"
        ;;
    esac
}

# cut_link WAY: in place of what was cut before.
cut_link() {
    iptables-restore --wait "$HANG_S" --noflush <<END || die "iptables-restore failed; is another firewall holding the tables?"
*mangle
:TORCHKEEPER-FROM2 - [0:0]
:TORCHKEEPER-TO2 - [0:0]
:TORCHKEEPER-PODS2 - [0:0]
$(link_rules "$1")
COMMIT
END
    hook mangle PREROUTING TORCHKEEPER-FROM2
    hook mangle POSTROUTING TORCHKEEPER-TO2
    printf '%s\n' "$1" >"$RUN/link.cut"
}

# slow_link MS: what goes to the node arrives so much later, so each answer does too. Where the kernel has no netem, the packets
# take their way through a relay.
slow_link() {
    unslow_link
    printf '%s ms\n' "$1" >"$RUN/link.slow"
    tc qdisc add dev "$NODE2" root netem delay "${1}ms" limit 10000 2>/dev/null && return
    command -v python3 >/dev/null || die "slow: this kernel has no netem, and without it python3 is needed"
    # shellcheck disable=SC2034  # for part_command
    local SLOW_MS=$1 end=$((SECONDS + HANG_S)) setting
    part_start slow
    until ip link show dev "$SLOW_DEVICE" >/dev/null 2>&1; do
        part_pid slow >/dev/null || part_fail slow "ended at its start"
        [ "$SECONDS" -lt "$end" ] || part_fail slow "made no device in $HANG_S s"
        sleep 0.05
    done
    # Its packets have addresses of this host and of other devices.
    for setting in accept_local=1 rp_filter=0; do
        printf '%s' "${setting#*=}" >"/proc/sys/net/ipv4/conf/$SLOW_DEVICE/${setting%=*}"
    done
    ip link set "$SLOW_DEVICE" up
    ip route replace default via "$NODE2_ADDRESS" dev "$NODE2" table "$SLOW_TABLE"
    ip rule add dev "$SLOW_DEVICE" lookup "$SLOW_TABLE"
    # Their connections are known from their first way through the packet filter.
    iptables --wait "$HANG_S" -t raw -N TORCHKEEPER-SLOW
    iptables --wait "$HANG_S" -t raw -A TORCHKEEPER-SLOW -i "$SLOW_DEVICE" -j CT --notrack
    hook raw PREROUTING TORCHKEEPER-SLOW
    ip route replace "$NODE2_ADDRESS/32" dev "$SLOW_DEVICE" src "$NODE2_HOST_ADDRESS"
    ip route replace "$NODE2_POD_CIDR" dev "$SLOW_DEVICE" src "$NODE2_HOST_ADDRESS"
}

unslow_link() {
    [ -e "$RUN/link.slow" ] || return 0
    tc qdisc del dev "$NODE2" root 2>/dev/null || true
    ip route replace "$NODE2_POD_CIDR" via "$NODE2_ADDRESS" dev "$NODE2" 2>/dev/null || true
    ip rule del dev "$SLOW_DEVICE" 2>/dev/null || true
    part_kill slow
    remove_chains raw
    rm -f -- "$RUN/link.slow" "$RUN/slow.pid"
}

# remove_chains TABLE: ours.
remove_chains() {
    iptables-save -t "$1" | undo_rules "$1" | iptables-restore --wait "$HANG_S" --noflush
}

heal_link() {
    unslow_link
    [ -e "$RUN/link.cut" ] || return 0
    remove_chains mangle
    rm -f -- "$RUN/link.cut"
}
