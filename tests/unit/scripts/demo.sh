#!/usr/bin/env bash
# demo.sh TREE - scripts/demo.sh with CLUSTER=current in a small tree of its own, against stand-ins for kubectl, kind, minikube, docker and
# build.sh: what is loaded or pushed, what is applied after it, and what is refused with one message before anything is built.
# shellcheck disable=SC2016  # what stand-ins do is text here
set -euo pipefail
TREE=$1
TOP=$(mktemp -d)
trap 'rm -rf -- "$TOP"' EXIT
REPO=$TOP/tree
export CLUSTER=current EPOCHS=3 STAND_IN=$TOP/stand-in

wrong() {
    printf '%s\n' "$*" >&2
    exit 1
}

stand_in() { # stand_in FILE: standard input is what it does after it has noted its words
    { printf '#!/usr/bin/env bash\nprintf "%%s\\n" "%s $*" >>"$STAND_IN/calls"\n' "${1##*/}" && cat; } >"$1"
    chmod +x "$1"
}

make_tree() {
    mkdir -p "$REPO/scripts" "$STAND_IN" "$TOP/bin" "$TOP/kind" "$TOP/minikube"
    (cd "$TREE" && cp --parents -R deploy crds scripts/demo.sh scripts/lib.sh "$REPO")
    stand_in "$TOP/bin/docker" </dev/null
    stand_in "$TOP/bin/sleep" </dev/null
    stand_in "$TOP/kind/kind" <<<'[ ! -e "$STAND_IN/full" ] || { printf "one line\nERROR: no space left\n" >&2; exit 1; }'
    stand_in "$TOP/minikube/minikube" </dev/null
    stand_in "$REPO/deploy/images/build.sh" <<<'[ "$1" != all ] || { mkdir -p build/images; echo image >build/images/operator.tar; }'
    stand_in "$TOP/bin/kubectl" <<'END'
case "$*" in
"config current-context") cat "$STAND_IN/context" ;;
"get nodes "*) cat "$STAND_IN/gpus" ;;
"apply -f -") n=$(cat "$STAND_IN"/applied.* 2>/dev/null | grep -c '^# applied' || true); { echo '# applied' && cat; } >"$STAND_IN/applied.$n" ;;
"get ptj mnist -o jsonpath={.status.phase}") echo Succeeded ;;
"logs mnist-node-0") echo 'test accuracy: 0.9012' ;;
esac
END
    cd "$REPO"
}

# demo CONTEXT [VARIABLE=VALUE]...
demo() {
    rm -rf "$STAND_IN" "$REPO/build"
    mkdir -p "$STAND_IN"
    echo "$1" >"$STAND_IN/context"
    echo "${GPUS_THERE:-}" >"$STAND_IN/gpus"
    [ -z "${FULL:-}" ] || : >"$STAND_IN/full"
    env PATH="$TOP/bin:${PROGRAMS-$TOP/kind:$TOP/minikube}:$PATH" "${@:2}" scripts/demo.sh >"$TOP/out" 2>"$TOP/err"
}

# well CONTEXT [VARIABLE=VALUE]...
well() { demo "$@" || wrong "failed: $(<"$TOP/err")"; }

# called EXPRESSION LINE...: exactly these calls, in this order.
called() {
    [ "$(grep -E "$1" "$STAND_IN/calls" || true)" = "$(printf '%s\n' "${@:2}")" ] || wrong "expected ${*:2}, got: $(<"$STAND_IN/calls")"
}

for_each() { # for_each TEXT: a line for each image, whose name stands for NAME
    local name
    for name in operator trainer launcher tensorboard; do printf '%s\n' "${1//NAME/$name}"; done
}

# refused MESSAGE CONTEXT [VARIABLE=VALUE]...: one line, and nothing built.
refused() {
    if demo "${@:2}"; then wrong "not refused: ${*:2}"; fi
    [ "$(<"$TOP/err")" = "demo.sh: $1" ] || wrong "expected \"$1\", it said: $(<"$TOP/err")"
    ! grep -q '^build.sh' "$STAND_IN/calls" || wrong "it built before it looked"
}

check_loading() {
    well kind-two-nodes LOAD=kind
    called '^kind' "$(for_each "kind load image-archive $REPO/build/images/NAME.tar --name two-nodes")"
    ! grep -q push "$STAND_IN/calls" || wrong "pushed: $(<"$STAND_IN/calls")"
    [ "$(grep -nE '^kind' "$STAND_IN/calls" | tail -n 1 | cut -d : -f 1)" -lt "$(grep -n '^kubectl apply' "$STAND_IN/calls" | head -n 1 | cut -d : -f 1)" ] ||
        wrong "applied before all images were there"
    grep -q 'test accuracy 0.9012' "$TOP/out" || wrong "said: $(<"$TOP/out")"
    well minikube LOAD=minikube
    called '^minikube' "$(for_each "minikube --profile minikube image load $REPO/build/images/NAME.tar")"
    well other LOAD=none
    ! grep -qE '^(kind|minikube|build.sh push)' "$STAND_IN/calls" || wrong "loaded: $(<"$STAND_IN/calls")"
}

# Images that are loaded keep their names, and no pod insists on a pull.
check_applied() {
    well kind-kind LOAD=kind
    [ "$(grep -hoE '(image: |-image=)localhost/torchkeeper/[a-z]*:dev' "$STAND_IN"/applied.* | sed 's/.*[ =]//' | sort -u)" = \
        "$(for_each 'localhost/torchkeeper/NAME:dev' | sort)" ] || wrong "images: $(grep image "$STAND_IN"/applied.*)"
    [ "$(grep -h imagePullPolicy "$STAND_IN"/applied.* | sort -u | tr -d ' ')" = imagePullPolicy:IfNotPresent ] || wrong "a pod insists on a pull"
    grep -q -- '- --epochs' "$STAND_IN/applied.1" || wrong "the job: $(<"$STAND_IN/applied.1")"
    ! grep -q nvidia "$STAND_IN/applied.1" || wrong "no node has a GPU, and the job asks for some"
    GPUS_THERE='0 8' well kind-kind LOAD=kind
    [ "$(grep -c 'nvidia.com/gpu: 4' "$STAND_IN/applied.1")" -eq 2 ] || wrong "the job asks for no GPU: $(<"$STAND_IN/applied.1")"
    well other REGISTRY=host/me
    called '^build.sh push' "$(for_each 'build.sh push NAME host/me/NAME:dev')"
    ! grep -h 'localhost/' "$STAND_IN"/applied.* || wrong "a manifest names what the registry has not"
}

check_refusals() {
    refused 'CLUSTER=current needs REGISTRY=host/path to push the images to, or LOAD=kind, minikube or none' kind-kind
    refused 'REGISTRY and LOAD are both set: expected one of them' kind-kind REGISTRY=host/me LOAD=kind
    refused 'LOAD=k3d: expected kind, minikube, or none for images that the nodes have' kind-kind LOAD=k3d
    refused 'LOAD=kind: the current kubectl context is "prod", expected kind-NAME' prod LOAD=kind
    PROGRAMS='' refused 'LOAD=kind needs kind in PATH' kind-kind LOAD=kind
    if FULL=1 demo kind-kind LOAD=kind; then wrong "kind failed, and the demo went on"; fi
    [ "$(<"$TOP/err")" = 'demo.sh: loading operator.tar failed: ERROR: no space left; log: build/logs/load-operator.log' ] || wrong "said: $(<"$TOP/err")"
    ! grep -q '^kubectl apply' "$STAND_IN/calls" || wrong "applied without images"
}

make_tree
check_loading
check_applied
check_refusals
