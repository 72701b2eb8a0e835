#!/usr/bin/env bash
# demo.sh - from a bare machine to a trained network: tools, Kubernetes, images, operator, job, result.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"

JOB=mnist
SAMPLE=$REPO/deploy/samples/mnist.yaml
EPOCHS=${EPOCHS:-10}
pids=()

stop_children() {
    local pid
    stop_begun
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null || true
    done
}
trap stop_children EXIT

prepare_cluster() {
    case ${CLUSTER:-local} in
    local)
        need_root
        already_built || need_disk "$NEEDED_GB"
        "$REPO/scripts/deps.sh" build cluster images
        say "images and Kubernetes (compiled the first time: six minutes on two cores)"
        start_images
        "$REPO/deploy/local/cluster" build
        begin cli build_cli
        use_local_cluster
        finish cli >/dev/null || die "building kubectl-ptj failed: build/logs/cli.log"
        ;;
    current)
        command -v kubectl >/dev/null || die "CLUSTER=current needs kubectl in PATH"
        kubectl version -o json >/dev/null 2>&1 || die "CLUSTER=current: the current kubectl context does not answer"
        check_source
        docker info >/dev/null 2>&1 || "$REPO/scripts/deps.sh" images
        "$REPO/deploy/images/build.sh" all
        case ${LOAD:-} in
        '') push_images ;;
        none) ;;
        *) load_into_nodes ;;
        esac
        ;;
    *) die "CLUSTER=$CLUSTER: expected local or current" ;;
    esac
}

# The sample as it can run here: its gloo backend needs no GPU, and a cluster without GPUs would never schedule its pod.
sample() {
    local gpus
    gpus=$(kubectl get nodes -o 'jsonpath={.items[*].status.allocatable.nvidia\.com/gpu}')
    if [[ $gpus =~ [1-9] ]]; then manifest "$SAMPLE"; else manifest "$SAMPLE" | sed '/nvidia\.com\/gpu:/d'; fi |
        sed "s/^\( *\)- --backend$/\1- --epochs\n\1- \"$EPOCHS\"\n&/"
}

# The job of an earlier run goes; its volume stays.
apply_job() {
    kubectl delete ptj "$JOB" --ignore-not-found --cascade=foreground --wait >/dev/null
    sample | kubectl apply -f - >/dev/null
}

phase() { kubectl get ptj "$JOB" -o 'jsonpath={.status.phase}'; }

# Wait until the job has left Pending, saying why it has not when that takes long.
wait_started() {
    local reason last=
    for _ in $(seq 900); do
        case $(phase) in
        '' | Pending | Unknown) ;;
        *) return ;;
        esac
        reason=$(kubectl get ptj "$JOB" -o 'jsonpath={.status.reason}')
        [ "$reason" = "$last" ] || { echo "    Pending ${reason:+($reason)}" && last=$reason; }
        sleep 1
    done
    die "the job did not start within 15 minutes: kubectl describe ptj $JOB"
}

follow_job() {
    local shown
    exec 3< <(exec kubectl get ptj "$JOB" -w --output-watch-events=false)
    pids+=($!)
    sed -u '/ \(Succeeded\|Failed\) /q' <&3 &
    shown=$!
    pids+=("$shown")
    wait_started
    until [[ $(phase) =~ ^(Succeeded|Failed)$ ]]; do # a restarted job goes on in a new pod
        kubectl logs -f "$JOB-node-0" 2>/dev/null || true
        sleep 1
    done
    kubectl wait --for=condition=Completed "ptj/$JOB" --timeout=60s >/dev/null ||
        die "the job did not succeed: $(kubectl get ptj "$JOB" -o 'jsonpath={.status.phase} {.status.reason} {.status.lastFailure.message}')"
    timeout 600 tail --pid="$shown" -f /dev/null || true # until the watch has printed the end
}

show_result() {
    local accuracy
    accuracy=$(kubectl logs "$JOB-node-0" | sed -n 's/.*test accuracy: *\([0-9.]*\).*/\1/p' | tail -n 1)
    [ -n "$accuracy" ] || die "the job succeeded but its log shows no test accuracy"
    say "done: job $(phase), test accuracy $accuracy"
    [ "${CLUSTER:-local}" = current ] || echo "    kubectl here: export PATH=$REPO/build/tools:\$PATH KUBECONFIG=$KUBECONFIG"
    cat <<END
    TensorBoard:  kubectl port-forward svc/$JOB-tensorboard 6006   then open http://localhost:6006
    the job:      kubectl get ptj $JOB; kubectl describe ptj $JOB
END
    [ "${CLUSTER:-local}" = current ] || cat <<END
    more:         kubectl ptj why $JOB; kubectl ptj logs $JOB; kubectl ptj --help
    stop it all:  make cluster-down
END
}

prepare_cluster
say "operator"
install_operator
say "job $JOB: $EPOCHS epochs of the MNIST CNN on Fashion-MNIST, 4 ranks"
apply_job
follow_job
show_result
