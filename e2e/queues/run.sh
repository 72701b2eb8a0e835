#!/usr/bin/env bash
# run.sh - queued jobs under the real Kueue and gangs under the real coscheduling, beside an API server without a node; no root.
#   e2e/queues/run.sh [--short] [--only WORD] [--seed N] [life | crowd | gangs | admission | remote]...
# Environment: OPERATOR=FILE tests this program.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
BUILD_GB=12 # Kubernetes, Kueue and coscheduling, with what the Go compiler keeps of them

options=() programs=()
while [ $# -gt 0 ]; do
    case $1 in
    --only | --seed) options+=("$1" "${2:?}") && shift ;;
    -*) options+=("$1") ;;
    *) programs+=("$1") ;;
    esac
    shift
done
[ ${#programs[@]} -gt 0 ] || programs=(life admission remote crowd gangs)
cd "$REPO"
scripts/deps.sh build servers
[ -x build/tools/kueue ] || need_disk "$BUILD_GB"
deploy/local/servers build 1.34
deploy/local/kueue build
deploy/local/coscheduler build
bench/operator/kwok.sh
if [ -z "${OPERATOR:-}" ]; then
    { cmake --preset release && cmake --build build/release --target ptj-operator; } >"$LOGS/queues-release.log" 2>&1 ||
        die "compiling failed: $LOGS/queues-release.log"
    OPERATOR=build/release/bin/ptj-operator
fi
export PYTHONPATH=$REPO/bench/operator:$REPO/e2e/faults
failed=()
for program in "${programs[@]}"; do
    say "queues: $program"
    python3 "e2e/queues/$program.py" --operator "$OPERATOR" "${options[@]}" || failed+=("$program")
done
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
