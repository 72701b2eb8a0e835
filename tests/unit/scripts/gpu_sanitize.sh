#!/usr/bin/env bash
# gpu_sanitize.sh SCRIPT - what scripts/gpu-sanitize.sh makes of a compute-sanitizer's answers, of one of our own.
set -euo pipefail

script=$1
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p "$work/kit/bin" "$work/none"
# It does what ANSWER says for the tool: 0, a report, a failure of the program, a machine on which it does not work.
cat >"$work/kit/bin/compute-sanitizer" <<'FAKE'
#!/usr/bin/env bash
[ "$1 $3" = "--tool --error-exitcode" ] || exit 3
echo "$2 $TK_CUBLAS ${5##*/}" >>"$CALLS"
case $ANSWER in
"$2:report") echo "a hazard" && exit "$4" ;;
"$2:fails") exit 1 ;;
"$2:unsupported") echo "Error: Device not supported" && exit 1 ;;
"$2:sleeps") exec sleep 1000 ;;
esac
FAKE
chmod +x "$work/kit/bin/compute-sanitizer"
export CALLS=$work/calls ANSWER=

check() { # check STATUS TEXT COMMAND...: it ends with STATUS and says TEXT
    local want=$1 text=$2 status=0
    shift 2
    : >"$CALLS"
    "$@" >"$work/out" 2>&1 || status=$?
    if [ "$status" -ne "$want" ] || ! grep -qF -- "$text" "$work/out"; then
        printf '%s: status %s, expected %s and "%s":\n' "$*" "$status" "$want" "$text" >&2
        cat -- "$work/out" >&2
        exit 1
    fi
}

check 0 "synccheck: b: nothing found" "$script" "$work/kit" /x/a /x/b
diff - "$CALLS" <<'WANT'
racecheck off a
memcheck on a
racecheck off b
memcheck on b
initcheck off a
synccheck off a
initcheck off b
synccheck off b
WANT
ANSWER=racecheck:report check 1 "a hazard" "$script" "$work/kit" /x/a
[ "$(wc -l <"$CALLS")" -eq 4 ] || { echo "the tools behind one that found something did not run" >&2 && exit 1; }
ANSWER=racecheck:report check 1 "racecheck: a: found something" "$script" "$work/kit" /x/a
ANSWER=memcheck:fails check 1 "memcheck: a: exit status 1" "$script" "$work/kit" /x/a
# What is not done in time is no finding: it has a status of its own, unless something is found as well.
ANSWER=racecheck:sleeps check 75 "4 runs: 3 with nothing found, 0 with something, 1 not done" env LIMIT_S=6 "$script" "$work/kit" /x/a
ANSWER=racecheck:sleeps check 75 "racecheck: a: not done after" env LIMIT_S=100 TOTAL_S=8 "$script" "$work/kit" /x/a
[ "$(cat "$CALLS")" = "racecheck off a" ] || { echo "something began when the time was over" >&2 && exit 1; }
check 75 "4 runs: 0 with nothing found, 0 with something, 4 not done" env TOTAL_S=-9 "$script" "$work/kit" /x/a
ANSWER=racecheck:report check 1 "4 runs: 3 with nothing found, 1 with something, 0 not done" "$script" "$work/kit" /x/a
ANSWER=memcheck:unsupported check 0 "skipped: compute-sanitizer does not work on this machine" "$script" "$work/kit" /x/a
check 0 "nothing found" env PATH="$work/kit/bin:/usr/bin:/bin" "$script" "$work/none" /x/a
check 0 "skipped: no compute-sanitizer" env PATH=/usr/bin:/bin "$script" "$work/none" /x/a
check 2 "usage" "$script" "$work/kit"
