#!/usr/bin/env bash
# generate.sh - write the installations in one file each, from the parts: install.yaml for the whole cluster and
# install-namespaced.yaml for one namespace.
#
#   deploy/generate.sh                  writes both
#   deploy/generate.sh --check          checks that both are up to date; exit 1 when one is not
#   deploy/generate.sh --images PREFIX  prints install.yaml with the images PREFIX/operator:dev and so on
#   deploy/generate.sh --namespace NAME prints install-namespaced.yaml for that namespace
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
readonly PREFIX=localhost/torchkeeper
readonly NAMESPACE=torchkeeper-jobs
# What the operator itself needs, alike in both; the rest needs an admin of the cluster.
readonly OPERATOR=(
    rbac/service-account.yaml
    rbac/operator-role.yaml
    rbac/operator-binding.yaml
    rbac/leader-role.yaml
    manager/network-policy.yaml
    manager/disruption-budget.yaml
    manager/deployment.yaml
)
readonly PARTS=(
    manager/namespace.yaml
    ../crds/pytorchtrainingjob.yaml
    rbac/user-roles.yaml
    "${OPERATOR[@]}"
)

documents() {
    local part
    for part in "$@"; do
        printf -- '---\n'
        cat -- "$part"
    done
}

installation() {
    printf '# Torchkeeper: kubectl apply -f install.yaml. Written by deploy/generate.sh; change the parts, not this file.\n'
    documents "${PARTS[@]}"
}

# As overlays/namespaced does it: the cluster's roles become the namespace's, and the operator looks nowhere else.
namespaced() {
    printf '# Torchkeeper for the jobs of namespace %s only, without permissions outside of it: kubectl apply -f install-namespaced.yaml\n' "$1"
    printf '# Before it, once per cluster: crds/pytorchtrainingjob.yaml, deploy/rbac/user-roles.yaml, and the namespace itself.\n'
    printf '# Written by deploy/generate.sh, with --namespace NAME for another namespace; change the parts, not this file.\n'
    documents "${OPERATOR[@]}" | awk -v ns="$1" '
        /^kind: / { of_cluster = sub(/^kind: Cluster/, "kind: ") }
        /^  kind: ClusterRole$/ { sub(/ClusterRole/, "Role") }
        /^ *namespace: / { sub(/namespace: .*/, "namespace: " ns) }
        { print }
        /^metadata:$/ { in_metadata = 1 }
        in_metadata && /^  name: / { in_metadata = 0; if (of_cluster) print "  namespace: " ns }
        /^        args:$/ { print "        - --namespace=" ns }'
}

die() {
    printf 'generate.sh: %s\n' "$*" >&2
    exit 1
}

# check FILE: standard input is what it should hold.
check() {
    cmp -s - "$1" || die "deploy/$1 is not up to date; run deploy/generate.sh"
}

case ${1:-} in
"")
    installation >install.yaml.new
    namespaced "$NAMESPACE" >install-namespaced.yaml.new
    mv -f -- install.yaml.new install.yaml
    mv -f -- install-namespaced.yaml.new install-namespaced.yaml
    ;;
--check)
    installation | check install.yaml
    namespaced "$NAMESPACE" | check install-namespaced.yaml
    ;;
--images)
    [[ ${2:-} =~ ^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$ ]] || die "--images \"${2:-}\": expected a registry and a path in it"
    installation | sed "s|$PREFIX/|$2/|"
    ;;
--namespace)
    [[ ${2:-} =~ ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$ ]] || die "--namespace \"${2:-}\": expected the name of a namespace"
    namespaced "$2"
    ;;
*) die "unknown option \"$1\": expected --check, --images PREFIX or --namespace NAME" ;;
esac
