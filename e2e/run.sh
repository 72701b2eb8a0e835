#!/usr/bin/env bash
# run.sh - the end-to-end cases against the local Kubernetes (root): most of them side by side, each in a namespace of its own,
# then those whose operator is killed, side by side too, then those marked serial. Arguments go to pytest: e2e/run.sh -k backoff
#   e2e/run.sh --prepare    only what takes long: the images and the Python environment; no cluster
#   e2e/run.sh --long ...   the cases marked long, which make test leaves out
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../scripts/lib.sh"

VENV=$REPO/build/venv
REQUIREMENTS=$REPO/e2e/requirements.txt
KUBERNETES_AND_TORCH_GB=22
AT_ONCE=4 # cases mostly wait, for pods to start and end

venv_is_ready() {
    finish venv || die "the Python environment failed: build/logs/venv.log"
}

# PyTorch judges what we train: it lives in an environment of its own, never in an image.
need_root
if ! already_built || [ ! -d "$VENV" ]; then
    need_disk "$KUBERNETES_AND_TORCH_GB"
fi
"$REPO/scripts/deps.sh" e2e build cluster images
trap stop_begun EXIT
start_images
begin venv prepare_venv "$VENV" "$REQUIREMENTS" "PyTorch and TensorBoard (build/venv, 6 GB)"
if [ "${1:-}" = --prepare ]; then
    wait_images
    venv_is_ready
    exit 0
fi
use_local_cluster
install_operator
venv_is_ready
cd "$REPO/e2e"
# cases PYTEST-ARGUMENT...: 5 says that none was selected.
cases() { "$VENV/bin/python" -m pytest -p no:cacheprovider "$@" || { [ $? -eq 5 ] && none=$((none + 1)); }; }
none=0 which="not long"
if [ "${1:-}" = --long ]; then
    which=long && shift
    "$REPO/scripts/deps.sh" registry policies
    "$REPO/deploy/local/kube-router"
fi
beside=(-n "$AT_ONCE" --dist worksteal)
cases -m "$which and not serial and not killed" "${beside[@]}" "$@"
cases -m "$which and killed" "${beside[@]}" "$@"
cases -m "$which and serial" "$@"
[ "$none" -lt 3 ] || die "no case is called: $*"
