#!/bin/sh
# purity.sh ARCHIVE... - fail when pure code reaches for a clock, file, environment, network, randomness, thread or log:
# looks at the symbols that the archives leave undefined. FORTIFY's __x_chk and __x_2 count as x.
set -eu
banned='^(time|clock_gettime|gettimeofday|getenv|secure_getenv|setenv|f?open(at)?(64)?|creat|read|write|poll|socket|connect|fork|rand|random|getrandom|getentropy|curl_.*|pthread_.*|log_line|printf|puts|putchar|fputs|fprintf|vfprintf|perror|syslog|exit|_exit|sleep|usleep|nanosleep|loop_.*|recorder_.*)$'
forbidden() {
    sed 's/@.*//; s/^__\(.*\)_chk$/\1/; s/^__\(.*\)_2$/\1/' | sort -u | grep -E "$banned" || true
}
# The check itself must be able to fail.
for symbol in __read_chk openat fopen64 __open64_2 clock_gettime@GLIBC_2.17; do
    [ -n "$(echo "$symbol" | forbidden)" ] || { echo "purity: $symbol would pass" >&2; exit 1; }
done
bad=0
[ $# -gt 0 ] || { echo "purity: no archive given" >&2; exit 1; }
for archive in "$@"; do
    symbols=$(nm -u "$archive" | awk '$1 == "U" {print $2}')
    [ -n "$symbols" ] || { echo "$archive: nm shows no symbols" >&2; exit 1; }
    found=$(echo "$symbols" | forbidden)
    if [ -n "$found" ]; then
        printf '%s is not pure, it uses:\n%s\n' "$archive" "$found" >&2
        bad=1
    fi
done
exit "$bad"
