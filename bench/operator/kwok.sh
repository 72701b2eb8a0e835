#!/usr/bin/env bash
# kwok.sh - build kwok, which plays the nodes, into build/tools. The version is fixed here, its parts by its own go.sum.
set -euo pipefail
export LC_ALL=C

HERE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../../deploy/local")
readonly HERE
for file in basics say compile tools; do
    # shellcheck source=/dev/null
    . "$HERE/lib/$file.sh"
done

readonly PROGRAM=(kwok sigs.k8s.io/kwok/cmd/kwok v0.7.0)
go_program_is_current "${PROGRAM[@]}" && exit 0
lock_tools
install_go_program "${PROGRAM[@]}" "kwok: about 2 minutes the first time"
