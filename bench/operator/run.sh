#!/usr/bin/env bash
# run.sh - the operator at scale: builds what is needed, then scale.py. `make bench-operator` calls it.
#   bench/operator/run.sh [OPTION of scale.py]...
# Environment:
#   SMALL=1          a minute: 40 jobs x 4 pods by the program of build/release, checked for what was counted only
#   OPERATOR=FILE    measure this program; without it and without SMALL the one of the image, as it is shipped (root)
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

"$REPO/scripts/deps.sh" build bench
"$REPO/deploy/local/servers" build 1.34
"$REPO/bench/operator/kwok.sh"
cd "$REPO"
{
    cmake --preset release -DTK_TESTS=ON && cmake --build build/release --target ptj-operator bulk_create
} >"$LOGS/bench-operator.log" 2>&1 || die "compiling failed: $LOGS/bench-operator.log"

program=${OPERATOR:-}
options=()
if [ -n "${SMALL:-}" ]; then
    program=${program:-build/release/bin/ptj-operator}
    options=(--jobs 40 --pods 4 --idle 5 --latency 10 --pairs 1 --many 0)
elif [ -z "$program" ]; then
    need_root
    "$REPO/scripts/deps.sh" images
    deploy/images/build.sh operator
    program=build/images/ptj-operator
    layer=$(tar -xOf build/images/operator.tar manifest.json | grep -o '"Layers":\["[^"]*"' | cut -d '"' -f 4)
    tar -xOf build/images/operator.tar "$layer" | tar -xOf - ptj-operator >"$program"
    chmod +x "$program"
fi
exec python3 bench/operator/scale.py --operator "$program" "${options[@]}" "$@"
