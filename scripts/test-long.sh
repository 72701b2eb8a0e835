#!/usr/bin/env bash
# test-long.sh - before a release, after `make test`: what that leaves out or shortens because it takes hours. Each stage goes
# on after a failure of another; the table at the end names commit, stage, minutes and result (docs/results.md keeps it).
#   scripts/test-long.sh [STAGE]...      without names all of them, in this order:
#   slow      unit tests with the label "long" (under valgrind, two builds that have to be equal byte by byte, the PTX of kernels at
#             all shapes and with all mutants), those that `make test` leaves to the sanitized build ("once"), and in the sanitized
#             build the sweeps of the operator that strike each third place, of which `make test` has time for each ninth
#   versions  the operator with the API servers of every Kubernetes version, not only the oldest and the newest
#   queues    queued jobs under the real Kueue, gangs under the real coscheduling
#   cases     end-to-end cases marked long, most of them of PyTorch's torchrun (root)
#   nodes     faults of nodes, on the local Kubernetes with two of them (root)
#   faults    every class of faults in full
#   soak      10,000 lives of jobs, as shipped and under AddressSanitizer
#   fuzz      each fuzz target, FUZZ_SECONDS of CPU time (default 300)
#   chaos     CHAOS_TRIALS trials of struck training jobs on the local Kubernetes (default 100; root)
#   parts     Debian has no newer version of any part of the images that are built (apt-get update; root)
#   big       exports and checkpoints beyond 4 GiB
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

slow() {
    scripts/side-by-side.sh build/release -L "long|once" --output-on-failure &&
        FAULTS=full LLVM_PROFILE_FILE=$REPO/build/coverage/long-%1m.profraw scripts/side-by-side.sh build/coverage \
            -R '^unit/operator/test_(converge|notices|takeover|pairs|stale|shapes)_' --output-on-failure
}
versions() {
    local minors
    mapfile -t minors < <(deploy/local/servers versions | cut -d ' ' -f 1)
    e2e/versions/run.sh && e2e/versions/run.sh "${minors[@]:1:${#minors[@]}-2}"
}
queues() { e2e/queues/run.sh; }
cases() { e2e/run.sh --long; }
nodes() { e2e/nodes/run.sh && deploy/local/cluster down && e2e/nodes/states.sh; }
faults() { scripts/faults.sh; }
soak() { e2e/faults/run.sh soak; }
fuzz() { JOBS=${JOBS:-1} scripts/fuzz.sh "${FUZZ_SECONDS:-300}"; }
chaos() { e2e/chaos/run.sh --trials "${CHAOS_TRIALS:-100}"; }
parts() {
    local image found=()
    for image in operator trainer launcher tensorboard; do
        [ -s "build/images/$image.tar" ] || die "build/images/$image.tar is not there: run deploy/images/build.sh"
        found+=("$LOGS/$image.spdx.json")
        # The one layer of a squashed image.
        tar -xOf "build/images/$image.tar" --wildcards '*.tar' | tar -xOf - sbom.spdx.json >"${found[-1]}"
    done
    apt-get update -qq
    # shellcheck disable=SC2016  # apt's variable, not ours
    apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages' | xargs /usr/lib/apt/apt-helper cat-file | scripts/sbom-newer.sh "${found[@]}"
}
big() { PYTHON=${PYTHON:-} tests/big/run.sh; }

if [ "${1:-}" = --only ]; then
    "$2"
    exit
fi
stages=("$@")
[ $# -gt 0 ] || stages=(slow versions queues cases nodes faults soak fuzz chaos parts big)
for stage in "${stages[@]}"; do
    grep -q "^#   $stage " "$0" || die "$stage: expected one of $(sed -n 's/^#   \([a-z]*\)  .*/\1/p' "$0" | tr '\n' ' ')"
done
scripts/deps.sh build test coverage servers bench
table=() failed=
for stage in "${stages[@]}"; do
    say "$stage"
    began=$SECONDS result=passed
    # A child: `set -e` has no effect in what a condition calls.
    "$0" --only "$stage" || result=failed failed=yes
    table+=("$(printf '%-10s %4d min %02d s  %s' "$stage" $(((SECONDS - began) / 60)) $(((SECONDS - began) % 60)) "$result")")
done
git log -1 --format='commit %h, %cd' --date=short
printf '%s\n' "${table[@]}"
[ -z "$failed" ]
