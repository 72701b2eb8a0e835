#!/usr/bin/env bash
# gpu-sanitize.sh FOLDER PROGRAM... - run programs under NVIDIA's compute-sanitizer: memory, races, values never written, barriers.
#
# It takes compute-sanitizer from FOLDER (scripts/cuda-kit.py), else the machine's own. If there is none, or it does not work on this
# machine (for example under gVisor), the script prints one line and succeeds. A finding is a failure, and the script prints the report.
#
# Only memcheck checks cuBLAS's own kernels: what the other tools report there is NVIDIA's to judge. Races and addresses of all
# programs come first, in the programs' order.
#
# Exit status: 0 nothing found, 1 something found or a program that failed, 75 nothing found and not all done.
set -euo pipefail

readonly FOUND=86 # the status that stands for a report
LIMIT_S=${LIMIT_S:-1200}  # per program and tool
TOTAL_S=${TOTAL_S:-86400} # for all programs; those that do not fit are not started

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
clean=0 found=0 late=0

# check TOOL PROGRAM: count what it finds.
check() {
    local tool=$1 program=$2 cublas=on status=0 limit=$((TOTAL_S - SECONDS))
    [ "$limit" -le "$LIMIT_S" ] || limit=$LIMIT_S
    if [ "$limit" -le 0 ]; then
        late=$((late + 1))
        say "$tool: ${program##*/}: not run: TOTAL_S=$TOTAL_S is used up"
        return
    fi
    [ "$tool" = memcheck ] || cublas=off
    TK_CUBLAS=$cublas timeout -k 10 "$limit" "$sanitizer" --tool "$tool" --error-exitcode "$FOUND" "$program" \
        >"$log" 2>&1 || status=$?
    if grep -q "Device not supported" "$log"; then
        say "skipped: compute-sanitizer does not work on this machine (Device not supported)"
        exit 0
    fi
    [ "$status" -eq 0 ] || cat -- "$log"
    case $status in
    0) clean=$((clean + 1)) && say "$tool: ${program##*/}: nothing found" ;;
    124 | 137) late=$((late + 1)) && say "$tool: ${program##*/}: not done after $limit s" ;;
    "$FOUND") found=$((found + 1)) && say "$tool: ${program##*/}: found something" ;;
    *) found=$((found + 1)) && say "$tool: ${program##*/}: exit status $status" ;;
    esac
}

for tools in "racecheck memcheck" "initcheck synccheck"; do
    for program in "$@"; do
        for tool in $tools; do check "$tool" "$program"; done
    done
done
say "$((clean + found + late)) runs: $clean with nothing found, $found with something, $late not done"
[ "$found" -eq 0 ] || exit 1
[ "$late" -eq 0 ] || exit 75
