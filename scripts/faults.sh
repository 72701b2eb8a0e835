#!/usr/bin/env bash
# faults.sh - run the programs of every fault class and print one table; fail if a case fails or a class has fewer
# cases than its goal (tests/faults.goals).
#   scripts/faults.sh [CTEST_REGEX]     with an expression: only the unit tests that match; goals are printed, not checked
#
# The programs are the unit tests with the label "faults", and the scripts e2e/faults/*.sh, which need a real API server.
# Each of them prints lines "faults CLASS CASES PASSED"; lines of one class add up.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"
LOG=$LOGS/faults.log
BUILD=${BUILD:-build/release}

# 77 of a script is a skip: its cases are then missing from the table.
run() {
    local rc=0
    FAULTS=full "$@" >>"$LOG" 2>&1 || rc=$?
    case $rc in
        0) ;;
        77) echo "skipped: $*: $(tail -n 1 "$LOG")" ;;
        *)
            echo "failed: $* ($LOG)"
            failed=1
            ;;
    esac
}

failed=0
: >"$LOG"
run ctest --test-dir "$BUILD" -L faults ${1:+-R "$1"} --no-tests=error --timeout 3600 --verbose -j 6 # most of them wait for time to pass
grep -E '^[[:space:]]*[0-9]+ - .*\((Failed|Timeout|Skipped|SEGFAULT|Subprocess aborted)\)' "$LOG" || true
if [ $# -eq 0 ]; then
    for script in e2e/faults/*.sh; do
        [ ! -x "$script" ] || run "$script"
    done
fi
awk -v judge="$([ $# -eq 0 ] && echo 1 || echo 0)" '
    FNR == NR && /^F[0-9]/ { order[++n] = $1; goal[$1] = $2; $1 = $2 = ""; sub(/^ +/, ""); what[order[n]] = $0 }
    FNR == NR { next }
    { sub(/^[0-9]+: /, "") }
    /^faults F[0-9]+ [0-9]+ [0-9]+$/ {
        if (!($2 in goal)) { print "tests/faults.goals: no class " $2; bad = 1 }
        cases[$2] += $3; passed[$2] += $4
    }
    END {
        printf "%-5s  %-62s %7s %7s %6s\n", "class", "what", "cases", "passed", "goal"
        for (i = 1; i <= n; i++) {
            c = order[i]
            word = passed[c] < cases[c] ? "failed" : judge && cases[c] < goal[c] ? "too few" : ""
            bad = bad || word != ""
            printf "%-5s  %-62s %7d %7d %6d  %s\n", c, what[c], cases[c], passed[c], goal[c], word
        }
        exit bad
    }' tests/faults.goals "$LOG" || failed=1
exit "$failed"
