#!/usr/bin/env bash
# fuzz.sh - libFuzzer on each target, JOBS of them at once. SECONDS are CPU time, so other load does not matter.
# Interesting inputs stay in build/fuzz-found for the next run. An input that breaks something stays there too, and the
# script prints its name.
#   [JOBS=1] scripts/fuzz.sh SECONDS [TARGET ...]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

FOUND=$REPO/build/fuzz-found
seconds=${1:-60}
jobs=${JOBS:-1}
shift || true
[[ $jobs =~ ^[1-9][0-9]?$ ]] || die "JOBS=$jobs: expected a number 1..99"
[[ $seconds =~ ^[1-9][0-9]{0,5}$ ]] || die "SECONDS=$seconds: expected a number 1..999999"
targets=("$@")
if [ $# -eq 0 ]; then
    mapfile -t targets < <(sed -n 's/^ *tk_fuzz(\([a-z_]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
fi
for target in "${targets[@]}"; do
    [ -e "tests/fuzz/fuzz_$target.c" ] || die "TARGET=$target: there is no tests/fuzz/fuzz_$target.c"
done

cmake --preset fuzz -DWITH_CUDA=off >"$LOGS/cmake-fuzz.log" 2>&1 || die "cmake --preset fuzz failed: build/logs/cmake-fuzz.log"
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}" >"$LOGS/build-fuzz.log" 2>&1 ||
    die "compiling with preset fuzz failed: build/logs/build-fuzz.log"

# fuzz TARGET: run until the CPU time is used. libFuzzer limits wall time, which is never less than CPU time, so there are rounds of
# the time that is still missing. Each round also checks for leaks at its end.
fuzz() {
    local target=$1 log=$LOGS/fuzz-$1.log goal=$((seconds * 1000)) spent=0 words=() user system
    [ ! -e "tests/fuzz/dict/$target.dict" ] || words=("-dict=tests/fuzz/dict/$target.dict")
    mkdir -p "$FOUND/$target"
    : >"$log"
    while ((spent < goal)); do
        TIMEFORMAT='%3U %3S'
        if ! { time "build/fuzz/bin/fuzz/fuzz_$target" -max_total_time=$(((goal - spent + 999) / 1000)) -timeout=20 \
            -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$FOUND/$target-" "${words[@]}" \
            "$FOUND/$target" "build/fuzz/tests/fuzz/corpus/$target" >>"$log" 2>&1; } 2>"$log.time"; then
            printf '%-12s a fault: build/logs/fuzz-%s.log\n' "$target" "$target"
            grep -E 'does not hold|ERROR|runtime error|Test unit written' "$log" || true
            return 1
        fi
        read -r user system <"$log.time"
        spent=$((spent + 10#${user/./} + 10#${system/./}))
    done
    awk -v t="$target" -v s=$((spent / 1000)) '/DONE/ { edges = $4 } /number_of_executed_units/ { n += $2 }
        END { printf "%-12s %6d s  %11d inputs  %6d edges  no fault\n", t, s, n, edges }' "$log"
}

# Each in its own process group, so that an interrupted one leaves no process.
trap 'for pid in $(jobs -pr); do kill -- "-$pid"; done' EXIT
broken=0
running=0
for target in "${targets[@]}"; do
    if ((running == jobs)); then
        wait -n || broken=1
        running=$((running - 1))
    fi
    set -m
    fuzz "$target" </dev/null &
    set +m
    running=$((running + 1))
done
while ((running > 0)); do
    wait -n || broken=1
    running=$((running - 1))
done
exit $broken
