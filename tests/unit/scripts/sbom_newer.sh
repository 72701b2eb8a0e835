#!/usr/bin/env bash
# sbom_newer.sh SCRIPT - scripts/sbom-newer.sh: sources and binaries by their newest version in several indexes; what it refuses.
set -euo pipefail
SCRIPT=$1
TOP=$(mktemp -d)
trap 'rm -rf -- "$TOP"' EXIT

wrong() {
    printf '%s\n' "$*" >&2
    exit 1
}

cat >"$TOP/packages" <<'END'
Package: libcurl4
Source: curl
Version: 7.88.1-10+deb12u9
Description: words
 Version: 9

Package: curl
Version: 7.88.1-10+deb12u12

Package: libc6
Source: glibc (2.36-9)
Version: 1:2.36-9+b1

END

# list NAME PURL...: as spdx.awk writes them.
list() {
    printf '{"packages": [\n' >"$TOP/$1"
    printf '{"referenceType": "purl", "referenceLocator": "%s"},\n' "${@:2}" >>"$TOP/$1"
}

# expect STATUS TEXT LIST...
expect() {
    local status=0
    "$SCRIPT" "${@:3}" <"$TOP/packages" >"$TOP/out" 2>&1 || status=$?
    [ "$status" -eq "$1" ] || wrong "expected $1, got $status: $(<"$TOP/out")"
    grep -qF -- "$2" "$TOP/out" || wrong "expected \"$2\", it said: $(<"$TOP/out")"
}

list new 'pkg:deb/debian/curl@7.88.1-10%2Bdeb12u12?arch=source' 'pkg:deb/debian/glibc@2.36-9?arch=source' 'pkg:pypi/absl-py@2.5.1'
list local 'pkg:deb/debian/libc6@1%3A2.36-9%2Bb1?arch=amd64' 'pkg:deb/debian/curl@8~rc1?arch=amd64'
list old 'pkg:deb/debian/curl@7.88.1-10%2Bdeb12u9?arch=source' 'pkg:deb/debian/libcurl4@7.88.1-10%2Bdeb12u9?arch=amd64'
list other 'pkg:deb/debian/nginx@1?arch=amd64'
list none 'pkg:pypi/absl-py@2.5.1'
expect 0 'sbom-newer: 4 parts, of 0 Debian has a newer version' "$TOP/new" "$TOP/local"
expect 1 "$TOP/old: curl:source 7.88.1-10+deb12u9, Debian has 7.88.1-10+deb12u12" "$TOP/new" "$TOP/old"
expect 1 'sbom-newer: 4 parts, of 1 Debian has a newer version' "$TOP/new" "$TOP/old"
expect 2 "$TOP/other: nginx is in none of the indexes on stdin" "$TOP/other"
expect 2 "$TOP/none: no package of Debian is in it" "$TOP/none"
expect 2 'expected lists of parts'
: >"$TOP/packages"
expect 2 'no package on stdin: run apt-get update first' "$TOP/new"
