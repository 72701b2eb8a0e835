#!/usr/bin/env bash
# run.sh - the cases of two nodes, against the local Kubernetes with NODES=2 and TIMERS=short (root). Arguments go to pytest.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

IMAGE_NAMES=(operator trainer launcher) # a TensorBoard in each node would take seconds that nothing here needs
need_root
already_built || need_disk "$NEEDED_GB"
"$REPO/scripts/deps.sh" e2e build cluster images
trap stop_begun EXIT
start_images
export NODES=2 TIMERS=short
use_local_cluster
install_operator
[ -d "$REPO/build/venv" ] || die "build/venv is not there: run e2e/run.sh --prepare"
cd "$REPO/e2e"
"$REPO/build/venv/bin/python" -m pytest -p no:cacheprovider -o testpaths=nodes "$@"
