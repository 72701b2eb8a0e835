#!/bin/sh
# purity.sh ARCHIVE... - fail when pure code reaches for the world: network, clock, environment, files, randomness, log.
set -eu
forbidden='^(curl_.*|clock_gettime|gettimeofday|time|getenv|secure_getenv|fopen|open|open64|read|rand|random|getrandom|getentropy|log_line|poll|socket|fork|pthread_.*)$'
found=0
for archive; do
    bad=$(nm -u "$archive" | awk '$1 == "U" {print $2}' | sed 's/@.*//' | sort -u | grep -E "$forbidden" || true)
    if [ -n "$bad" ]; then
        printf '%s is not pure:\n%s\n' "$archive" "$bad" >&2
        found=1
    fi
done
exit $found
