#!/usr/bin/env bash
# lib.sh SCRIPT - scripts/lib.sh: what was begun is finished by its name, and no name stands for two that run.
set -euo pipefail

# shellcheck source=scripts/lib.sh
. "$1"
LOGS=$(mktemp -d)
trap 'stop_begun; rm -rf -- "$LOGS"' EXIT

wrong() {
    printf '%s\n' "$*" >&2
    exit 1
}

begin good echo well
begin bad sh -c 'echo ill; exit 3'
if finish good bad >"$LOGS/said"; then wrong "finish: one failed, and it said nothing of it"; fi
[ "${FAILED[*]}" = bad ] || wrong "failed: '${FAILED[*]}', expected 'bad'"
[ "$(cat -- "$LOGS/said")" = "$(printf 'well\nill')" ] || wrong "finish printed: $(cat -- "$LOGS/said")"

# Twice: the second would take the first one's place, and nobody would wait for that or end it.
begin twice sleep 600
first=${BEGUN[twice]}
if (begin twice touch "$LOGS/second") 2>"$LOGS/said"; then wrong "begin: a name that runs was begun again"; fi
grep -qx "$(basename "$0"): twice has been begun already" "$LOGS/said" || wrong "begin said: $(cat -- "$LOGS/said")"
[ "${BEGUN[twice]}" = "$first" ] || wrong "the first was forgotten"
stop_begun
if kill -0 "$first" 2>/dev/null; then wrong "stop_begun left $first"; fi
BEGUN=()

# One after the other is well.
for word in one two; do
    begin turns echo "$word"
    finish turns >"$LOGS/said"
    [ "$(cat -- "$LOGS/said")" = "$word" ] || wrong "begun anew, it printed: $(cat -- "$LOGS/said")"
done
[ ! -e "$LOGS/second" ] || wrong "the second ran all the same"

[ "$(say word | cat)" = "==> word" ] || wrong "say writes escapes into a pipe: $(say word | cat -v)"
