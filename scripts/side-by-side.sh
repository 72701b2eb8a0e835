#!/usr/bin/env bash
# side-by-side.sh - run ctest with as many tests at once as keep the machine busy: each test that needs a core has one (tk_busy in
# cmake/torchkeeper.cmake), and tests that mostly wait run beside them. `ctest -j 2` runs the same tests, but leaves cores idle.
# A test that is skipped and not in tests/expected-skips counts as failed.
#   scripts/side-by-side.sh BUILD-FOLDER [CTEST-ARGUMENT]...
set -euo pipefail

# The number of cores that the control group's quota grants (a container on a large machine). nproc does not report it.
granted() {
    local root=/sys/fs/cgroup group file quota period
    group=$(sed -n 's/^0:://p' /proc/self/cgroup)
    {
        for file in "$root/cpu.max" "$root$group/cpu.max"; do cat "$file" || true; done
        paste "$root/cpu/cpu.cfs_quota_us" "$root/cpu/cpu.cfs_period_us" || true
    } 2>/dev/null | while read -r quota period; do
        if [ "$quota" != max ] && [ "$quota" -gt 0 ]; then echo $(((quota + period - 1) / period)); fi
    done
}

build=$1 cores=$({ nproc && granted; } | sort -n | head -n 1)
printf '{"version": {"major": 1, "minor": 0}, "local": [{"cores": [{"id": "all", "slots": %d}]}]}\n' "$cores" >"$build/cores.json"
here=$(dirname "$0") failed=0
# --timeout bounds a hang, and nothing else: a machine may be thirty times as slow as another.
ctest --test-dir "$build" --resource-spec-file "$(realpath "$build/cores.json")" -j "$((4 * cores))" --no-tests=error --timeout 1800 \
    --output-junit "$(realpath "$build")/tests.xml" "${@:2}" || failed=$?
grep -q '^TK_SANITIZE:[^=]*=.' "$build/CMakeCache.txt" && kind=sanitized || kind=release
sed -n 's/.*<testcase name="\([^"]*\)".* status="notrun".*/\1/p' "$build/tests.xml" |
    awk -v kind="$kind" '
        FNR == NR && !/^#/ && ($2 == "all" || $2 == kind) { gsub(/[*]/, ".*", $1); expected[++n] = "^" $1 "$" }
        FNR == NR { next }
        { for (i = 1; i <= n; i++) if ($1 ~ expected[i]) next; print "skipped, and not in tests/expected-skips: " $1; bad = 1 }
        END { exit bad }' "$here/../tests/expected-skips" - || failed=1
exit "$failed"
