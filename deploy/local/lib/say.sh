# Messages for the user. Progress goes to standard error: only `env` and `status` use standard output.
# shellcheck shell=bash

say() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die() {
    say "$*"
    exit 1
}

# seconds_since START: START is a value of EPOCHREALTIME.
seconds_since() {
    local now=$EPOCHREALTIME
    printf '%d.%01d' $(((${now/./} - ${1/./}) / 1000000)) $(((${now/./} - ${1/./}) / 100000 % 10))
}

# write_file PATH: write standard input to PATH atomically.
write_file() {
    cat >"$1.new"
    mv -f -- "$1.new" "$1"
}
