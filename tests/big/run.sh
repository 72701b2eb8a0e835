#!/usr/bin/env bash
# run.sh - exports and checkpoints beyond 4 GiB, written to disk, read back by the trainer's readers and, where there is a
# Python with torch and safetensors, opened by those.
#   [PYTHON=FILE] [TMPDIR=FOLDER] tests/big/run.sh      needs 10 GB of disk and 10 GB of memory for some minutes
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"
PYTHON=${PYTHON:-$REPO/build/venv/bin/python}
BIG_FILES=$REPO/build/release/tests/big_files

base=${TMPDIR:-/tmp}
free=$(df -BG --output=avail "$base" | tail -n 1 | tr -dc 0-9)
if [ "$free" -lt 10 ]; then
    echo "skipped: needs 10 GB of free disk at $base (TMPDIR names another folder), there are $free GB"
    exit 0
fi
memory=$(awk '/MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
if [ "$memory" -lt 10 ]; then
    echo "skipped: needs 10 GB of memory, there are $memory GB"
    exit 0
fi
opened="and opened by torch and safetensors"
"$PYTHON" -c 'import torch, safetensors' 2>/dev/null || opened="not opened by torch: $PYTHON has none (PYTHON names another)"

scratch=$(mktemp -d "$base/test-big.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

one() { # one KIND WRITTEN READ: both paths inside the scratch folder
    say "$1"
    "$BIG_FILES" write "$1" "$scratch/$2"
    if [ "$1" != pt ]; then "$BIG_FILES" read "$1" "$scratch/$3"; fi # the trainer writes .pt, and reads none
    if [[ $opened == and* ]]; then
        "$PYTHON" "$REPO/tests/big/check.py" "$1" "$scratch/$3"
    fi
    du -sh --apparent-size "$scratch/$3" | sed 's/\s.*/ written and read back, '"${opened//\//\\/}"'/'
    rm -rf "${scratch:?}"/*
}

one pt big.pt big.pt
one safetensors big.safetensors big.safetensors
one checkpoint checkpoints checkpoints/step-0000000001
