#!/usr/bin/env bash
# gpu-sanitize.sh FOLDER PROGRAM... - NVIDIA's compute-sanitizer over programs: memory, races, values never written, barriers.
#
# It is that of FOLDER (scripts/cuda-kit.py), else the machine's own; without one, or where it does not work on this machine
# (gVisor, say), one line tells so and that is no failure. What it finds is one: its report is printed.
#
# cuBLAS's own kernels are left to memcheck: the other tools report what NVIDIA has to judge.
set -euo pipefail

readonly FOUND=86 # the status that stands for a report
LIMIT_S=${LIMIT_S:-1200} # per program and tool

say() { printf 'gpu-sanitize: %s\n' "$*"; }

[ $# -ge 2 ] || {
    echo "usage: gpu-sanitize.sh FOLDER PROGRAM..." >&2
    exit 2
}
sanitizer=$1/bin/compute-sanitizer
shift
[ -x "$sanitizer" ] || sanitizer=$(command -v compute-sanitizer) || {
    say "skipped: no compute-sanitizer"
    exit 0
}
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
worst=0
for program in "$@"; do
    for tool in memcheck racecheck initcheck synccheck; do
        cublas=on status=0
        [ "$tool" = memcheck ] || cublas=off
        TK_CUBLAS=$cublas timeout -k 10 "$LIMIT_S" "$sanitizer" --tool "$tool" --error-exitcode "$FOUND" "$program" \
            >"$log" 2>&1 || status=$?
        if grep -q "Device not supported" "$log"; then
            say "skipped: compute-sanitizer does not work on this machine (Device not supported)"
            exit 0
        fi
        if [ "$status" -eq 0 ]; then
            say "$tool: ${program##*/}: nothing found"
            continue
        fi
        cat -- "$log"
        case $status in
        "$FOUND") say "$tool: ${program##*/}: found something" ;;
        124 | 137) say "$tool: ${program##*/}: not done after $LIMIT_S s" ;;
        *) say "$tool: ${program##*/}: exit status $status" ;;
        esac
        worst=1
    done
done
exit "$worst"
