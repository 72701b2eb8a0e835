#!/usr/bin/env bash
# test.sh - every test: style, unit tests by gcc as shipped, by clang under sanitizers with what they cover and under
# ThreadSanitizer; beside them API servers of the oldest and the newest Kubernetes, and as root, beside these, the real one in
# between. What takes longer is in test-long.sh.
#   scripts/test.sh --unit        only style and all unit tests as shipped
#   scripts/test.sh --only WHAT   only the unit tests of a folder or of a name, such as cli/why
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

style() {
    say "style"
    git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cc' | xargs clang-format --dry-run -Werror
    git ls-files '*.sh' .ci/run deploy/local/cluster deploy/local/servers deploy/local/helm deploy/local/kube-router | xargs shellcheck -x
    git ls-files ':!*package-lock.json' | xargs codespell
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

# units LEFT-OUT: the labels of those that are not run.
units() {
    say "unit tests: release"
    scripts/side-by-side.sh build/release -LE "$1" --output-on-failure
}

# The unit tests whose names begin with WHAT, and only what they need is built.
only() {
    local targets found
    [ -f build/release/CMakeCache.txt ] || {
        scripts/deps.sh build test
        cmake --preset release -DWITH_CUDA="${WITH_CUDA:-off}" >/dev/null
    }
    ninja -C build/release --quiet build.ninja # a test that is new in a CMakeLists.txt
    mapfile -t targets < <(ninja -C build/release -t targets all | sed -n "s,^\(unit_${1//\//_}[a-z0-9_]*\): phony$,\1,p")
    [ ${#targets[@]} -eq 0 ] || ninja -C build/release --quiet "${targets[@]}" # folders of scripts have none
    found=$(ctest --test-dir build/release -R "^unit/$1" -N) # no pipe: grep -q ends it early, and ctest with it
    [[ $found == *'Test '*'#'* ]] ||
        die "no unit test begins with \"$1\"; a folder of tests/unit was expected, such as cli/why, or a test, such as common/test_buf"
    ctest --test-dir build/release -R "^unit/$1" -LE long --output-on-failure -j "$(nproc)"
}

# Data races: only what threads share, by tests of its own label.
races() {
    say "unit tests: tsan"
    cmake --preset tsan >"$LOGS/cmake-tsan.log" 2>&1 || die "cmake --preset tsan failed: build/logs/cmake-tsan.log"
    cmake --build build/tsan --target threads_tests >"$LOGS/build-tsan.log" 2>&1 ||
        die "compiling with preset tsan failed: build/logs/build-tsan.log"
    scripts/side-by-side.sh build/tsan -L threads --output-on-failure
}

# What takes long and needs no core all the time, beside the compiler and the tests: downloads, Kubernetes (the Go compiler is
# told to be nice), images.
begin_preparing() {
    # All packages now: there is one apt at a time, and preparing Kubernetes may need it for Go.
    if [ "$(id -u)" -eq 0 ]; then
        scripts/deps.sh servers bench e2e cluster images
        begin prepare-e2e e2e/run.sh --prepare
    else
        scripts/deps.sh servers bench
    fi
    begin prepare-kubernetes prepare_kubernetes
}

prepare_kubernetes() {
    deploy/local/helm && deploy/local/servers build && bench/operator/kwok.sh && { [ "$(id -u)" -ne 0 ] || deploy/local/cluster build; }
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
    [ "$ours" = no ] || trap 'e2e/down.sh; exit 143' TERM
    e2e/run.sh
    if [ "$ours" = yes ]; then
        e2e/down.sh
    fi
}

# Once more what preparing has done: this says whether it failed.
await_preparing() {
    local name
    for name in prepare-e2e prepare-kubernetes; do
        [ -z "${BEGUN[$name]:-}" ] || tail --pid="${BEGUN[$name]}" -f /dev/null
    done
    (
        flock 9
        prepare_kubernetes
    ) >>"$LOGS/prepare-kubernetes.log" 2>&1 9>"$LOGS/prepare-kubernetes.lock" || die "failed: build/logs/prepare-kubernetes.log"
    stages=()
}

# Everything with API servers, in two rows. Both mostly wait, so they run beside the unit tests, which need the cores all the time
# and are nice.
servers() {
    await_preparing
    stage "versions of Kubernetes" e2e/versions/run.sh
    stage "faults, in short" faults
    stage "scale, in small" scale
    table
}

cluster() {
    if [ "$(id -u)" -ne 0 ]; then
        say "end to end: skipped, it needs root"
        return
    fi
    await_preparing
    stage "end to end" end_to_end
    table
}

# stage WHAT COMMAND...: runs it, and remembers how long it took.
stages=()
stage() {
    local began=$SECONDS
    "${@:2}"
    stages+=("$((SECONDS - began)) $1")
}

table() {
    printf '%s\n' "${stages[@]}" | awk '{ s = $1; $1 = ""; printf "%6.1f min %s\n", s / 60, $0 }'
}

if [ "${1:-}" = --only ]; then
    only "${2:-}"
    exit
fi
trap stop_begun EXIT
export WITH_CUDA=${WITH_CUDA:-on}
if [ "${1:-}" = --unit ]; then
    stage packages scripts/deps.sh build test cuda metrics
    stage style style
    stage "build: release" compile
    stage "units: release" units long
    stages+=("$SECONDS in all")
    table
    exit
fi
stage packages scripts/deps.sh build test coverage cuda metrics
stage "more packages" begin_preparing
stage style style
stage "build: release" compile
begin servers servers
begin cluster cluster
renice -n 10 $$ >/dev/null
stage "units: release" units "long|once"
begin races races # few, and most of them wait
stage "units: sanitized and counted, with its build" scripts/coverage.sh
waited=$SECONDS
finish "${!BEGUN[@]}" || die "failed: ${FAILED[*]}"
stages+=("$((SECONDS - waited)) waiting for what runs beside it: units under tsan, versions, faults, scale, end to end")
stages+=("$SECONDS in all")
table
