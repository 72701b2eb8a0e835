#!/usr/bin/env bash
# build.sh - build the container images, with Docker where it answers and with buildah elsewhere.
#
#   deploy/images/build.sh [NAME]...                 default all
#     NAME: operator, trainer, launcher, tensorboard, all, trainer-cuda, launcher-amd64, launcher-arm64, kubectl-ptj
#   deploy/images/build.sh push NAME DESTINATION     e.g. push operator registry.example.org/training/operator:dev
#   deploy/images/build.sh store WORD...             buildah in the store of these images, e.g. store images
#   deploy/images/build.sh clean
#
# Each image becomes localhost/torchkeeper/NAME:dev and a docker-archive in build/images/NAME.tar, which
# `deploy/local/cluster load` takes. An image whose sources did not change is left as it is; `push` builds one first. The
# prefix localhost belongs to no registry: a node without the image reports that and pulls nothing from elsewhere. `clean`
# removes everything this script made; a build after it uses Debian's newer packages. `all` leaves out trainer-cuda,
# which downloads 900 MB, the launcher for a given architecture (launcher is for this machine's) and kubectl-ptj, which is no
# image to run: a release takes the program out of it.
#
# Environment:
#   ENGINE    docker or buildah; default: docker when a daemon answers, else buildah (needs root, no registry)
#   BASE      the base image; default: debian:bookworm-slim with Docker, with buildah one made from Debian's packages
#   TAG       default dev
set -euo pipefail

HERE=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
REPO=$(cd -- "$HERE/../.." && pwd)
readonly HERE REPO
OUT=$(realpath -m -- "$REPO/build/images") # as /proc/mounts has it
readonly OUT
readonly STORE=$OUT/store
readonly PREFIX=localhost/torchkeeper
readonly TAG=${TAG:-dev}
readonly ALL=(operator trainer launcher tensorboard)
readonly SUITE=bookworm
readonly HOST_CA=/etc/ssl/certs/ca-certificates.crt

say() { printf 'images: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

# recipe NAME: the Dockerfile. architecture NAME: Debian's word for what its programs run on.
recipe() {
    case $1 in
    launcher-*) echo "$HERE/launcher.Dockerfile" ;;
    kubectl-ptj) echo "$HERE/operator.Dockerfile" ;;
    *) echo "$HERE/$1.Dockerfile" ;;
    esac
}
architecture() {
    case $1:$(uname -m) in
    launcher-*) echo "${1#launcher-}" ;;
    *:aarch64) echo arm64 ;;
    *) echo amd64 ;;
    esac
}

# sources NAME: what the image is made of, relative to the top of the tree: all that its Dockerfile may read.
sources() {
    sed -n 's/^!//p' "$(recipe "$1").dockerignore"
}

# stamp NAME: a hash of all that decides how the image comes out.
stamp() {
    local paths
    mapfile -t paths < <(sources "$1")
    (
        cd -- "$REPO"
        uname -m
        printf '%s\n' "$ENGINE" "${BASE:-}" "$PREFIX/$1:$TAG"
        cat -- "$(recipe "$1")" "deploy/images/build.sh"
        [ "$ENGINE" = docker ] || base_stamp
        find "${paths[@]}" -type f ! -name '*.md' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum
    ) | sha256sum | cut -d ' ' -f 1
}

choose_engine() {
    ENGINE=${ENGINE:-}
    if [ -z "$ENGINE" ]; then
        if docker info >/dev/null 2>&1; then ENGINE=docker; else ENGINE=buildah; fi
    fi
    case $ENGINE in
    docker) docker info >/dev/null 2>&1 || die "ENGINE=docker: no Docker daemon answers; start it, or set ENGINE=buildah" ;;
    buildah)
        [ "$(id -u)" -eq 0 ] || die "no Docker daemon answers and buildah needs root here; run as root or start Docker"
        local tool
        for tool in buildah mmdebstrap; do
            command -v "$tool" >/dev/null || die "$tool is not installed; run: apt-get install -y buildah mmdebstrap"
        done
        ;;
    *) die "ENGINE=$ENGINE: expected docker or buildah" ;;
    esac
    readonly ENGINE
}

# storage_driver: overlay where the kernel can mount one there, which a container's own root cannot; else each layer is a copy.
storage_driver() {
    [ -n "${DRIVER:-}" ] && return
    DRIVER=overlay
    buildah --root "$STORE" --runroot "$STORE.run" --storage-driver overlay images >/dev/null 2>&1 || DRIVER=vfs
}

in_store() {
    storage_driver
    buildah --root "$STORE" --runroot "$STORE.run" --storage-driver "$DRIVER" "$@"
}

# Working containers, and what an interrupted build left mounted.
tidy_store() {
    [ -d "$STORE" ] || return 0
    in_store rm --all >/dev/null 2>&1 || true
    awk -v store="$STORE" 'index($2, store) == 1 { print $2 }' /proc/mounts | sort -r | while read -r mount; do
        umount -l -- "$mount" || true
    done
}

# --- the base image, for machines without a registry

# apt's own proxies and dates hold inside the base too.
host_apt_options() {
    local line
    apt-config dump --format '%F "%v";%n' Acquire::http::Proxy Acquire::https::Proxy \
        Acquire::Check-Valid-Until Acquire::Check-Date 2>/dev/null | while read -r line; do
        case $line in *'""'*) ;; *) printf -- '--aptopt=%s\n' "$line" ;; esac
    done
}

# The machine's own sources where it runs the same Debian, for they work here; none means mmdebstrap's default.
base_sources() {
    # shellcheck disable=SC2016  # apt's variables, not ours
    apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 2>/dev/null |
        awk -v suite="$SUITE" '$3 == "main" && ($2 == suite || $2 == suite "-updates" || $2 == suite "-security") {
            print "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]", $1, $2, $3 }' | LC_ALL=C sort -u
}

base_options() {
    # usr-is-merged instead of usrmerge keeps a whole Perl out. With --dpkgopt=path-exclude mmdebstrap would start a Python for
    # each package; the hook removes the same files at the end, and tells dpkg for later packages.
    cat <<EOF
--variant=apt
--mode=root
--include=usr-is-merged
--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr
--dpkgopt=force-unsafe-io
--customize-hook=$HERE/base-hook.sh
--skip=output/dev
EOF
    host_apt_options
}

base_stamp() {
    { printf '%s\n' "$SUITE" && base_options && base_sources && cat -- "$HERE/base-hook.sh"; } | sha256sum | cut -d ' ' -f 1
}

make_base() {
    local name=$PREFIX/base:$SUITE options sources container
    if [ "$(base_stamp)" = "$(cat -- "$OUT/base.stamp" 2>/dev/null)" ] && in_store inspect --type image "$name" >/dev/null 2>&1; then
        return
    fi
    say "making the base image from Debian's packages"
    mapfile -t options < <(base_options)
    mapfile -t sources < <(base_sources)
    SOURCE_DATE_EPOCH=0 mmdebstrap --quiet "${options[@]}" "$SUITE" "$OUT/base.new.tar" "${sources[@]}" >"$OUT/base.log" 2>&1 ||
        { tail -n 5 -- "$OUT/base.log" >&2 && die "making the base image failed; log: $OUT/base.log"; }
    container=$(in_store from scratch)
    in_store add --quiet "$container" "$OUT/base.new.tar" / >/dev/null
    in_store config --cmd /bin/bash "$container"
    in_store commit --quiet --rm --timestamp 0 "$container" "$name" >/dev/null # images name it in their history
    rm -f -- "$OUT/base.new.tar"
    base_stamp >"$OUT/base.stamp"
}

# --- one image

common_arguments() {
    printf '%s\n' "--file=$(recipe "$1")"
    ! grep -q '^ARG ARCH' "$(recipe "$1")" || printf -- '--build-arg=ARCH=%s\n' "$(architecture "$1")"
    [ "$1" != kubectl-ptj ] || printf -- '--build-arg=PROGRAM=%s\n' "$1"
    [ -z "${PIP_INDEX_URL:-}" ] || printf -- '--build-arg=PIP_INDEX_URL=%s\n' "$PIP_INDEX_URL"
    [ ! -r "$HOST_CA" ] || printf -- '--secret=id=ca,src=%s\n' "$HOST_CA"
}

build_with_docker() {
    local arguments
    mapfile -t arguments < <(common_arguments "$1")
    [ -z "${BASE:-}" ] || arguments+=("--build-arg=BASE=$BASE")
    DOCKER_BUILDKIT=1 docker build "${arguments[@]}" --tag "$PREFIX/$1:$TAG" "$REPO" && docker save --output "$OUT/$1.tar.new" "$PREFIX/$1:$TAG"
}

# A stage "libraries" gets a name, so that what it built is still there next time, and so is the stage "compiler" beneath it,
# which is the same in all recipes. All other layers that no named image stands on are removed.
build_with_buildah() {
    local name=$1 arguments recipe common=(--isolation chroot)
    recipe=$(recipe "$name")
    mapfile -t arguments < <(common_arguments "$name")
    common+=("--build-arg=BASE=${BASE:-$PREFIX/base:$SUITE}")
    [ -n "${BASE:-}" ] || common+=(--pull-never)
    [ ! -f "$recipe.dockerignore" ] || common+=("--ignorefile=$recipe.dockerignore")
    rm -f -- "$OUT/$name.tar.new"
    if grep -q ' AS libraries$' "$recipe"; then
        common+=(--layers)
        in_store bud "${common[@]}" "${arguments[@]}" --target libraries --tag "$PREFIX/$name-libraries:$TAG" "$REPO" || return
    fi
    # Nothing in them goes by dates, and so they have none: the same image from the same tree and the same packages.
    case $name in operator | trainer | launcher* | kubectl-ptj) common+=(--timestamp 0) ;; esac
    # One layer: the base's apt settings (mirror, proxy) are this machine's, and a removed file stays in its layer.
    in_store bud "${common[@]}" "${arguments[@]}" --squash --tag "$PREFIX/$name:$TAG" "$REPO" &&
        in_store push --quiet "$PREFIX/$name:$TAG" "docker-archive:$OUT/$name.tar.new:$PREFIX/$name:$TAG" &&
        in_store rmi --prune
}

build() {
    local name=$1 hash log=$OUT/$1.log started=$SECONDS
    hash=$(stamp "$name")
    if [ -s "$OUT/$name.tar" ] && [ "$hash" = "$(cat -- "$OUT/$name.stamp" 2>/dev/null)" ]; then
        return
    fi
    [ "$ENGINE" = docker ] || [ -n "${BASE:-}" ] || make_base
    say "building $name"
    "build_with_$ENGINE" "$name" >"$log" 2>&1 || { tail -n 15 -- "$log" >&2 && die "building $name failed; log: $log"; }
    mv -f -- "$OUT/$name.tar.new" "$OUT/$name.tar"
    printf '%s\n' "$hash" >"$OUT/$name.stamp"
    say "built $name in $((SECONDS - started)) s"
}

# push NAME DESTINATION
push() {
    say "pushing $2"
    if [ "$ENGINE" = docker ]; then
        docker tag "$PREFIX/$1:$TAG" "$2" && docker push --quiet "$2" >/dev/null
    else
        in_store push --quiet "$PREFIX/$1:$TAG" "docker://$2"
    fi || die "pushing $1 to $2 failed"
}

sizes() {
    local name
    for name in "$@"; do
        printf 'images: %-12s %7s MB  %s  %s\n' "$name" \
            "$(printf %02d "$(($(stat -c %s -- "$OUT/$name.tar") / 100000))")" "$PREFIX/$name:$TAG" "${OUT#"$REPO"/}/$name.tar" |
            sed -E 's/([0-9])([0-9]) MB/\1.\2 MB/'
    done
}

# One at a time; at the end nothing is left mounted.
take_lock() {
    mkdir -p -- "$OUT"
    exec 9>"$OUT/.lock"
    flock -n 9 || {
        say "another build is at work; waiting for it"
        flock 9
    }
    trap tidy_store EXIT
}

clean() {
    [ ! -d "$STORE" ] || tidy_store
    rm -rf -- "$OUT"
}

main() {
    local names=() destination='' name
    case ${1:-} in
    clean)
        clean
        return
        ;;
    -h | --help | help)
        sed -n '2,/^set -/{/^set -/d;s/^# \{0,1\}//p}' -- "${BASH_SOURCE[0]}"
        return
        ;;
    store)
        ENGINE=buildah
        choose_engine
        take_lock
        in_store "${@:2}"
        return
        ;;
    push)
        if [ $# -ne 3 ] || [ "$2" = all ]; then die "push: expected NAME and DESTINATION"; fi
        destination=$3
        set -- "$2"
        ;;
    esac
    for name in "${@:-all}"; do
        case $name in
        operator | trainer | launcher | tensorboard | trainer-cuda | launcher-amd64 | launcher-arm64 | kubectl-ptj) names+=("$name") ;;
        all) names+=("${ALL[@]}") ;;
        *) die "unknown image \"$name\": expected operator, trainer, launcher, tensorboard, trainer-cuda, launcher-amd64, launcher-arm64, kubectl-ptj or all" ;;
        esac
    done
    choose_engine
    take_lock
    for name in "${names[@]}"; do build "$name"; done
    if [ -n "$destination" ]; then push "${names[0]}" "$destination"; else sizes "${names[@]}"; fi
}

main "$@"
