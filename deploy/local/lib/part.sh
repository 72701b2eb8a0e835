# Starts, finds and stops a part. A process is identified by pid and start time, so that a reused pid is never
# taken for ours.
# shellcheck shell=bash

readonly HANG_S=600 # limit of waits that take seconds; a busy machine may be many times slower

process_start() {
    local stat fields
    # Reading in this shell: a fork for each would double the time of an `up` with nothing to do.
    read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
    # The name in parentheses may hold anything, so fields are counted after the last ")".
    read -ra fields <<<"${stat##*) }"
    # A killed process is a zombie when its first thread has ended; its ports stay in use until the last thread has.
    [ "${fields[0]}" = Z ] && [ "${fields[17]}" -le 1 ] && return 1
    printf '%s' "${fields[19]}"
}

# part_pid PART: prints the pid if the part runs.
part_pid() {
    local pid start
    read -r pid start 2>/dev/null <"$RUN/$1.pid" || return 1
    [ -n "$start" ] && [ "$(process_start "$pid")" = "$start" ] && printf '%s' "$pid"
}

# A hash of what the part would be started with now.
part_stamp() {
    local COMMAND=() file
    part_command "$1"
    {
        printf '%s\n' "${COMMAND[@]}"
        # A new authority makes every certificate a new one.
        { part_files "$1" && printf '%s\n' "$PKI/ca.crt" "$PKI/$1.crt"; } | while read -r file; do
            if [ -e "$file" ]; then cat -- "$file"; fi
        done
    } 2>/dev/null | sha256sum | cut -d ' ' -f 1
}

part_is_current() {
    part_pid "$1" >/dev/null && [ "$(part_stamp "$1")" = "$(cat -- "$RUN/$1.stamp" 2>/dev/null)" ]
}

part_start() {
    local COMMAND=() ENVIRONMENT=() pid log=$LOGS/$1.log
    part_command "$1"
    part_environment "$1"
    if [ -s "$log" ]; then mv -f -- "$log" "$log.1"; fi
    # The locks' descriptors must not live on in the part.
    (cd / && exec setsid env -i "${ENVIRONMENT[@]}" "${COMMAND[@]}") >"$log" 2>&1 </dev/null 8<&- 9>&- &
    pid=$!
    printf '%s %s\n' "$pid" "$(process_start "$pid" || printf 0)" | write_file "$RUN/$1.pid"
    part_stamp "$1" | write_file "$RUN/$1.stamp"
}

# ensure PART: starts the part unless it runs correctly; a part that runs but does not answer
# gets a minute to recover, then a new life.
ensure() {
    local part
    for part in "$@"; do
        if part_is_current "$part" && responds "$part"; then continue; fi
        part_stop "$part"
        part_start "$part"
        STARTED+=("$part")
    done
}

responds() {
    local end=$((SECONDS + 60))
    until part_is_healthy "$1"; do
        if [ "$SECONDS" -ge "$end" ] || ! part_pid "$1" >/dev/null; then return 1; fi
        sleep 0.2
    done
}

# part_stop PART: SIGTERM, then SIGKILL. containerd's shims are not its children and stay.
part_stop() {
    local pid
    pid=$(part_pid "$1") || return 0
    kill -TERM "$pid" 2>/dev/null || true
    wait_gone 5 "$pid" || kill -KILL "$pid" 2>/dev/null || true
    wait_gone "$HANG_S" "$pid" || die "$1 (pid $pid) does not end, not even by SIGKILL"
    rm -f -- "$RUN/$1.pid"
}

# wait_gone SECONDS PID...
wait_gone() {
    local end=$((SECONDS + $1)) pid alive
    shift
    while [ "$SECONDS" -le "$end" ]; do
        alive=
        for pid in "$@"; do
            if process_start "$pid" >/dev/null; then alive=1; fi
        done
        [ -n "$alive" ] || return 0
        sleep 0.05
    done
    return 1
}

# kill_all PID...: SIGKILL to all, then wait until they have ended.
kill_all() {
    [ $# -gt 0 ] || return 0
    kill -KILL "$@" 2>/dev/null || true
    wait_gone "$HANG_S" "$@" || die "a process does not end, not even by SIGKILL: one of $*"
}

# part_await PART
part_await() {
    local end=$((SECONDS + HANG_S))
    until part_is_healthy "$1"; do
        part_pid "$1" >/dev/null || part_fail "$1" "ended at its start"
        [ "$SECONDS" -lt "$end" ] || part_fail "$1" "is not healthy after $HANG_S s"
        sleep 0.1
    done
}

part_fail() {
    say "$1 $2; log: $LOGS/$1.log, its last lines:"
    tail -n 8 -- "$LOGS/$1.log" | cut -c 1-400 | sed 's/^/    /' >&2
    exit 1
}

# Every process with our mark in its environment: parts without a pid file, and containerd's shims.
marked_pids() {
    local file
    # A process may end, or hide its environment, while we look.
    grep -lzs -- "$MARK" /proc/[0-9]*/environ 2>/dev/null | while read -r file; do
        file=${file#/proc/}
        printf '%s\n' "${file%/environ}"
    done
}
