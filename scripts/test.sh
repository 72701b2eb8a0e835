#!/usr/bin/env bash
# test.sh - every test: style, two compilers, unit tests plain and under sanitizers, what they cover, API servers of several
# Kubernetes versions, and as root the real Kubernetes.
#   scripts/test.sh [--unit]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

style() {
    say "style"
    git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cc' | xargs clang-format --dry-run -Werror
    git ls-files '*.sh' .ci/run deploy/local/cluster deploy/local/servers | xargs shellcheck -x
    git ls-files | xargs codespell
    deploy/generate.sh --check
}

# Builds a preset, the CUDA code in it though there may be no GPU; warnings are errors in all of them.
compile() {
    say "build: $1"
    cmake --preset "$1" -DWITH_CUDA="${WITH_CUDA:-on}" >"$LOGS/cmake-$1.log" 2>&1 || die "cmake --preset $1 failed: build/logs/cmake-$1.log"
    cmake --build "build/$1" >"$LOGS/build-$1.log" 2>&1 || {
        grep -E -A5 'error|FAILED' "$LOGS/build-$1.log" | head -40
        die "compiling with preset $1 failed: build/logs/build-$1.log"
    }
}

units() {
    say "unit tests: $1"
    scripts/side-by-side.sh "build/$1" --output-on-failure
}

# Data races: only what threads share, by tests of its own label.
races() {
    say "unit tests: tsan"
    cmake --preset tsan >"$LOGS/cmake-tsan.log" 2>&1 || die "cmake --preset tsan failed: build/logs/cmake-tsan.log"
    cmake --build build/tsan --target threads_tests >"$LOGS/build-tsan.log" 2>&1 ||
        die "compiling with preset tsan failed: build/logs/build-tsan.log"
    scripts/side-by-side.sh build/tsan -L threads --output-on-failure
}

# What takes long and needs no core all the time, beside the compilers and the tests that wait: downloads, Kubernetes (the Go
# compiler is told to be nice), images.
prepare_rest() {
    rest=(prepare-kubernetes)
    # All packages now: there is one apt at a time, and preparing Kubernetes may need it for Go.
    if [ "$(id -u)" -eq 0 ]; then
        scripts/deps.sh coverage servers bench e2e cluster images
        begin prepare-e2e e2e/run.sh --prepare
        rest+=(prepare-e2e)
    else
        scripts/deps.sh coverage servers bench
    fi
    begin prepare-kubernetes prepare_kubernetes
}

prepare_kubernetes() {
    deploy/local/servers build && bench/operator/kwok.sh
}

rest_is_prepared() {
    finish "${rest[@]}" || die "failed: ${FAILED[*]}"
}

faults() {
    say "faults of a real API server, in short"
    e2e/faults/run.sh --short
}

scale() {
    say "the operator at scale, in small: counts and sizes"
    SMALL=1 bench/operator/run.sh
}

end_to_end() {
    local ours=yes # a cluster that was up before stays up
    say "end to end"
    [ -e "${TORCHKEEPER_STATE:-/var/lib/torchkeeper}/.torchkeeper-state" ] && ours=no
    e2e/run.sh
    if [ "$ours" = yes ]; then
        e2e/down.sh
    fi
}

# stage WHAT COMMAND...: runs it, and remembers how long it took.
stages=()
stage() {
    local began=$SECONDS
    "${@:2}"
    stages+=("$((SECONDS - began)) $1")
}

table() {
    printf '%s\n' "${stages[@]}" "$SECONDS in all" | awk '{ s = $1; $1 = ""; printf "%6.1f min %s\n", s / 60, $0 }'
}

trap stop_begun EXIT
stage packages scripts/deps.sh build test cuda
stage style style
[ "${1:-}" = --unit ] || stage "more packages" prepare_rest
for preset in release clang-release asan; do stage "build: $preset" compile "$preset"; done
for preset in release asan; do stage "units: $preset" units "$preset"; done
stage "units: tsan, with its build" races
if [ "${1:-}" = --unit ]; then
    table
    exit 0
fi
stage "coverage, with its build" scripts/coverage.sh
stage "Kubernetes and images, what was left" rest_is_prepared
stage "versions of Kubernetes" e2e/versions/run.sh
stage "faults, in short" faults
stage "scale, in small" scale
if [ "$(id -u)" -eq 0 ]; then
    stage "end to end" end_to_end
else
    say "end to end: skipped, it needs root"
fi
table
