#!/bin/sh
# sbom.sh PROGRAM VERSION MAP OURS [SOURCES] - prints an SPDX 2.3 document in JSON: of what a statically linked program was
# made, by the linker's own account. Runs where it was linked, on Debian and its kin; beside it lies spdx.awk.
#
#   PROGRAM   the file, as shipped
#   MAP       what the linker wrote with -Wl,-Map=MAP
#   OURS      folder whose archives and objects are the program's own
#   SOURCES   lines "FILE PACKAGE VERSION": archives that no package installed, and the Debian source each was built from
#
# Whatever is linked in and belongs to nobody is an error. The date is SOURCE_DATE_EPOCH, or 1970: same input, same bytes.
set -eu
program=$1 version=$2 map=$3 ours=$(realpath -- "$4") sources=${5:-/dev/null}

# Archives of which a member was taken, and objects named outright.
linked() {
    awk '
        /^Archive member included/ { members = 1; next }
        /^(Discarded input sections|There are no discarded|Memory Configuration|As-needed library)/ { members = 0 }
        members && /^[^ ].*\.a\(/ { sub(/\.a\(.*/, ".a"); print }
        /^LOAD .*\.o$/ { print $2 }' "$map" | sort -u
}

# "PACKAGE VERSION" of what one file came with.
origin() {
    awk -v name="${1##*/}" '$1 == name { print $2, $3; found = 1 } END { exit !found }' "$sources" && return
    package=$(dpkg-query -S "$1" 2>/dev/null | head -n 1 | cut -d : -f 1)
    [ -n "$package" ] || {
        echo "sbom: $1 is linked into $program and belongs to no package" >&2
        return 1
    }
    dpkg-query -W -f '${source:Package} ${source:Version}\n' "$package" | head -n 1
}

origins() {
    linked | while read -r file; do
        # Relative names are those of the build, which ran in the folder of the program's own.
        case $file in /*) file=$(realpath -- "$file") ;; *) continue ;; esac
        case $file in "$ours"/*) continue ;; esac
        origin "$file" || exit 1
    done
}

found=$(origins)
[ -n "$found" ] || {
    echo "sbom: $map names nothing that is linked into $program" >&2
    exit 1
}
sum=$(sha256sum -- "$program" | cut -d ' ' -f 1)
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "$ID")
printf '%s\n' "$found" | sort -u | sed 's/^/Source /; s/$/ source/' | awk -v name="$(basename -- "$program")" -v version="$version" \
    -v main=Program -v purpose=APPLICATION -v relation=STATIC_LINK -v sum="$sum" -v checksums=yes -v created="$created" \
    -v distribution="$distribution" -f "$(dirname -- "$0")/spdx.awk"
