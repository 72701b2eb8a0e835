#!/usr/bin/env bash
# test.sh - every test: style, unit tests by gcc as shipped, by clang under sanitizers with what they cover and under
# ThreadSanitizer, API servers of the oldest and the newest Kubernetes, and as root the real one in between. What takes
# longer is in test-long.sh.
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

# With gcc, as it is shipped, the CUDA code too though there may be no GPU. Warnings are errors here and with clang.
compile() {
    say "build: release"
    cmake --preset release -DWITH_CUDA="$WITH_CUDA" >"$LOGS/cmake-release.log" 2>&1 ||
        die "cmake --preset release failed: build/logs/cmake-release.log"
    cmake --build build/release >"$LOGS/build-release.log" 2>&1 || {
        grep -E -A5 'error:|FAILED' "$LOGS/build-release.log" | head -40
        die "compiling with preset release failed: build/logs/build-release.log"
    }
}

units() {
    say "unit tests: release"
    scripts/side-by-side.sh build/release -LE long --output-on-failure
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
        scripts/deps.sh servers bench e2e cluster images
        begin prepare-e2e e2e/run.sh --prepare
        rest+=(prepare-e2e)
    else
        scripts/deps.sh servers bench
    fi
    begin prepare-kubernetes prepare_kubernetes
}

prepare_kubernetes() {
    deploy/local/servers build && bench/operator/kwok.sh && { [ "$(id -u)" -ne 0 ] || deploy/local/cluster build; }
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
export WITH_CUDA=${WITH_CUDA:-on}
stage packages scripts/deps.sh build test coverage cuda
[ "${1:-}" = --unit ] || stage "more packages" prepare_rest
stage style style
stage "build: release" compile
stage "units: release" units
stage "units: sanitized and counted, with its build" scripts/coverage.sh
stage "units: tsan, with its build" races
if [ "${1:-}" = --unit ]; then
    table
    exit 0
fi
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
