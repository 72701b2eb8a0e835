#!/usr/bin/env bash
# sbom-newer.sh SBOM... <PACKAGES - list the packages in images of which Debian has a newer version, such as a security update.
#
#   SBOM       lists of parts (SPDX 2.3 in JSON) as deploy/images writes them; Debian's packages and sources in them are compared
#   PACKAGES   apt's indexes of binary packages, one after the other:
#              apt-get indextargets --format '$(FILENAME)' 'Created-By: Packages' | xargs /usr/lib/apt/apt-helper cat-file
#
# Exits with 1 if there is one: rebuild the images from scratch (deploy/images/build.sh clean). It reads no database of
# vulnerabilities: it does not cover those without an update, nor the Python wheels.
set -euo pipefail
die() {
    printf 'sbom-newer: %s\n' "$*" >&2
    exit 2
}
[ $# -gt 0 ] || die "expected lists of parts (build/release-VERSION/sbom/*.spdx.json)"

# "NAME VERSION" of each binary package, and of its source with ":source" behind the name. Without a field Source, name and version
# of the source are those of the package.
known=$(awk -v RS='' -v FS='\n' '{
    name = version = source = source_version = ""
    for (i = 1; i <= NF; i++) {
        split($i, word, " ")
        if ($i ~ /^Package:/) name = word[2]
        if ($i ~ /^Version:/) version = word[2]
        if ($i ~ /^Source:/) { source = word[2]; source_version = word[3] }
    }
    gsub(/[()]/, "", source_version)
    print name, version "\n" (source == "" ? name : source) ":source", source_version == "" ? version : source_version
}' | sort -u)
[ -n "$known" ] || die "no package on stdin: run apt-get update first"
declare -A newest=()
while read -r name version; do
    if [ -z "${newest[$name]:-}" ] || dpkg --compare-versions "$version" gt "${newest[$name]}"; then newest[$name]=$version; fi
done <<<"$known"

found=0 judged=0
for list in "$@"; do
    parts=$(grep -o 'pkg:deb/[^"]*' "$list" | sed 's|.*/||; s/%2B/+/g; s/%3A/:/g') || die "$list: no package of Debian is in it"
    while IFS='@?=' read -r name version _ kind; do
        [ "$kind" != source ] || name+=:source
        [ -n "${newest[$name]:-}" ] || die "$list: $name is in none of the indexes on stdin"
        judged=$((judged + 1))
        if dpkg --compare-versions "${newest[$name]}" gt "$version"; then
            printf '%s: %s %s, Debian has %s\n' "$list" "$name" "$version" "${newest[$name]}"
            found=$((found + 1))
        fi
    done <<<"$parts"
done
printf 'sbom-newer: %d parts, of %d Debian has a newer version\n' "$judged" "$found"
[ "$found" -eq 0 ]
