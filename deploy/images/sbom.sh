#!/bin/sh
# sbom.sh PROGRAM VERSION MAP OURS [SOURCES] - prints an SPDX 2.3 document in JSON: of what a statically linked program was
# made, by the linker's own account. Runs where it was linked, on Debian and its kin.
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
printf '%s\n' "$found" | sort -u | awk -v name="$(basename -- "$program")" -v version="$version" -v sum="$sum" \
    -v created="$created" -v distribution="$distribution" '
    function package(id, name, version, more) {
        return sprintf("    {\"SPDXID\": \"SPDXRef-%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", " \
            "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", " \
            "\"licenseDeclared\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\", %s}", id, name, version, more)
    }
    function relation(from, type, to) {
        return sprintf("    {\"spdxElementId\": \"SPDXRef-%s\", \"relationshipType\": \"%s\", " \
            "\"relatedSpdxElement\": \"SPDXRef-%s\"}", from, type, to)
    }
    function escaped(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text }
    {
        id = "Source-" $1
        gsub(/[^A-Za-z0-9.-]/, "-", id)
        purl = "pkg:deb/" distribution "/" $1 "@" escaped($2) "?arch=source"
        packages = packages ",\n" package(id, $1, $2, "\"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", " \
            "\"referenceType\": \"purl\", \"referenceLocator\": \"" purl "\"}]")
        relations = relations ",\n" relation("Program", "STATIC_LINK", id)
    }
    END {
        printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n"
        printf "  \"name\": \"%s-%s\",\n", name, version
        printf "  \"documentNamespace\": \"https://spdx.org/spdxdocs/%s-%s-%s\",\n", name, version, sum
        printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: torchkeeper-sbom\"]},\n", created
        printf "  \"packages\": [\n%s%s\n  ],\n", package("Program", name, version, \
            "\"primaryPackagePurpose\": \"APPLICATION\", \"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"" sum "\"}]"), packages
        printf "  \"relationships\": [\n%s%s\n  ]\n}\n", relation("DOCUMENT", "DESCRIBES", "Program"), relations
    }'
