# Runs Go's compiler and says on standard error how far it is: a line that is redrawn each second on a terminal, elsewhere a line
# each half minute.
# shellcheck shell=bash

# compile LOG OUTPUT FLAG... PACKAGE: `go build -o OUTPUT`, or `go install` where OUTPUT is empty. LOG gets the packages as they
# are compiled, and what the compiler says.
compile() {
    local log=$1 command=(install) teller failed=0
    [ -z "$2" ] || command=(build -o "$2")
    shift 2
    : >"$log"
    tell_compiled "$log" "$@" 8<&- & # without the lock
    teller=$!
    nice go "${command[@]}" -v "$@" >"$log" 2>&1 || failed=1
    kill "$teller" 2>/dev/null || true
    wait "$teller" 2>/dev/null || true
    rm -f -- "$log".packages*
    [ ! -t 2 ] || printf '\r\e[K' >&2
    return "$failed"
}

# A package counts as many times as it has files, which is what the time left is reckoned by.
tell_compiled() {
    local log=$1 list=$1.packages begin='' end=$'\n' every=30 started=$SECONDS second=0 modules compiled all part whole text left
    shift
    if [ -t 2 ]; then begin=$'\r' end=$'\e[K' every=1; fi
    rm -f -- "$list"
    # Fails for a package with a version, as `go install` takes them: then how many there are is not known. The compiler may end
    # first, and the files with it.
    { go list -deps -f '{{if .Stale}}= {{.ImportPath}} {{len .GoFiles}}{{end}}' "$@" >"$list.new" && mv -f -- "$list.new" "$list"; } 2>/dev/null &
    while sleep 1 >/dev/null 2>&1 && kill -0 "$$" 2>/dev/null; do
        ((++second % every == 0)) || continue
        read -r modules compiled all part whole < <(cat -- "$list" "$log" 2>/dev/null | awk '
            $1 == "=" { files[$2] = $3; all++; whole += $3; next }
            $1 == "go:" { modules += $2 == "downloading"; next }
            !all || $1 in files { n++; part += files[$1] }
            END { print modules + 0, n + 0, all + 0, part + 0, whole + 0 }')
        text="$compiled packages compiled"
        left=
        if ((compiled + modules == 0)); then
            continue
        elif ((compiled == 0)); then
            text="$modules modules downloaded"
        elif ((all)); then
            text="$compiled of $all packages compiled"
            if ((part == whole)); then
                left=", linking"
            elif ((part * 50 > whole)); then
                left=$(((SECONDS - started) * (whole - part) / part))
                left=$(printf ', about %d:%02d left' $((left / 60)) $((left % 60)))
            fi
        fi
        printf '%s%s: %s%s%s' "$begin" "${0##*/}" "$text" "$left" "$end" >&2
    done
}
