#!/usr/bin/env bash
# run.sh - training jobs on bad days, against the local Kubernetes (root). Arguments go to chaos.py: run.sh --help
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

case " $* " in *' --help '* | *' -h '*) exec python3 "$REPO/e2e/chaos/chaos.py" --help ;; esac
need_root
already_built || need_disk "$NEEDED_GB"
"$REPO/scripts/deps.sh" e2e cluster images
trap stop_begun EXIT
start_images
use_local_cluster
install_operator
python3 "$REPO/e2e/chaos/chaos.py" "$@"
