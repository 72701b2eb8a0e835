# What runs beside the local cluster or beside servers: where that is, and an administrator's kubectl. For programs that are
# called with a verb and perhaps a folder.
# shellcheck shell=bash disable=SC2034  # part.sh and the programs read these

usage_error() {
    say "$1; try: $0 help"
    exit 2
}

# use_place [FOLDER]: the local cluster, or the servers in a folder.
use_place() {
    if [ $# -eq 0 ]; then
        # shellcheck source=/dev/null
        for file in settings parts; do . "$HERE/lib/$file.sh"; done
        [ "$(id -u)" -eq 0 ] || die "beside the local cluster it needs root"
    else
        # shellcheck source=/dev/null
        . "$HERE/lib/servers.sh"
        use_folder "$1"
        use_port "$(recall port || die "no servers are in $STATE: run deploy/local/servers up $STATE first")"
    fi
}

kubectl_admin() {
    "$TOOLS/kubectl" --kubeconfig "$STATE/admin.conf" "$@"
}

require_api_server() {
    kubectl_admin --request-timeout=60s get --raw /readyz >/dev/null 2>&1 ||
        die "no API server answers by $STATE/admin.conf: start the cluster or the servers first"
}
