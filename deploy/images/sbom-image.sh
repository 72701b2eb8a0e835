#!/bin/sh
# sbom-image.sh NAME VERSION [--file FILE]... [--dists FOLDER] [--wheels FILE PART]... - prints an SPDX 2.3 document in JSON:
# what is in the image that it runs in, which is one of Debian and its kin.
#
#   --file FILE     a program or library of this project, with its SHA-256
#   --dists FOLDER  a folder that pip has filled (--target): each NAME-VERSION.dist-info in it
#   --wheels FILE PART  a list of wheels, lines "NAME VERSION MB PART SHA256": those of that name, of which parts are in it
#
# All packages of the distribution that are installed are in the list. What is named and is not there is an error. The date
# is SOURCE_DATE_EPOCH, or 1970: same image, same bytes.
set -eu
name=$1 version=$2
shift 2

# Lines "TYPE NAME VERSION SUM": TYPE is deb, pypi or file; SUM is - when there is none.
debian() {
    # shellcheck disable=SC2016  # dpkg's variables, not ours
    dpkg-query -W -f '${db:Status-Status} ${Package} ${Version} ${Architecture}\n' |
        awk '$1 == "installed" { print "deb", $2, $3, $4 }'
}

file() {
    sum=$(sha256sum -- "$1") && echo "file ${1##*/} $version ${sum%% *}"
}

dists() {
    for folder in "$1"/*.dist-info; do
        [ -e "$folder/METADATA" ] || {
            echo "sbom-image: there is no *.dist-info with METADATA in $1" >&2
            return 1
        }
        awk '/^\r?$/ { exit } { sub(/\r$/, "") } /^Name: / { name = $2 } /^Version: / { version = $2 }
            END { if (name == "" || version == "") exit 1; print "pypi", tolower(name), version, "-" }' "$folder/METADATA"
    done
}

wheel() {
    awk -v want="$2" '!/^#/ && $1 == want { print "pypi", $1, $2, $5; found = 1 } END { exit !found }' "$1" || {
        echo "sbom-image: $1 has no $2" >&2
        return 1
    }
}

# Each command by itself: in a pipe or a list its failure would be lost.
parts=$(debian)
while [ $# -gt 0 ]; do
    case $1 in
    --file) used=2 more=$(file "$2") ;;
    --dists) used=2 more=$(dists "$2") ;;
    --wheels) used=3 more=$(wheel "$2" "$3") ;;
    *) echo "sbom-image: $1: expected --file, --dists or --wheels" >&2 && exit 2 ;;
    esac
    shift "$used"
    parts="$parts
$more"
done
created=$(date -u -d "@${SOURCE_DATE_EPOCH:-0}" +%Y-%m-%dT%H:%M:%SZ)
# shellcheck source=/dev/null
distribution=$(. /etc/os-release && echo "$ID")
printf '%s\n' "$parts" | LC_ALL=C sort -u >/tmp/sbom-parts.$$
trap 'rm -f /tmp/sbom-parts.$$' EXIT
sum=$(sha256sum </tmp/sbom-parts.$$ | cut -d ' ' -f 1)
awk -v name="$name" -v version="$version" -v sum="$sum" -v created="$created" -v distribution="$distribution" '
    function escaped(text) { gsub(/\+/, "%2B", text); gsub(/:/, "%3A", text); return text }
    function package(id, name, version, more) {
        return sprintf("    {\"SPDXID\": \"SPDXRef-%s\", \"name\": \"%s\", \"versionInfo\": \"%s\", " \
            "\"downloadLocation\": \"NOASSERTION\", \"filesAnalyzed\": false, \"licenseConcluded\": \"NOASSERTION\", " \
            "\"licenseDeclared\": \"NOASSERTION\", \"copyrightText\": \"NOASSERTION\", %s}", id, name, version, more)
    }
    function relation(from, type, to) {
        return sprintf("    {\"spdxElementId\": \"SPDXRef-%s\", \"relationshipType\": \"%s\", " \
            "\"relatedSpdxElement\": \"SPDXRef-%s\"}", from, type, to)
    }
    function checksum(sum) { return "\"checksums\": [{\"algorithm\": \"SHA256\", \"checksumValue\": \"" sum "\"}]" }
    function reference(purl) {
        return "\"externalRefs\": [{\"referenceCategory\": \"PACKAGE-MANAGER\", \"referenceType\": \"purl\", " \
            "\"referenceLocator\": \"" purl "\"}]"
    }
    {
        id = $1 "-" $2
        gsub(/[^A-Za-z0-9.-]/, "-", id)
        if (seen[id]++)
            id = id "-" seen[id]
        if ($1 == "deb")
            more = reference("pkg:deb/" distribution "/" escaped($2) "@" escaped($3) "?arch=" $4)
        else if ($1 == "pypi")
            more = reference("pkg:pypi/" $2 "@" escaped($3)) ($4 == "-" ? "" : ", " checksum($4))
        else
            more = "\"primaryPackagePurpose\": \"APPLICATION\", " checksum($4)
        packages = packages ",\n" package(id, $2, $3, more)
        relations = relations ",\n" relation("Image", "CONTAINS", id)
    }
    END {
        printf "{\n  \"spdxVersion\": \"SPDX-2.3\",\n  \"dataLicense\": \"CC0-1.0\",\n  \"SPDXID\": \"SPDXRef-DOCUMENT\",\n"
        printf "  \"name\": \"%s-%s\",\n", name, version
        printf "  \"documentNamespace\": \"https://spdx.org/spdxdocs/%s-%s-%s\",\n", name, version, sum
        printf "  \"creationInfo\": {\"created\": \"%s\", \"creators\": [\"Tool: torchkeeper-sbom\"]},\n", created
        printf "  \"packages\": [\n%s%s\n  ],\n", package("Image", name, version, "\"primaryPackagePurpose\": \"CONTAINER\""), packages
        printf "  \"relationships\": [\n%s%s\n  ]\n}\n", relation("DOCUMENT", "DESCRIBES", "Image"), relations
    }' /tmp/sbom-parts.$$
