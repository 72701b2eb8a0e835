#!/bin/sh
# The decoders and plan/ must not reach for a clock, a file, the environment, the network or a log: looks at the
# symbols that their archives leave undefined.
# usage: purity.sh <archive> ...
set -eu
banned='^(time|clock_gettime|gettimeofday|getenv|secure_getenv|setenv|f?open(at)?(64)?|creat|read|write|socket|connect|rand|random|getrandom|curl_.*|log_line|printf|puts|putchar|fputs|fprintf|vfprintf|perror|syslog|exit|_exit|sleep|usleep|nanosleep|loop_.*|recorder_.*)$'
bad=0
for archive in "$@"; do
    symbols=$(nm -u "$archive" | awk '$1 == "U" {print $2}' | sed 's/@.*//' | sort -u)
    [ -n "$symbols" ] || { echo "$archive: nm shows no symbols" >&2; exit 1; }
    found=$(echo "$symbols" | sed 's/^__\(.*\)_chk$/\1/' | grep -E "$banned" || true)
    if [ -n "$found" ]; then
        echo "$archive is not pure, it uses:" >&2
        echo "$found" >&2
        bad=1
    fi
done
exit "$bad"
