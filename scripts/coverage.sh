#!/usr/bin/env bash
# coverage.sh - which lines and branches the unit tests run, for each program; below a floor of tests/coverage.floors it
# fails. Floors only rise: who covers more writes the new figure there.
#   scripts/coverage.sh [--no-run]    --no-run: from the last run's counts
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

BUILD=$REPO/build/coverage

# One file of counts for each process, mapped: those that end by _exit or are killed count as well. Such a file is open
# where the launcher must start ranks with nothing open, and a plug-in would have the same one as its program: those
# three tests write their counts when they end.
AT_THEIR_END='launcher/test_torchrun$|collectives/test_mpi$|trainer/test_rig_device$'

run_tests() { # run_tests PATTERN CTEST-ARGS...
    LLVM_PROFILE_FILE="$BUILD/profiles/$1.profraw" scripts/side-by-side.sh "$BUILD" -L unit --output-on-failure "${@:2}" \
        >>"$LOGS/ctest-coverage.log" 2>&1 || {
        grep -vE '^ *Start |   Passed ' "$LOGS/ctest-coverage.log" | tail -n 60
        die "tests failed: build/logs/ctest-coverage.log"
    }
}

if [ "${1:-}" != --no-run ]; then
    cmake --preset coverage -DWITH_CUDA=off >"$LOGS/cmake-coverage.log" 2>&1 || die "cmake failed: build/logs/cmake-coverage.log"
    cmake --build "$BUILD" >"$LOGS/build-coverage.log" 2>&1 || die "compiling failed: build/logs/build-coverage.log"
    say "unit tests: coverage"
    rm -rf "$BUILD/profiles" "$LOGS/ctest-coverage.log"
    mkdir -p "$BUILD/profiles"
    run_tests '%c%p' -E "$AT_THEIR_END"
    run_tests '%2m' -R "$AT_THEIR_END"
fi
find "$BUILD/profiles" -name '*.profraw' >"$BUILD/profiles.list" 2>/dev/null || die "there are no counts yet: run it without --no-run"
# A process that was killed while it began leaves a file without counts: that one is passed over.
llvm-profdata merge -sparse -failure-mode=all -f "$BUILD/profiles.list" -o "$BUILD/all.profdata" 2>"$LOGS/coverage.log" ||
    die "llvm-profdata failed: build/logs/coverage.log"
mapfile -t programs < <(find "$BUILD/tests" "$BUILD/bin" -maxdepth 1 -type f -executable ! -name '*.so' | sort)
llvm-cov export -summary-only -instr-profile "$BUILD/all.profdata" "${programs[0]}" "${programs[@]/#/-object=}" \
    >"$BUILD/coverage.json" 2>>"$LOGS/coverage.log" || die "llvm-cov failed: build/logs/coverage.log"
scripts/coverage.py "$BUILD/coverage.json" tests/coverage.floors
