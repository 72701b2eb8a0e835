# Used by every program here: its folder, the Kubernetes version of the cluster, names inside a cluster.
# shellcheck shell=bash disable=SC2034  # the other parts read these

# kubernetes_version MOD: the version of Kubernetes that a module file asks for, if any; what it replaces comes last.
kubernetes_version() {
    sed -n 's/^.*k8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$1" | tail -n 1
}

REPO=$(realpath -m -- "$HERE/../..")
KUBERNETES_VERSION=$(kubernetes_version "$HERE/hyperkube/go.mod")
readonly REPO KUBERNETES_VERSION
readonly TOOLS=$REPO/build/tools
readonly GO_NEEDED=1.21

readonly DNS_DOMAIN=cluster.local
readonly SERVICE_CIDR=10.32.0.0/16
readonly FIRST_SERVICE_ADDRESS=10.32.0.1
