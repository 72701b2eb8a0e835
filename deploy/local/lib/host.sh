# Set up the host for the cluster, and undo it: bridge, kernel settings, packet filter, cgroups.
# shellcheck shell=bash

readonly SETTINGS=(net/ipv4/ip_forward net/bridge/bridge-nf-call-iptables)

# /sys shows the host's devices to the second node too.
bridge_exists() {
    ip link show dev "$BRIDGE" >/dev/null 2>&1
}

make_bridge() {
    if ! bridge_exists; then
        ip link add "$BRIDGE" type bridge || die "cannot make the bridge $BRIDGE: is the kernel's bridge module there?"
    fi
    # Without a set address the bridge has the lowest one of its ports, which changes with the pods; other pods would
    # send to the old one, DNS queries first of all, until their neighbour entries expire.
    ip link set "$BRIDGE" address "$(ip -brief link show dev "$BRIDGE" | awk '{ print $3 }')"
    ip link set "$BRIDGE" up
    ip address replace "$GATEWAY/${POD_CIDR#*/}" dev "$BRIDGE"
}

remove_bridge() {
    local port
    bridge_exists || return 0
    for port in "/sys/class/net/$BRIDGE/brif"/*; do
        if [ -e "$port" ]; then ip link delete "${port##*/}" 2>/dev/null || true; fi
    done
    ip link delete "$BRIDGE" 2>/dev/null || true
}

# The first `up` records the previous settings, so that `down` can restore them.
change_settings() {
    local name
    modprobe -a br_netfilter overlay 2>/dev/null || true
    for name in "${SETTINGS[@]}"; do
        [ -e "/proc/sys/$name" ] || die "the kernel has no setting $name: load its module br_netfilter"
        [ "$(cat "/proc/sys/$name")" != 1 ] || continue
        mkdir -p -- "$RUN/settings"
        cat "/proc/sys/$name" >"$RUN/settings/${name//\//:}"
        printf 1 >"/proc/sys/$name"
    done
}

restore_settings() {
    local name saved
    for name in "${SETTINGS[@]}"; do
        saved=$RUN/settings/${name//\//:}
        if [ -s "$saved" ] && [ -e "/proc/sys/$name" ]; then cat -- "$saved" >"/proc/sys/$name"; fi
    done
}

# The second node's pods are behind its link, those of the first behind the bridge. Between the two, addresses stay as they are.
node2_rules() {
    [ "$NODES" = 2 ] || return 0
    case $1 in
    filter)
        printf -- '-A TORCHKEEPER-%s -i %s -j ACCEPT\n' IN "$NODE2" FORWARD "$NODE2" FORWARD "$SLOW_DEVICE"
        printf -- '-A TORCHKEEPER-FORWARD -o %s -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT\n' "$NODE2"
        ;;
    nat) printf -- '-A TORCHKEEPER-OUT -s %s -d %s -j RETURN\n-A TORCHKEEPER-OUT -s %s ! -o %s -j MASQUERADE\n' "$ALL_PODS" "$ALL_PODS" "$ALL_PODS" "$BRIDGE" ;;
    esac
}

# One chain of our own per hook, filled in one step.
change_packet_filter() {
    iptables-restore --wait "$HANG_S" --noflush <<END || die "iptables-restore failed; is another firewall holding the tables?"
*filter
:TORCHKEEPER-IN - [0:0]
:TORCHKEEPER-FORWARD - [0:0]
-A TORCHKEEPER-IN -i $BRIDGE -j ACCEPT
-A TORCHKEEPER-FORWARD -i $BRIDGE -j ACCEPT
-A TORCHKEEPER-FORWARD -o $BRIDGE -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
$(node2_rules filter)
COMMIT
*nat
:TORCHKEEPER-OUT - [0:0]
$(node2_rules nat)
-A TORCHKEEPER-OUT -s $POD_CIDR ! -o $BRIDGE -j MASQUERADE
COMMIT
END
    hook filter INPUT TORCHKEEPER-IN
    hook filter FORWARD TORCHKEEPER-FORWARD
    hook nat POSTROUTING TORCHKEEPER-OUT
}

# hook TABLE CHAIN OURS
hook() {
    iptables --wait "$HANG_S" -t "$1" -C "$2" -j "$3" 2>/dev/null || iptables --wait "$HANG_S" -t "$1" -I "$2" -j "$3"
}

# Our chains, kube-proxy's and the kubelet's, and of the port-mapping plugin's those of our pods.
restore_packet_filter() {
    local family table
    for family in iptables ip6tables; do
        command -v "$family-save" >/dev/null || continue
        for table in nat filter mangle raw; do
            "$family-save" -t "$table" 2>/dev/null | undo_rules "$table" | "$family-restore" --wait "$HANG_S" --noflush 2>/dev/null || true
        done
    done
}

# undo_rules TABLE: reads the output of iptables-save, prints the commands that remove our part of it.
undo_rules() {
    awk -v table="$1" '
        function ours(chain) { return chain ~ /^(KUBE-|TORCHKEEPER-)/ || chain in mapped }
        /^:/ { chains[++count] = substr($1, 2) }
        /^-A/ { rules[++lines] = $0 }
        # The plugin comments the jump to a pod chain with the name of its network.
        /^-A CNI-HOSTPORT-DNAT .*torchkeeper.* -j CNI-DN-/ { mapped[$NF] = 1 }
        END {
            for (i = 1; i <= lines; i++) {
                n = split(rules[i], word, " ")
                target = ""
                for (j = 3; j < n; j++) if (word[j] == "-j" || word[j] == "-g") target = word[j + 1]
                if (!ours(word[2]) && ours(target)) undo = undo "-D" substr(rules[i], 3) "\n"
                else if (word[2] == "CNI-HOSTPORT-DNAT") foreign = 1
            }
            # The chains that all pod networks share go with their last user; the plugin never removes them.
            for (i = 1; i <= lines && !foreign; i++) {
                n = split(rules[i], word, " ")
                if (word[n] ~ /^CNI-HOSTPORT-(DNAT|MASQ)$/) undo = undo "-D" substr(rules[i], 3) "\n"
            }
            for (i = 1; i <= count; i++) if (ours(chains[i]) || gone(chains[i])) flush = flush "-F " chains[i] "\n"
            for (i = 1; i <= count; i++) if (ours(chains[i]) || gone(chains[i])) drop = drop "-X " chains[i] "\n"
            if (undo flush != "") printf "*%s\n%s%s%sCOMMIT\n", table, undo, flush, drop
        }
        function gone(chain) { return !foreign && chain ~ /^CNI-HOSTPORT-(DNAT|MASQ|SETMARK)$/ }
    '
}

# The kubelet's folder for all pods below each cgroup controller.
cgroup_folders() {
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        printf '%s\n' "/sys/fs/cgroup/$CGROUP"
        return
    fi
    local mount
    while read -r _ mount _; do
        printf '%s/%s\n' "$mount" "$CGROUP"
    done < <(awk '$3 == "cgroup" || $3 == "cgroup2"' /proc/mounts)
}

# Without a weight of its own the group of all pods gets as much of a busy machine as one process: compilers beside it would
# starve the pods. Here it weighs as 16.
make_cgroups() {
    local folder file
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        printf '+cpu +cpuset +memory +pids' >/sys/fs/cgroup/cgroup.subtree_control ||
            die "cannot delegate cpu, cpuset, memory and pids in /sys/fs/cgroup/cgroup.subtree_control"
        mkdir -p -- "/sys/fs/cgroup/$CGROUP"
        printf 1600 >"/sys/fs/cgroup/$CGROUP/cpu.weight"
        return
    fi
    while read -r folder; do
        mkdir -p -- "$folder"
        # A new cpuset is empty and takes no process until it is filled.
        for file in cpuset.cpus cpuset.mems; do
            if [ -e "$folder/$file" ]; then cat -- "${folder%/*}/$file" >"$folder/$file"; fi
        done
        if [ -e "$folder/cpu.shares" ]; then printf 16384 >"$folder/cpu.shares"; fi
    done < <(cgroup_folders)
}

# Every process in a pod, whoever its parent is by now.
pod_pids() {
    local folder
    while read -r folder; do
        if [ -d "$folder" ]; then find "$folder" -name cgroup.procs -exec cat {} + 2>/dev/null || true; fi
    done < <(cgroup_folders) | sort -nu
}

remove_cgroups() {
    local folder
    while read -r folder; do
        if [ -d "$folder" ]; then find "$folder" -depth -type d -exec rmdir {} + 2>/dev/null || true; fi
    done < <(cgroup_folders)
}
