#!/usr/bin/env bash
# release.sh - make a release: push its images to a registry, and put all that users install from into one folder.
#
#   COSIGN_KEY=FILE|none scripts/release.sh VERSION REGISTRY      e.g. v0.2.0 registry.example.org/training
#
# VERSION is "v" and the version in CMakeLists.txt, and CHANGELOG.md has a heading for it. No change is uncommitted. REGISTRY is
# HOST/PATH; run `buildah login HOST` first if it needs a password. Only a registry on loopback may use plain http. The images are
# those of deploy/images/build.sh, with version and commit as labels; buildah makes them (root), because Docker dates what it builds.
# BASE, if set, is an image by digest. COSIGN_KEY is the private key of whoever releases (`cosign generate-key-pair`); its
# password is in COSIGN_PASSWORD, or the script prompts for it. cosign 2 ($COSIGN, or the one in $PATH) signs with it and uploads to no log.
#
# When all is done, build/release-VERSION replaces an earlier one. It contains:
#   install.yaml, install-namespaced.yaml     the operator with all images by digest; the second needs the next two beforehand
#   pytorchtrainingjob.yaml, user-roles.yaml  the resource, and roles for users
#   kueue.yaml, kueue-role.yaml, gangs.yaml   with Kueue: its configuration, our permissions; permissions with a gang scheduler
#   kueue-worker.yaml                         permissions in a worker cluster of MultiKueue
#   torchkeeper-VERSION.tgz                   the Helm chart, its images by digest
#   torchkeeper-VERSION.oci.tar               the same chart as an OCI archive, for a registry
#   torchrun-linux-amd64, -arm64              the launcher, static
#   kubectl-ptj-linux-ARCHITECTURE            kubectl's plug-in, static, for machines like this one
#   images.txt                                each image by digest; that of the launcher is for both architectures
#   images/NAME.tar                           the same images as OCI archives, for clusters that reach no registry
#   sbom/NAME.spdx.json                       the packages and files of each image
#   SHA256SUMS                                `sha256sum -c SHA256SUMS` checks all of it
#   cosign.pub, SHA256SUMS.sig, torchkeeper-VERSION.tgz.sig     the public key and what it checks; not with COSIGN_KEY=none. The
#                                             signatures of the images are in the registry, as cosign looks for them.
set -euo pipefail
# shellcheck source=scripts/lib.sh
. "$(dirname "$0")/lib.sh"
cd "$REPO"

# image, architectures (none: this machine's). The launcher is small and goes first, so that a registry's refusal shows early.
readonly IMAGES=("launcher amd64 arm64" operator trainer tensorboard)
# image, the program in it, its name in the release
readonly PROGRAMS=(
    "launcher-amd64 torchrun torchrun-linux-amd64"
    "launcher-arm64 torchrun torchrun-linux-arm64"
    "kubectl-ptj kubectl-ptj kubectl-ptj-linux-$(dpkg --print-architecture)"
)

# --- checks before the build

check_arguments() {
    [[ $VERSION =~ ^v(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}$ ]] || die "VERSION \"$VERSION\": expected one like v1.2.3"
    [[ $REGISTRY =~ ^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$ ]] ||
        die "REGISTRY \"$REGISTRY\": expected HOST/PATH or HOST:PORT/PATH in lower case, e.g. registry.example.org/training"
}

# Before anything is built: sets COSIGN_PASSWORD, and $WORK has the public key.
check_key() {
    local key=${COSIGN_KEY:-} answer version
    [ -z "${BASE:-}" ] || [[ $BASE =~ @sha256:[0-9a-f]{64}$ ]] || die "BASE \"$BASE\": expected an image by digest, NAME@sha256:..."
    [ -n "$key" ] || die "COSIGN_KEY: expected the private key that signs the release (cosign generate-key-pair makes one), or none"
    [ "$key" != none ] || return 0
    command -v "$COSIGN" >/dev/null || die "COSIGN_KEY is set, and there is no program $COSIGN: install cosign 2, or set COSIGN to it"
    answer=$("$COSIGN" version 2>&1) || die "$COSIGN version: $(tail -n 1 <<<"$answer")"
    version=$(sed -n 's/^GitVersion: *//p' <<<"$answer")
    [[ $version = v2.* ]] || die "$COSIGN is cosign \"$version\": expected 2.x, which signs without a public log"
    [ -n "${COSIGN_PASSWORD+set}" ] || read -rsp "password of $key: " COSIGN_PASSWORD || die "COSIGN_PASSWORD is not set, and stdin has no password"
    export COSIGN_PASSWORD
    "$COSIGN" public-key --key "$key" >"$WORK/cosign.pub" 2>"$LOG" || die "COSIGN_KEY $key: $(tail -n 1 "$LOG")"
}

check_tree() {
    local version changed
    version=$(sed -n 's/^project(torchkeeper VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
    [ "$VERSION" = "v$version" ] || die "VERSION $VERSION: CMakeLists.txt has $version; set it there, or release v$version"
    grep -q "^## ${version//./\\.}\( \|\$\)" CHANGELOG.md || die "CHANGELOG.md has no heading \"## $version\": describe there what is new"
    deploy/generate.sh --check || die "manifests in deploy are out of date: run deploy/generate.sh and commit the result"
    changed=$(git status --porcelain) || die "a release is made from a git checkout, which $REPO is not"
    [ -z "$changed" ] || die "$(wc -l <<<"$changed") uncommitted changes, the first: ${changed%%$'\n'*}; commit or stash them"
}

# --- images

# attempt WHAT COMMAND...: the command's output goes to the log. If it fails, the error message has the last line.
attempt() {
    "${@:2}" >>"$LOG" 2>&1 || die "$1 failed: $(tail -n 1 "$LOG"); log: $LOG"
}

store() { deploy/images/build.sh store "$@"; }

# variants "IMAGE ARCHITECTURE...": the names that build.sh has for it.
variants() {
    local name=${1%% *} architecture
    [ "$name" != "$1" ] || echo "$name"
    for architecture in ${1#"$name"}; do echo "$name-$architecture"; done
}

# label NAME: add version and commit to the image that build.sh made; change nothing else.
label() {
    local word arguments=(--quiet --pull-never --timestamp 0)
    for word in "version=$VERSION" "revision=$REVISION"; do
        arguments+=(--label "org.opencontainers.image.$word" --annotation "org.opencontainers.image.$word")
    done
    case $1 in *-amd64 | *-arm64) arguments+=(--platform "linux/${1##*-}") ;; esac
    printf 'FROM %s\n' "$IMAGE_PREFIX/$1:dev" >"$WORK/Dockerfile"
    attempt "labelling the image $1" store bud "${arguments[@]}" --tag "$IMAGE_PREFIX/$1:$VERSION" --file "$WORK/Dockerfile" "$WORK"
}

# push "IMAGE ARCHITECTURE...": under the release's version; several architectures as one list. Sets DIGEST.
push() {
    local name=${1%% *} local_name variant arguments=(--quiet) destination=docker://$REGISTRY/${1%% *}:$VERSION
    local_name=$IMAGE_PREFIX/$name:$VERSION
    say "pushing $REGISTRY/$name:$VERSION"
    [[ ! $REGISTRY =~ ^(127(\.[0-9]+){3}|localhost)[:/] ]] || arguments+=(--tls-verify=false)
    if [ "$name" = "$1" ]; then
        arguments=(push "${arguments[@]}")
    else
        store manifest rm "$local_name" >/dev/null 2>&1 || true # of an earlier run
        attempt "a list of $1" store manifest create "$local_name"
        for variant in $(variants "$1"); do
            attempt "a list of $1" store manifest add "$local_name" "containers-storage:$IMAGE_PREFIX/$variant:$VERSION"
        done
        arguments=(manifest push --all "${arguments[@]}")
    fi
    # Push again for the digest: buildah 1.28 loses the error of a push when it writes a list's digest.
    attempt "pushing to $REGISTRY/$name:$VERSION" store "${arguments[@]}" "$local_name" "$destination"
    attempt "pushing to $REGISTRY/$name:$VERSION" store "${arguments[@]}" --digestfile "$WORK/digest" "$local_name" "$destination"
    [ "$name" = "$1" ] || attempt "removing the list of $1" store manifest rm "$local_name"
    DIGEST=$(<"$WORK/digest")
    [[ $DIGEST =~ ^sha256:[0-9a-f]{64}$ ]] || die "pushing $name gave no digest but \"$DIGEST\""
}

# publish "IMAGE ARCHITECTURE...": builds and pushes it; images.txt has its reference by digest.
publish() {
    local name=${1%% *} variant
    # shellcheck disable=SC2046  # a list of names
    ENGINE=buildah deploy/images/build.sh $(variants "$1") || exit 1 # build.sh has printed why
    for variant in $(variants "$1"); do label "$variant"; done
    push "$1"
    printf '%s %s\n' "$name" "$REGISTRY/$name@$DIGEST" >>"$NEW/images.txt"
}

# take PATH FILE: one file out of the image in $WORK/layout.
take() {
    local blob
    for blob in "$WORK"/layout/blobs/sha256/*; do
        if tar --extract --gzip --to-stdout --file="$blob" -- "$1" >"$2" 2>/dev/null; then return; fi
    done
    die "an image has no file $1"
}

# unpack NAME TAG: write the image as an OCI layout into $WORK/layout, and take its list of parts and its programs out of it.
unpack() {
    local image path file
    rm -rf -- "$WORK/layout"
    attempt "writing the image $1" store push --quiet "$IMAGE_PREFIX/$1:$2" "oci:$WORK/layout:$2"
    take sbom.spdx.json "$NEW/sbom/$1.spdx.json"
    for file in "${PROGRAMS[@]}"; do
        read -r image path file <<<"$file"
        [ "$image" != "$1" ] || { take "$path" "$NEW/$file" && chmod 755 "$NEW/$file"; }
    done
}

# unload NAME: take all files out of a published image, then remove it from the store.
unload() {
    unpack "$1" "$VERSION"
    pack "$WORK/layout" "$NEW/images/$1.tar" .
    attempt "removing $1 from the store" store rmi "$IMAGE_PREFIX/$1:$VERSION"
}

# Nobody runs the plug-in's image: a release only takes the program out of it.
plugin() {
    ENGINE=buildah deploy/images/build.sh kubectl-ptj || exit 1
    unpack kubectl-ptj dev
}

# --- files

# referring FILE...: copy these files of the tree, with the images of this release.
referring() {
    local name reference expressions=()
    while read -r name reference; do
        expressions+=(-e "s|$IMAGE_PREFIX/$name:dev|$reference|")
    done <"$NEW/images.txt"
    sed "${expressions[@]}" "$@"
}

manifests() {
    local file
    for file in install.yaml install-namespaced.yaml; do
        referring "deploy/$file" >"$NEW/$file"
        ! grep -q "$IMAGE_PREFIX" "$NEW/$file" || die "$file names an image that is not released: $(grep -m 1 "$IMAGE_PREFIX" "$NEW/$file")"
    done
    cp -- crds/pytorchtrainingjob.yaml deploy/rbac/{user-roles,kueue-role,gangs}.yaml "$NEW"
    cp -- deploy/kueue/torchkeeper.yaml "$NEW/kueue.yaml"
    cp -- deploy/kueue/worker.yaml "$NEW/kueue-worker.yaml"
}

# The chart with these images as its defaults, each by digest.
chart() {
    local name reference chart=$WORK/torchkeeper expressions=() left
    cp -RL -- deploy/chart "$chart"
    sed -i -e "s/^version: .*/version: ${VERSION#v}/" -e "s/^appVersion: .*/appVersion: $VERSION/" "$chart/Chart.yaml"
    while read -r name reference; do
        expressions+=(-e "s|{repository: $IMAGE_PREFIX/$name, tag: \"\", digest: \"\"}|{repository: ${reference%@*}, tag: \"\", digest: \"${reference#*@}\"}|")
    done <"$NEW/images.txt"
    sed -i "${expressions[@]}" "$chart/values.yaml"
    referring deploy/manager/deployment.yaml >"$chart/parts/deployment.yaml"
    left=$(grep -rn "$IMAGE_PREFIX" "$chart" || true)
    [ -z "$left" ] || die "the chart names an image that is not released: ${left%%$'\n'*}"
    pack "$WORK" "$WORK/chart.tar" torchkeeper
    gzip --no-name --best <"$WORK/chart.tar" >"$NEW/torchkeeper-${VERSION#v}.tgz"
    scripts/chart-oci.sh "$NEW/torchkeeper-${VERSION#v}.tgz" "$NEW/torchkeeper-${VERSION#v}.oci.tar"
}

# Signatures differ from run to run, so they have no sums.
sign() {
    local file reference options=(--yes --tlog-upload=false --key "$COSIGN_KEY")
    while read -r file reference; do
        attempt "signing $reference" "$COSIGN" sign "${options[@]}" --recursive "$reference"
    done <"$NEW/images.txt"
    for file in SHA256SUMS "torchkeeper-${VERSION#v}.tgz"; do
        attempt "signing $file" "$COSIGN" sign-blob "${options[@]}" --output-signature "$NEW/$file.sig" "$NEW/$file"
    done
}

sums() {
    [ "$COSIGN_KEY" = none ] || cp -- "$WORK/cosign.pub" "$NEW"
    (cd "$NEW" && find . -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >"$WORK/sums" && cp "$WORK/sums" SHA256SUMS)
}

[ $# -eq 2 ] || die "expected VERSION and REGISTRY, as in: make release VERSION=v1.2.3 REGISTRY=registry.example.org/training"
VERSION=$1 REGISTRY=$2
COSIGN=${COSIGN:-cosign}
readonly VERSION REGISTRY COSIGN LOG=build/logs/release.log
check_arguments
check_tree
REVISION=$(git rev-parse HEAD)
WORK=$(mktemp -d "$REPO/build/release.XXXXXX")
trap 'rm -rf -- "$WORK"' EXIT
check_key
NEW=$WORK/new
mkdir -p -- "$NEW/images" "$NEW/sbom"
: >"$LOG"
for image in "${IMAGES[@]}"; do publish "$image"; done
for image in "${IMAGES[@]}"; do
    for variant in $(variants "$image"); do unload "$variant"; done
done
plugin
manifests
chart
sums
[ "$COSIGN_KEY" = none ] || sign
chmod -R u=rwX,go=rX -- "$NEW"
rm -rf -- "build/release-$VERSION"
mv -- "$NEW" "build/release-$VERSION"
say "build/release-$VERSION: $(wc -l <"build/release-$VERSION/SHA256SUMS") files$([ "$COSIGN_KEY" != none ] || echo ', not signed'); images by digest:"
cat -- "build/release-$VERSION/images.txt"
