# lib.sh - what demo.sh and e2e/run.sh share: messages, the cluster in use, images in it, the operator in it.
# shellcheck shell=bash

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
LOGS=$REPO/build/logs
IMAGE_PREFIX=localhost/torchkeeper
IMAGE_NAMES=(operator trainer launcher tensorboard)
export NEEDED_GB=15

# Bold for people; a file or a pipe gets the words alone.
say() {
    if [ -t 1 ]; then printf '\033[1m==> %s\033[0m\n' "$*"; else printf '==> %s\n' "$*"; fi
}
die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

mkdir -p "$LOGS" 2>/dev/null || die "cannot write to $LOGS"

# pack PARENT FILE NAME...: a tar whose bytes depend on names and contents alone.
pack() {
    tar --create --file="$2" --directory="$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX -- "${@:3}"
}

# begin NAME COMMAND...: runs it in the background, in its own process group, with output to build/logs/NAME.log. It refuses a
#     name that is still running.
# finish NAME...: waits for these and prints their output, of those that failed last; fails if one of them has failed, and FAILED has their names.
# stop_begun: for the exit trap.
declare -A BEGUN=()
begin() {
    [ -z "${BEGUN[$1]:-}" ] || die "$1 has been begun already"
    set -m
    "${@:2}" >"$LOGS/$1.log" 2>&1 </dev/null &
    set +m
    BEGUN[$1]=$!
}
finish() {
    local name
    FAILED=()
    for name in "$@"; do
        if wait "${BEGUN[$name]}"; then
            cat "$LOGS/$name.log"
        else
            FAILED+=("$name")
        fi
        unset "BEGUN[$name]"
    done
    for name in "${FAILED[@]}"; do cat "$LOGS/$name.log"; done
    [ ${#FAILED[@]} -eq 0 ]
}
stop_begun() {
    local pid
    for pid in "${BEGUN[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
    for pid in "${BEGUN[@]}"; do wait "$pid" 2>/dev/null || true; done
}

need_disk() { # need_disk GB: check the free space of the checkout's file system
    local free
    free=$(df -BG --output=avail "$REPO" | tail -n 1 | tr -dc 0-9)
    [ "$free" -ge "$1" ] || die "needs $1 GB of free disk at $REPO, there are $free GB"
}

already_built() { # what takes the disk is there
    [ -x "$REPO/build/tools/kubectl" ] && [ -e "$REPO/build/images/tensorboard.tar" ]
}

prepare_venv() { # prepare_venv FOLDER REQUIREMENTS WHAT: a Python environment, created again only when the requirements change
    local want
    want=$(sha256sum <"$2")
    [ "$(cat "$1/.requirements" 2>/dev/null)" = "$want" ] && return
    say "Python environment with $3"
    [ -x "$1/bin/pip" ] || python3 -m venv --clear "$1" # an interrupted one has a Python and no pip
    "$1/bin/pip" install -q -r "$2"
    echo "$want" >"$1/.requirements"
}

need_root() {
    [ "$(id -u)" -eq 0 ] || die "the local Kubernetes needs root; with CLUSTER=current the current kubectl context is used"
}

# The one-node Kubernetes with the images that start_images builds, its kubectl and KUBECONFIG. The images are imported while the
# servers start, which leaves most of two CPUs idle; what failed is imported again when they are up.
use_local_cluster() {
    "$REPO/deploy/local/cluster" build
    wait_images
    begin load load_early
    GPUS=${GPUS:-8} "$REPO/deploy/local/cluster" up
    eval "$("$REPO/deploy/local/cluster" env)"
    export PATH="$REPO/build/tools:$PATH"
    finish load >/dev/null || true
    load_images
}

load_early() {
    until image_list >/dev/null; do sleep 0.2; done
    load_images
}

# Install kubectl's plugin next to the local cluster's kubectl. Two demos may run side by side, and ninja has no lock.
build_cli() (
    flock 9
    cmake -S "$REPO" -B "$REPO/build/cli" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTK_TRAINER=OFF -DTK_TESTS=OFF &&
        cmake --build "$REPO/build/cli" --target kubectl-ptj && mkdir -p "$REPO/build/tools" &&
        install "$REPO/build/cli/bin/kubectl-ptj" "$REPO/build/tools/"
) 9>"$LOGS/cli.lock"

start_images() { begin images "$REPO/deploy/images/build.sh" all; }

wait_images() {
    if kill -0 "${BEGUN[images]}" 2>/dev/null; then
        say "waiting for the images (log: build/logs/images.log)"
        tail --pid="${BEGUN[images]}" -n +1 -f "$LOGS/images.log" | grep --line-buffered '^images: ' || true
    fi
    finish images >/dev/null || die "building the images failed: $(tail -n 1 "$LOGS/images.log")"
}

# Import the images that the local containerd lacks, or has in an older build.
load_images() {
    local name stamp
    for name in "${IMAGE_NAMES[@]}"; do
        stamp=$REPO/build/images/$name.loaded
        if ! [ "$stamp" -nt "$REPO/build/images/$name.tar" ] || ! image_present "$name"; then
            "$REPO/deploy/local/cluster" load "$REPO/build/images/$name.tar" >"$LOGS/load-$name.log" 2>&1 ||
                die "importing $name.tar failed: $(tail -n 1 "$LOGS/load-$name.log")"
            touch "$stamp"
        fi
    done
}

image_list() { ctr --address "${1:-/run/torchkeeper/containerd.sock}" -n k8s.io images ls -q 2>/dev/null; }
image_present() { # on each node
    local socket
    for socket in /run/torchkeeper/containerd.sock /run/torchkeeper/node2/containerd.sock; do
        [ ! -S "$socket" ] || grep -qx "$IMAGE_PREFIX/$1:dev" <<<"$(image_list "$socket")" || return 1
    done
}

push_images() { # for CLUSTER=current
    local name
    for name in "${IMAGE_NAMES[@]}"; do
        "$REPO/deploy/images/build.sh" push "$name" "$REGISTRY/$name:dev"
    done
}

# Where the images of a cluster of one's own come from (CLUSTER=current): REGISTRY, or LOAD=kind, minikube or none.
check_source() {
    local context
    [ -z "${REGISTRY:-}" ] || [ -z "${LOAD:-}" ] || die "REGISTRY and LOAD are both set: expected one of them"
    case ${LOAD:-} in
    '') [ -n "${REGISTRY:-}" ] || die "CLUSTER=current needs REGISTRY=host/path to push the images to, or LOAD=kind, minikube or none" ;;
    kind | minikube)
        command -v "$LOAD" >/dev/null || die "LOAD=$LOAD needs $LOAD in PATH"
        context=$(kubectl config current-context)
        [ "$LOAD" = minikube ] || [[ $context = kind-?* ]] || die "LOAD=kind: the current kubectl context is \"$context\", expected kind-NAME"
        ;;
    none) ;;
    *) die "LOAD=$LOAD: expected kind, minikube, or none for images that the nodes have" ;;
    esac
}

# Into the nodes of kind's cluster or of minikube's profile, which the current context names.
load_into_nodes() {
    local name file context
    context=$(kubectl config current-context)
    for name in "${IMAGE_NAMES[@]}"; do
        file=$REPO/build/images/$name.tar
        say "loading $name into $context"
        case $LOAD in
        kind) kind load image-archive "$file" --name "${context#kind-}" ;;
        minikube) minikube --profile "$context" image load "$file" ;;
        esac >"$LOGS/load-$name.log" 2>&1 || die "loading $name.tar failed: $(tail -n 1 "$LOGS/load-$name.log"); log: build/logs/load-$name.log"
    done
}

# Write a manifest with the image names of this cluster.
manifest() {
    if [ -n "${REGISTRY:-}" ]; then
        sed "s#$IMAGE_PREFIX/#$REGISTRY/#" "$1"
    else
        cat "$1"
    fi
}

# Install or update the operator; a new image under the same tag needs a new pod, which the annotation brings.
install_operator() {
    local image
    image=$(sha256sum <"$REPO/build/images/operator.tar" | cut -c1-16)
    manifest "$REPO/deploy/install.yaml" |
        sed "/^  template:\$/,/^    spec:\$/s|^    metadata:\$|&\n      annotations: {torchkeeper/image: \"$image\"}|" |
        kubectl apply -f - >"$LOGS/install.log" 2>&1 || die "installing the operator failed: $(tail -n 1 "$LOGS/install.log")"
    kubectl -n torchkeeper-system rollout status deployment torchkeeper-operator --timeout=900s ||
        die "the operator did not start: $(kubectl -n torchkeeper-system get pods --no-headers | tail -n 1)"
}
