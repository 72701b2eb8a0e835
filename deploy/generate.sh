#!/usr/bin/env bash
# generate.sh - write deploy/install.yaml, the installation in one file, from the parts.
#
#   deploy/generate.sh                  writes deploy/install.yaml
#   deploy/generate.sh --check          says whether deploy/install.yaml is up to date; exit 1 when it is not
#   deploy/generate.sh --images PREFIX  prints the installation with the images PREFIX/operator:dev and so on
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
readonly PREFIX=localhost/torchkeeper
readonly PARTS=(
    manager/namespace.yaml
    ../crds/pytorchtrainingjob.yaml
    rbac/service-account.yaml
    rbac/operator-role.yaml
    rbac/operator-binding.yaml
    rbac/leader-role.yaml
    rbac/user-roles.yaml
    manager/deployment.yaml
)

installation() {
    local part
    printf '# Torchkeeper: kubectl apply -f install.yaml. Written by deploy/generate.sh; change the parts, not this file.\n'
    for part in "${PARTS[@]}"; do
        printf -- '---\n'
        cat -- "$part"
    done
}

die() {
    printf 'generate.sh: %s\n' "$*" >&2
    exit 1
}

case ${1:-} in
"")
    installation >install.yaml.new
    mv -f -- install.yaml.new install.yaml
    ;;
--check)
    installation | cmp -s - install.yaml || die "deploy/install.yaml is not up to date; run deploy/generate.sh"
    ;;
--images)
    [[ ${2:-} =~ ^[a-zA-Z0-9][a-zA-Z0-9._:/-]*$ ]] || die "--images \"${2:-}\": expected a registry and a path in it"
    installation | sed "s|$PREFIX/|$2/|"
    ;;
*) die "unknown option \"$1\": expected --check or --images PREFIX" ;;
esac
