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

scripts/deps.sh build test cuda
style
compile release
compile clang-release
compile asan
units release
units asan
races
[ "${1:-}" = --unit ] && exit 0
scripts/deps.sh coverage
scripts/coverage.sh
e2e/versions/run.sh
say "faults of a real API server, in short"
e2e/faults/run.sh --short
say "the operator at scale, in small: counts and sizes"
SMALL=1 bench/operator/run.sh
if [ "$(id -u)" -eq 0 ]; then
    say "end to end"
    ours=yes # a cluster that was up before stays up
    [ -e "${TORCHKEEPER_STATE:-/var/lib/torchkeeper}/.torchkeeper-state" ] && ours=no
    e2e/run.sh
    if [ "$ours" = yes ]; then
        e2e/down.sh
    fi
else
    say "end to end: skipped, it needs root"
fi
