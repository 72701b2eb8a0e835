#!/usr/bin/env bash
# version.sh TREE VERSION PROGRAM... - CMakeLists.txt has the only version number: each program prints it and nothing else, the
# chart has it, and CHANGELOG.md has it at the top.
set -euo pipefail
tree=$1 version=$2
shift 2

wrong() {
    printf '%s\n' "$*" >&2
    exit 1
}

for program in "$@"; do
    printed=$("$program" --version) || wrong "${program##*/} --version fails"
    [[ $printed =~ ^"${program##*/}"(' (Torchkeeper)')?" $version"$ ]] || wrong "${program##*/} --version: $printed, expected $version"
done
chart=$(sed -n 's/^version: //p' "$tree/deploy/chart/Chart.yaml")
[ "$chart" = "$version" ] || wrong "deploy/chart/Chart.yaml: version $chart, expected $version"
newest=$(sed -n '/^## /{s/^## \([0-9.]*\).*/\1/p;q}' "$tree/CHANGELOG.md")
[ "$newest" = "$version" ] || wrong "CHANGELOG.md: the newest is $newest, expected $version"
