#!/usr/bin/env bash
# kwok.sh - builds kwok, which plays the nodes, into build/tools. The version is fixed here, its parts by its own go.sum.
set -euo pipefail
export LC_ALL=C

readonly KWOK=sigs.k8s.io/kwok/cmd/kwok KWOK_VERSION=v0.7.0
HERE=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/../../deploy/local")
readonly HERE
for file in basics say tools; do
    # shellcheck source=/dev/null
    . "$HERE/lib/$file.sh"
done

is_current() {
    [ -x "$TOOLS/kwok" ] && [ "$(cat -- "$TOOLS/kwok.stamp" 2>/dev/null)" = "$KWOK@$KWOK_VERSION" ]
}

is_current && exit 0
require_go
lock_tools
is_current && exit 0 # by somebody else, meanwhile
say "building kwok $KWOK_VERSION: about 2 minutes the first time"
if ! GOBIN=$TOOLS/kwok.new GOFLAGS='' CGO_ENABLED=0 nice go install -trimpath -ldflags "-s -w" "$KWOK@$KWOK_VERSION" >"$TOOLS/kwok.log" 2>&1; then
    tail -n 8 -- "$TOOLS/kwok.log" >&2
    die "building kwok failed; log: $TOOLS/kwok.log"
fi
mv -f -- "$TOOLS/kwok.new/kwok" "$TOOLS/kwok"
rm -rf -- "$TOOLS/kwok.new"
printf '%s\n' "$KWOK@$KWOK_VERSION" >"$TOOLS/kwok.stamp"
