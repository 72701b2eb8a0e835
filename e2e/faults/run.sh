#!/usr/bin/env bash
# run.sh - the operator against the faults of a real API server: classes F8 and F9. No root, no node.
#   e2e/faults/run.sh [--short] [CLASS]...      CLASS: credentials, mutations; --short: a minute or two in all
# Environment: OPERATOR=FILE tests this program. Each class prints "faults CLASS CASES PASSED", which scripts/faults.sh adds up.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

options=() classes=()
for word in "$@"; do
    case $word in
    -*) options+=("$word") ;;
    *) classes+=("$word") ;;
    esac
done
[ ${#classes[@]} -gt 0 ] || classes=(credentials mutations)
cd "$REPO"
"$REPO/scripts/deps.sh" build servers
"$REPO/deploy/local/servers" build 1.34
program=${OPERATOR:-}
if [ -z "$program" ]; then
    program=build/release/bin/ptj-operator
    {
        cmake --preset release && cmake --build build/release --target ptj-operator
    } >"$LOGS/faults-operator.log" 2>&1 || die "compiling failed: $LOGS/faults-operator.log"
fi
export PYTHONPATH=$REPO/bench/operator
failed=()
for class in "${classes[@]}"; do
    say "faults: $class"
    python3 "e2e/faults/$class.py" --operator "$program" "${options[@]}" || failed+=("$class")
done
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
