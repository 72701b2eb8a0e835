#!/usr/bin/env bash
# fuzz.sh - libFuzzer on one target or on each in turn. What it finds worth keeping stays in build/fuzz-found for the next
# run; an input that breaks something is kept there too, and named.
#   scripts/fuzz.sh SECONDS [TARGET ...]
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

FOUND=$REPO/build/fuzz-found
seconds=${1:-60}
shift || true
[[ $seconds =~ ^[1-9][0-9]{0,5}$ ]] || die "SECONDS=$seconds: expected a number 1..999999"
targets=("$@")
if [ $# -eq 0 ]; then
    mapfile -t targets < <(sed -n 's/^ *tk_fuzz(\([a-z]*\) .*/\1/p' tests/fuzz/CMakeLists.txt)
fi
for target in "${targets[@]}"; do
    [ -e "tests/fuzz/fuzz_$target.c" ] || die "TARGET=$target: there is no tests/fuzz/fuzz_$target.c"
done

cmake --preset fuzz -DWITH_CUDA=off >"$LOGS/cmake-fuzz.log" 2>&1 || die "cmake --preset fuzz failed: build/logs/cmake-fuzz.log"
cmake --build build/fuzz --target "${targets[@]/#/fuzz_}" >"$LOGS/build-fuzz.log" 2>&1 ||
    die "compiling with preset fuzz failed: build/logs/build-fuzz.log"
broken=0
for target in "${targets[@]}"; do
    mkdir -p "$FOUND/$target"
    words=()
    [ ! -e "tests/fuzz/dict/$target.dict" ] || words=("-dict=tests/fuzz/dict/$target.dict")
    # A target's own messages are for the log; leaks of the whole run are looked for at its end, too.
    if "build/fuzz/bin/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$FOUND/$target-" "${words[@]}" "$FOUND/$target" "tests/fuzz/corpus/$target" \
        >"$LOGS/fuzz-$target.log" 2>&1; then
        awk -v t="$target" -v s="$seconds" '/DONE/ { edges = $4 } /number_of_executed_units/ { n = $2 }
            END { printf "%-12s %6d s  %10d inputs  %6d edges  no fault\n", t, s, n, edges }' "$LOGS/fuzz-$target.log"
    else
        printf '%-12s a fault: build/logs/fuzz-%s.log\n' "$target" "$target"
        grep -E 'does not hold|ERROR|runtime error|Test unit written' "$LOGS/fuzz-$target.log" || true
        broken=1
    fi
done
exit $broken
