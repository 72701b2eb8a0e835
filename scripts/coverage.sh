#!/usr/bin/env bash
# coverage.sh - the unit tests by clang, under AddressSanitizer, LeakSanitizer and UndefinedBehaviorSanitizer: what these find
# fails a test. Which lines and branches the tests run is counted meanwhile, for each program; below a floor of
# tests/coverage.floors it fails. Floors only rise: write a better number there.
#   scripts/coverage.sh [--no-run]    --no-run: from the last run's counts
# Environment: WITH_CUDA=auto|on|off: whether the tests of GPU support, which need no GPU, are among them; default: auto
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

BUILD=$REPO/build/coverage

run_tests() {
    say "unit tests: clang, sanitizers, coverage"
    rm -rf "$BUILD/profiles"
    mkdir -p "$BUILD/profiles"
    # Counts lie in files that are mapped (%c), so processes that end by _exit or are killed count as well; two for each program
    # or plug-in, which all processes share (%2m). Nothing stays open.
    LLVM_PROFILE_FILE="$BUILD/profiles/%c%2m.profraw" scripts/side-by-side.sh "$BUILD" -L unit -LE long --output-on-failure
}

if [ "${1:-}" != --no-run ]; then
    cmake --preset coverage -DWITH_CUDA="${WITH_CUDA:-auto}" >"$LOGS/cmake-coverage.log" 2>&1 ||
        die "cmake --preset coverage failed: build/logs/cmake-coverage.log"
    cmake --build "$BUILD" >"$LOGS/build-coverage.log" 2>&1 || {
        grep -E -A5 'error:|FAILED' "$LOGS/build-coverage.log" | head -40
        die "compiling with preset coverage failed: build/logs/build-coverage.log"
    }
    ninja -C "$BUILD" -t cleandead >/dev/null # programs of removed sources would count as untested lines
    run_tests
fi
find "$BUILD/profiles" -name '*.profraw' >"$BUILD/profiles.list" 2>/dev/null || die "there are no counts yet: run it without --no-run"
# A process that was killed while it created a file leaves one without counts: skip it.
llvm-profdata merge -sparse -failure-mode=all -f "$BUILD/profiles.list" -o "$BUILD/all.profdata" 2>"$LOGS/coverage.log" ||
    die "llvm-profdata failed: build/logs/coverage.log"
mapfile -t programs < <(find "$BUILD/tests" "$BUILD/bin" -maxdepth 1 -type f -executable ! -name '*.so' | sort)
llvm-cov export -summary-only -instr-profile "$BUILD/all.profdata" "${programs[0]}" "${programs[@]/#/-object=}" \
    >"$BUILD/coverage.json" 2>>"$LOGS/coverage.log" || die "llvm-cov failed: build/logs/coverage.log"
scripts/coverage.py "$BUILD/coverage.json" tests/coverage.floors
