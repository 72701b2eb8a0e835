#!/usr/bin/env bash
# make.sh - the pictures of README and docs, made anew from running programs (root): what `kubectl ptj` shows of jobs on the local
# cluster, and TensorBoard's page of the sample by a headless browser. docs/pictures/flow.svg is drawn by hand.
#   scripts/pictures/make.sh
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

OUT=$REPO/docs/pictures
VENV=$REPO/build/venv-pictures
NS=pictures
COLUMNS_WATCH=110
PORT=16006

stop() {
    stop_images
    stop_begun
    tmux -L torchkeeper-pictures kill-server 2>/dev/null || true
    [ -z "${forward:-}" ] || kill "$forward" 2>/dev/null || true
    "$REPO/deploy/local/cluster" down
}

# job NAME SED-EXPRESSION...: the sample under another name, changed.
job() {
    local name=$1
    shift
    manifest "$REPO/deploy/samples/mnist.yaml" | sed "s/name: mnist$/name: $name/; s/claimName: mnist/claimName: $name/" |
        sed "$@" | kubectl -n "$NS" apply -f - >/dev/null
}

phase() { kubectl -n "$NS" get ptj "$1" -o 'jsonpath={.status.phase}'; }
percent() { kubectl -n "$NS" get ptj "$1" -o 'jsonpath={.status.progress.percent}'; }

# until WHAT COMMAND...: it prints what is wanted within ten minutes.
until_() {
    local what=$1
    shift
    for _ in $(seq 600); do
        [ "$("$@")" != "$what" ] || return 0
        sleep 1
    done
    die "waited ten minutes for \"$what\" of: $*"
}
past_half() { [ "$(percent "$1")" -ge 55 ] 2>/dev/null && echo yes; }

screen() { # screen NAME TITLE ROWS COMMAND: what the command shows, once it has shown anything
    tmux -L torchkeeper-pictures -f /dev/null new-session -d -s "$1" -x "$COLUMNS_WATCH" -y "$3" "$4; sleep 60"
    sleep 6 # some frames
    tmux -L torchkeeper-pictures capture-pane -t "$1" -e -p |
        "$VENV/bin/python" "$REPO/scripts/pictures/screen.py" "$2" "$COLUMNS_WATCH" "$OUT/$1.svg"
    tmux -L torchkeeper-pictures kill-session -t "$1"
}

need_root
"$REPO/scripts/deps.sh" build cluster images pictures
prepare_venv "$VENV" "$REPO/scripts/pictures/requirements.txt" "what draws a terminal"
trap stop EXIT
start_images
begin cli build_cli
use_local_cluster
wait_images
finish cli >/dev/null || die "building kubectl-ptj failed: build/logs/cli.log"
load_images
install_operator
kubectl create namespace "$NS" >/dev/null
say "jobs: one trains, one failed, one waits for more GPUs than there are"
job mnist 's/^\( *\)- --backend$/\1- --epochs\n\1- "60"\n&/'
job bad-path 's#- /usr/share/datasets/fashion-mnist#- /data/fashion-mnist#'
job too-large 's#nvidia.com/gpu: 4#nvidia.com/gpu: 64#'
until_ Failed phase bad-path
until_ yes past_half mnist
say "pictures"
screen watch "kubectl ptj watch" 10 "kubectl ptj watch -n $NS"
screen why "kubectl ptj why bad-path" 24 "kubectl ptj why bad-path -n $NS"
until_ Succeeded phase mnist
kubectl -n "$NS" rollout status deployment mnist-tensorboard --timeout=300s >/dev/null
kubectl -n "$NS" port-forward svc/mnist-tensorboard "$PORT:6006" >"$LOGS/pictures-forward.log" &
forward=$!
until_ 200 curl -so /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/"
chromium --headless --no-sandbox --disable-gpu --window-size=1280,700 --virtual-time-budget=30000 \
    --screenshot="$OUT/tensorboard.png" "http://127.0.0.1:$PORT/#scalars&_smoothingWeight=0&tagFilter=train%7Cval" 2>"$LOGS/pictures-browser.log"
ls -l "$OUT"
