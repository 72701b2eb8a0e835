#!/bin/sh
# sbom-image.sh NAME VERSION [--file FILE]... [--dists FOLDER] [--wheels FILE PART]... - prints an SPDX 2.3 document in JSON:
# what is in the image that it runs in, which is one of Debian and its kin; beside it lies spdx.awk.
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

# Lines as spdx.awk reads them.
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
awk -v name="$name" -v version="$version" -v main=Image -v purpose=CONTAINER -v relation=CONTAINS -v sum="$sum" \
    -v created="$created" -v distribution="$distribution" -f "$(dirname -- "$0")/spdx.awk" /tmp/sbom-parts.$$
