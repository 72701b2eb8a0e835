#!/usr/bin/env bash
# check.sh - send every manifest of this folder to an API server that has the CRD, and look at what it answers.
#
#   good-*.yaml    must be admitted, and come back with every field they were sent with
#   bad-*.yaml     must be refused with the text behind each "# want:"; one of them names the path of the field
#   update-*.yaml  the first document is created and gets the status behind "# status:"; then the second replaces it: the
#                  answer must hold the text behind each "# want:", or be an admission when that is "ok"
#
# The CRD itself: every field has a description, and it is small enough for a plain `kubectl apply`.
#
# Environment: KUBECTL (kubectl), NAMESPACE (default). Prints one line per manifest; exit 1 when one of them fails.
set -euo pipefail

cd -- "$(dirname -- "${BASH_SOURCE[0]}")"
KUBECTL=${KUBECTL:-kubectl}
NAMESPACE=${NAMESPACE:-default}
failed=0
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

kube() { "$KUBECTL" --namespace "$NAMESPACE" "$@"; }
header() { sed -n "s/^# $2: //p" -- "$1"; }

# holds ANSWER MANIFEST: whether all that the manifest wants stands in the answer.
holds() {
    local text
    grep -q '^# want: ' -- "$2" || return 1
    while read -r text; do
        [[ $1 == *"$text"* ]] || return 1
    done < <(header "$2" want)
}

report() {
    if [ -z "$2" ]; then
        printf 'ok      %s\n' "$1"
    else
        printf 'not ok  %s: %s\n' "$1" "$2"
        failed=1
    fi
}

check_bad() {
    local answer
    if answer=$(kube create --dry-run=server -f "$1" 2>&1); then
        report "$1" "was admitted; expected: $(header "$1" want)"
    elif ! holds "$answer" "$1"; then
        report "$1" "expected: $(header "$1" want); got: $answer"
    else
        report "$1" ""
    fi
}

# A field that the schema does not know would be gone without a word.
check_good() {
    local answer
    if ! answer=$(kube create --dry-run=server -o json -f "$1" 2>&1); then
        report "$1" "$answer"
        return
    fi
    printf '%s\n' "$answer" >"$work/back.json"
    kube create --dry-run=client -o json -f "$1" >"$work/sent.json"
    if answer=$(python3 - "$work/sent.json" "$work/back.json" 2>&1 <<'PYTHON'
import json
import sys


def lost(sent, back, path):
    if isinstance(sent, dict) and isinstance(back, dict):
        for key, value in sent.items():
            if key in back:
                yield from lost(value, back[key], f"{path}.{key}")
            elif value is not None:
                yield f"{path}.{key}"
    elif isinstance(sent, list) and isinstance(back, list) and len(sent) == len(back):
        for i, (a, b) in enumerate(zip(sent, back)):
            yield from lost(a, b, f"{path}[{i}]")
    elif sent != back:
        yield path


sent, back = (json.load(open(name)) for name in sys.argv[1:])
paths = list(lost(sent["spec"], back["spec"], "spec"))
if paths:
    sys.exit("changed on the way: " + ", ".join(paths))
PYTHON
    ); then report "$1" ""; else report "$1" "$answer"; fi
}

# An operator that runs here writes the job's status too, and a replace in the same moment is a conflict.
replace_job() {
    local answer
    for _ in 1 2 3 4 5; do
        if answer=$(kube replace -f "$1" 2>&1); then return 0; fi
        [[ $answer == *"object has been modified"* ]] || break
    done
    printf '%s' "$answer"
    return 1
}

check_update() {
    local answer want status
    want=$(header "$1" want)
    status=$(header "$1" status)
    awk -v first="$work/first.yaml" -v second="$work/second.yaml" \
        'BEGIN { out = first } /^---$/ { out = second; next } { print > out }' "$1"
    kube delete ptj job --ignore-not-found >/dev/null 2>&1
    if ! answer=$(kube create -f "$work/first.yaml" 2>&1) ||
        ! answer=$(kube patch ptj job --subresource=status --type=merge -p "{\"status\":$status}" 2>&1); then
        report "$1" "the first document: $answer"
    elif answer=$(replace_job "$work/second.yaml"); then
        if [ "$want" = ok ]; then report "$1" ""; else report "$1" "was admitted; expected: $want"; fi
    elif [ "$want" = ok ] || ! holds "$answer" "$1"; then
        report "$1" "expected: $want; got: $answer"
    else
        report "$1" ""
    fi
    kube delete ptj job --ignore-not-found >/dev/null 2>&1
}

check_crd() {
    local crd=../../../crds/pytorchtrainingjob.yaml answer
    kube create --dry-run=client --validate=false -o json -f "$crd" >"$work/crd.json"
    if answer=$(python3 - "$work/crd.json" 2>&1 <<'PYTHON'
import json
import os
import sys


def silent(schema, path):
    for name, field in schema.get("properties", {}).items():
        # The API server describes metadata itself and forbids us to.
        if not field.get("description") and path + [name] not in (["metadata"], ["metadata", "name"]):
            yield ".".join(path + [name])
        yield from silent(field, path + [name])
    if "items" in schema:
        yield from silent(schema["items"], path[:-1] + [path[-1] + "[]"])


crd = json.load(open(sys.argv[1]))
fields = [f for v in crd["spec"]["versions"] for f in silent(v["schema"]["openAPIV3Schema"], [])]
if fields:
    sys.exit("no description: " + ", ".join(fields))
if os.path.getsize(sys.argv[1]) > 100_000:
    sys.exit(f"{os.path.getsize(sys.argv[1])} bytes; expected at most 100000")
PYTHON
    ); then report "$crd" ""; else report "$crd" "$answer"; fi
}

check_crd
for manifest in good-*.yaml ../tutorial/job.yaml; do check_good "$manifest"; done
for manifest in bad-*.yaml; do check_bad "$manifest"; done
for manifest in update-*.yaml; do check_update "$manifest"; done
exit "$failed"
