#!/usr/bin/env bash
# deps.sh - install what is missing, by group; without root print the one line to run.
#   scripts/deps.sh build test coverage cuda cluster images registry policies e2e servers metrics bench peers pictures
set -euo pipefail

packages() {
    case $1 in
    build) echo build-essential cmake ninja-build pkg-config libcurl4-openssl-dev libcjson-dev libyaml-dev zlib1g-dev ;;
    test)
        echo libcmocka-dev openssl clang clang-format libclang-rt-14-dev shellcheck codespell dataset-fashion-mnist python3 python3-numpy python3-yaml valgrind musl-dev tmux groff-base zsh fish curl
        [ "$(id -u)" -ne 0 ] || echo iptables iproute2 # tests whose packets vanish need root anyway
        ;;
    coverage) echo llvm python3 ;;
    cuda) echo python3 python3-venv ;; # scripts/cuda-kit.py fetches the rest
    cluster) echo containerd runc containernetworking-plugins iptables iproute2 openssl socat curl gcc libc6-dev ca-certificates ;;
    images) echo buildah mmdebstrap dataset-fashion-mnist ;;
    registry) echo docker-registry ;; # Debian starts a server on port 5000, which nothing here uses
    policies) echo ipset iptables ;; # for kube-router
    e2e) echo python3 python3-venv curl ;;
    bench) echo python3 openssl curl iproute2 ;;
    peers) echo libdnnl-dev libopenblas-serial-dev ;; # only for comparisons
    pictures)
        echo chromium fonts-dejavu-core fonts-inter pngquant tmux python3-venv
        command -v npm >/dev/null || echo nodejs npm # others' nodejs brings npm along
        ;;
    metrics) echo prometheus ;; # and promtool; Debian starts a server on port 9090, which nothing here uses
    servers) echo openssl curl iproute2 python3 python3-venv ;;
    *) echo "deps.sh: unknown group \"$1\"; expected build, test, coverage, cuda, cluster, images, registry, policies, e2e, servers, metrics, bench, peers or pictures" >&2 && exit 2 ;;
    esac
}

missing=()
for group in "$@"; do
    for package in $(packages "$group"); do
        dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
    done
done
[ ${#missing[@]} -eq 0 ] && exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
    echo "deps.sh: packages are missing; run: sudo apt-get update && sudo $install" >&2
    exit 1
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of package names
$install -qq >/dev/null
