#!/usr/bin/env bash
# run.sh - the operator against API servers of other Kubernetes versions than the local cluster's, and the chart with what it
# brings for Prometheus against the newest; no root, no node.
#   e2e/versions/run.sh [MINOR | gangs | chart]... [-- PYTEST-ARGUMENT...]      e2e/versions/run.sh 1.36 -- -k tensorboard
#   e2e/versions/run.sh record FILE     what a Prometheus answers to the dashboards' queries, by record.py
# Without MINOR: the oldest and the newest that deploy/local/servers has, gangs, and the chart.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/../../scripts/lib.sh"

SERVERS=$REPO/deploy/local/servers
VENV=$REPO/build/venv-versions
REQUIREMENTS=$REPO/e2e/versions/requirements.txt
MONITORS_MODULE=github.com/prometheus-operator/prometheus-operator@v0.85.0
BUILD_GB=10 # three versions of Kubernetes, with what the Go compiler keeps of them

build_operator() {
    cmake --preset release >"$LOGS/cmake-release.log" 2>&1 || die "cmake --preset release failed: build/logs/cmake-release.log"
    cmake --build build/release --target ptj-operator torchrun kubectl-ptj >"$LOGS/build-operator.log" 2>&1 ||
        die "compiling the operator and the launcher failed: build/logs/build-operator.log"
}

release_of() {
    "$SERVERS" versions | awk -v minor="$1" '$1 == minor { print $2 }'
}

# find_monitors: the folder with the definitions of PodMonitor and PrometheusRule, from the Prometheus operator's Go module.
find_monitors() (
    HERE=$REPO/deploy/local
    for file in basics say compile tools; do
        # shellcheck source=/dev/null
        . "$HERE/lib/$file.sh"
    done
    require_go
    go mod download -json "$MONITORS_MODULE" | sed -n 's|^.*"Dir": "\(.*\)".*|\1/example/prometheus-operator-crd|p'
)

# cases MINOR [SERVER-OPTION...]: all cases against this version, in a folder that is gone afterwards.
cases() {
    local release folder result=0
    release=$(release_of "$1")
    folder=$(mktemp -d "$folders/XXXXXX")
    say "Kubernetes $release ${*:2}"
    "$SERVERS" up "$folder" --version "$1" --controller-manager "${@:2}" || return 1
    (cd "$REPO/e2e" && RELEASE=$release TORCHKEEPER_STATE=$folder KUBECONFIG=$folder/admin.conf PATH=$REPO/build/tools:$PATH \
        "$VENV/bin/python" -m pytest -p no:cacheprovider "${files[@]}" "${pytest[@]}") || result=1
    "$SERVERS" down "$folder" || result=1
    return "$result"
}

# deploy/local/servers itself.
servers() { (cd "$REPO/e2e" && "$VENV/bin/python" -m pytest -p no:cacheprovider versions/test_servers.py); }

# The chart's cases, which need servers of their own; and the unit test that is skipped where kubectl is not built yet.
chart() {
    local files=(versions/test_chart.py)
    if [ -x "$REPO/build/tools/kubectl" ]; then
        /usr/bin/python3 "$REPO/tests/unit/deploy/kustomize.py" "$REPO" || return 1
    fi
    cases "$newest"
}

# PodGroups, of Kubernetes itself too, whose API needs a feature gate.
gangs() {
    local files=(versions/test_gangs.py)
    cases "$newest" --apiserver-arg --feature-gates=GenericWorkload=true --apiserver-arg --runtime-config=scheduling.k8s.io/v1alpha2=true
}

# The numbers for the pictures of the dashboards.
record() {
    local files=(versions/record.py)
    cmake --build build/release --target trainer >"$LOGS/build-trainer.log" 2>&1 || die "compiling the trainer failed: build/logs/build-trainer.log"
    cases "$newest"
}

prepare_chart() {
    "$REPO/scripts/deps.sh" metrics
    "$SERVERS" build "$newest"
    "$REPO/deploy/local/helm"
    MONITORS=$(find_monitors)
    [ -d "$MONITORS" ] || die "Go has not fetched $MONITORS_MODULE"
    export MONITORS
}

# Two at a time: half of their time they wait.
beside() {
    begin "$@"
    pair+=("$1")
    [ ${#pair[@]} -lt 2 ] || finish_pair
}

finish_pair() {
    finish "${pair[@]}" || failed+=("${FAILED[@]#versions-}")
    pair=()
}

stop_all() {
    local folder
    stop_begun
    for folder in "$folders"/*; do
        [ ! -d "$folder" ] || "$SERVERS" down "$folder" 2>/dev/null || true
    done
    rmdir "$folders" 2>/dev/null || true
}

files=(versions/test_versions.py versions/test_admission.py)
minors=() pytest=() chart='' gangs=''
if [ "${1:-}" = record ]; then
    [ $# -eq 2 ] || die "record wants one file to write"
    ANSWERS=$(realpath -m "$2")
    export ANSWERS
    chart=record
    shift 2
fi
while [ $# -gt 0 ]; do
    if [ "$1" = -- ]; then
        shift
        pytest=("$@")
        break
    fi
    if [ "$1" = chart ]; then chart=chart; elif [ "$1" = gangs ]; then gangs=gangs; else minors+=("$1"); fi
    shift
done
cd "$REPO"
"$REPO/scripts/deps.sh" build servers
[ -d "$REPO/build/tools" ] || need_disk "$BUILD_GB"
mapfile -t range < <("$SERVERS" versions | cut -d ' ' -f 1 | sort -V | sed -n '1p;$p')
newest=${range[-1]}
if [ ${#minors[@]} -eq 0 ] && [ -z "$chart$gangs" ]; then
    chart=chart gangs=gangs minors=("${range[@]}")
fi
prepare_venv "$VENV" "$REQUIREMENTS" "pytest (build/venv-versions)"
build_operator
[ ${#minors[@]} -eq 0 ] || "$SERVERS" build "${minors[@]}"
[ -z "$gangs" ] || "$SERVERS" build "$newest"
[ -z "$chart" ] || prepare_chart
folders=$(mktemp -d)
trap stop_all EXIT
failed=() pair=()
for minor in "${minors[@]}"; do
    beside "versions-$minor" cases "$minor"
done
[ -z "$gangs" ] || beside "versions-$gangs" "$gangs"
[ -z "$chart" ] || beside "versions-$chart" "$chart"
[ ${#minors[@]} -eq 0 ] || beside versions-servers servers
finish_pair
[ ${#failed[@]} -eq 0 ] || die "failed: ${failed[*]}"
say "passed: ${minors[*]} $gangs $chart"
