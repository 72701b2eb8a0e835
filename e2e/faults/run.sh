#!/usr/bin/env bash
# run.sh - the operator against the faults of a real API server: classes F7 and F11 (their real parts), F8, F9, F12, F14, F15; and the soak, F13.
# No root, no node.
#   e2e/faults/run.sh [--short] [CLASS]...    CLASS: leader, credentials, mutations, restarts, hostile, deletions, nodes; soak only when it is named
# Environment: OPERATOR=FILE tests this program. Each class prints "faults CLASS CASES PASSED", which scripts/faults.sh adds up.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

build() { # build PRESET: prints the operator's path
    {
        cmake --preset "$1" && cmake --build "build/$1" --target ptj-operator
    } >"$LOGS/faults-$1.log" 2>&1 || die "compiling failed: $LOGS/faults-$1.log"
    printf '%s' "build/$1/bin/ptj-operator"
}

# The same lives twice: as it is shipped, and with every mistake in memory an end with a message.
soak() {
    local preset program seed
    seed=$(od -An -N4 -tu4 /dev/urandom)
    for preset in release asan; do
        program=$(build "$preset") || return 1
        python3 e2e/faults/soak.py --operator "$program" --csv "build/soak-$preset.csv" --seed "${seed// /}" "$@" || return 1
    done
}

options=() classes=() short=
for word in "$@"; do
    case $word in
    -*) options+=("$word") ;;
    *) classes+=("$word") ;;
    esac
done
# The leader's class waits for leases to end, half a minute a trial.
[ ${#classes[@]} -gt 0 ] || case " ${options[*]} " in
*" --short "*) classes=(credentials mutations restarts hostile deletions) short=yes ;;
*) classes=(leader credentials mutations restarts hostile deletions nodes) ;;
esac
cd "$REPO"
"$REPO/scripts/deps.sh" build servers
"$REPO/deploy/local/servers" build 1.34
export PYTHONPATH=$REPO/bench/operator
failed=()
trap stop_begun EXIT
for class in "${classes[@]}"; do
    say "faults: $class"
    if [ "$class" = soak ]; then
        soak "${options[@]}" || failed+=("$class")
        continue
    fi
    program=${OPERATOR:-$(build release)}
    begin "faults-$class" python3 "e2e/faults/$class.py" --operator "$program" "${options[@]}"
    # The few cases of each class mostly wait, each with servers of its own; many are too much for one machine.
    [ -n "$short" ] || finish "faults-$class" || failed+=("$class")
done
[ -z "$short" ] || finish "${classes[@]/#/faults-}" || failed+=("${FAILED[@]#faults-}")
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
