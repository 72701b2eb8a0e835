#!/usr/bin/env bash
# make.sh - make the pictures of README and docs from running programs (root): the output of `kubectl ptj` for jobs on the local
# cluster, TensorBoard's page of the sample in a headless browser, and the dashboards. docs/pictures/flow.svg is drawn by hand.
#   scripts/pictures/make.sh [cluster] [dashboards]      cluster: all but the dashboards, which need neither root nor a node
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../lib.sh"

OUT=$REPO/docs/pictures
VENV=$REPO/build/venv-pictures
NS=pictures
COLUMNS_WATCH=110
PORT=16006
DRAWN=$REPO/scripts/pictures/dashboards
PAGES=$REPO/build/dashboards

stop() {
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

# until_ WHAT COMMAND...: wait until the command prints WHAT, ten minutes at most.
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

screen() { # screen NAME TITLE ROWS COMMAND: draw the terminal of the command after some seconds
    tmux -L torchkeeper-pictures -f /dev/null new-session -d -s "$1" -x "$COLUMNS_WATCH" -y "$3" "$4; sleep 60"
    sleep 6 # some frames
    tmux -L torchkeeper-pictures capture-pane -t "$1" -e -p |
        "$VENV/bin/python" "$REPO/scripts/pictures/screen.py" "$2" "$COLUMNS_WATCH" "$OUT/$1.svg"
    tmux -L torchkeeper-pictures kill-session -t "$1"
}

cluster() {
    need_root
    "$REPO/scripts/deps.sh" build cluster images pictures
    prepare_venv "$VENV" "$REPO/scripts/pictures/requirements.txt" "the programs that draw a terminal"
    trap stop EXIT
    start_images
    begin cli build_cli
    use_local_cluster
    finish cli >/dev/null || die "building kubectl-ptj failed: build/logs/cli.log"
    install_operator
    kubectl create namespace "$NS" >/dev/null
    say "jobs: one failed, one trains, one waits for more GPUs than there are"
    job bad-path 's#- /usr/share/datasets/fashion-mnist#- /data/fashion-mnist#'
    until_ Failed phase bad-path # first: a node of two CPUs has room for one of them
    screen why "kubectl ptj why bad-path" 24 "kubectl ptj why bad-path -n $NS"
    job mnist 's/^\( *\)- --backend$/\1- --epochs\n\1- "60"\n&/'
    job too-large 's#nvidia.com/gpu: 4#nvidia.com/gpu: 64#'
    until_ yes past_half mnist
    screen watch "kubectl ptj watch" 10 "kubectl ptj watch -n $NS"
    until_ Succeeded phase mnist
    kubectl -n "$NS" rollout status deployment mnist-tensorboard --timeout=300s >/dev/null
    kubectl -n "$NS" port-forward svc/mnist-tensorboard "$PORT:6006" >"$LOGS/pictures-forward.log" &
    forward=$!
    until_ 200 curl -so /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT/"
    chromium --headless --no-sandbox --disable-gpu --window-size=1280,700 --virtual-time-budget=30000 \
        --screenshot="$OUT/tensorboard.png" "http://127.0.0.1:$PORT/#scalars&_smoothingWeight=0&tagFilter=train%7Cval" 2>"$LOGS/pictures-browser.log"
}

# Grafana's own components; installed again when the lock file changes.
prepare_components() {
    local want
    want=$(sha256sum <"$DRAWN/package-lock.json")
    [ "$(cat "$PAGES/.lock" 2>/dev/null)" = "$want" ] && return
    say "Grafana's components (build/dashboards, 460 MB)"
    cp "$DRAWN"/package*.json "$PAGES/"
    npm --prefix "$PAGES" ci --ignore-scripts --no-audit --no-fund || return 1
    echo "$want" >"$PAGES/.lock"
}

# dashboard NAME: its picture, as high as its panels.
dashboard() {
    local board=$REPO/deploy/chart/dashboards/$1.json height
    height=$(python3 -c 'import json, sys
print(8 + 38 * max(p["gridPos"]["y"] + p["gridPos"]["h"] for p in json.load(open(sys.argv[1]))["panels"]))' "$board")
    (cd "$PAGES" && node_modules/.bin/esbuild page.jsx --bundle --format=esm --jsx=automatic --log-level=error --outfile=page.js \
        --alias:BOARD="$board" --alias:ANSWERS=./answers.json --alias:react-custom-scrollbars-2=./scrollbars.js \
        --loader:.ttf=dataurl --define:global=window --define:process.env.NODE_ENV='"production"')
    chromium --headless --no-sandbox --disable-gpu --allow-file-access-from-files --window-size="1008,$height" --virtual-time-budget=30000 \
        --screenshot="$PAGES/$1.png" "file://$PAGES/index.html" 2>"$LOGS/pictures-$1.log"
    pngquant --force --output "$OUT/dashboard-$1.png" 64 "$PAGES/$1.png"
}

dashboards() {
    "$REPO/scripts/deps.sh" build pictures
    trap stop_begun EXIT
    mkdir -p "$PAGES"
    begin components prepare_components
    "$REPO/e2e/versions/run.sh" record "$PAGES/answers.json"
    finish components >/dev/null || die "Grafana's components are missing: build/logs/components.log"
    say "pictures of the dashboards"
    cp "$DRAWN"/{page.jsx,scrollbars.js,index.html} "$PAGES/"
    dashboard jobs
    dashboard operator
}

[ $# -gt 0 ] || set -- cluster dashboards
for part in "$@"; do
    case $part in
    cluster | dashboards) ;;
    *) die "unknown part \"$part\"; expected cluster or dashboards" ;;
    esac
done
for part in "$@"; do ("$part"); done
ls -l "$OUT"
