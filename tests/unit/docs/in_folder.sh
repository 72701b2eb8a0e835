#!/usr/bin/env bash
# in_folder.sh SOURCE PROGRAMS COMMAND... - run the command in an empty folder that has tests/golden, with the programs in PATH.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tests"
ln -s "$1/tests/golden" "$folder/tests/golden"
cd "$folder"
PATH=$2:$PATH "${@:3}"
