# Builds our binaries into build/tools, and only when their sources or flags have changed.
# shellcheck shell=bash

readonly GO_VERSION_PACKAGE=k8s.io/component-base/version
readonly BUILD_TAGS=providerless,dockerless
# For the least CPU time of the compiler (docs/results.md): the linker drops DWARF anyway, servers without inlining are some 14 %
# slower, and as many compilers run already as there are CPUs.
readonly COMPILER_FLAGS='all=-dwarf=false -l -c=1'

# Debian 12 has no Go that can build this, but its backports do. They are asked for without a
# change to the machine's own list of sources.
backports_list() {
    local codename site
    codename=$(. /etc/os-release && printf '%s' "${VERSION_CODENAME:-}")
    [ "$codename" = bookworm ] || return 1
    # shellcheck disable=SC2016  # apt's variables, not ours
    site=$(apt-get indextargets --format '$(RELEASE) $(SITE)' 2>/dev/null | awk '$1 == "bookworm" { print $2; exit }')
    [ -n "$site" ] || return 1
    printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' "$site" "$codename"
}

install_go() {
    local list candidate options=(-o APT::Get::List-Cleanup=0)
    command -v apt-get >/dev/null || return 1
    candidate=$(apt-cache policy golang-go 2>/dev/null | sed -n 's/^ *Candidate: 2:\([0-9.]*\).*/\1/p')
    if version_at_least "${candidate:-0}" "$GO_NEEDED"; then
        say "installing golang-go $candidate"
        DEBIAN_FRONTEND=noninteractive apt-get -qq -y install golang-go >/dev/null
        return
    fi
    list=$(mktemp) || return 1
    if backports_list >"$list"; then
        say "installing golang-go from Debian's backports"
        options+=(-o "Dir::Etc::SourceList=$list")
        apt-get -qq "${options[@]}" update >/dev/null 2>&1 &&
            DEBIAN_FRONTEND=noninteractive apt-get -qq -y "${options[@]}" -t bookworm-backports install golang-go >/dev/null
    fi
    rm -f -- "$list"
}

version_at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

installed_go() {
    GOTOOLCHAIN=local go env GOVERSION 2>/dev/null | sed -n 's/^go\([0-9.]*\).*/\1/p'
}

require_go() {
    PATH=$PATH:/usr/local/go/bin:/usr/lib/go/bin
    local version
    version=$(installed_go) || version=
    version_at_least "${version:-0}" "$GO_NEEDED" && return
    install_go || true
    version=$(installed_go) || version=
    version_at_least "${version:-0}" "$GO_NEEDED" ||
        die "Go ${version:-is not installed}: expected $GO_NEEDED or newer to build Kubernetes; no package of this machine has it, so install one from Debian's backports or from the Go project"
}

# tool_mod NAME: the file that pins the versions of its modules; the matching .sum file is beside it.
tool_mod() {
    case $1 in
    kubernetes-*) printf '%s' "$HERE/kubernetes/versions/${1#kubernetes-}.mod" ;;
    *) printf '%s' "$HERE/$1/go.mod" ;;
    esac
}

tool_folder() {
    case $1 in
    kubernetes-*) printf '%s' "$HERE/kubernetes" ;;
    *) printf '%s' "$HERE/$1" ;;
    esac
}

link_flags() {
    local version major minor
    version=$(kubernetes_version "$(tool_mod "$1")")
    printf -- '-s -w'
    [ -n "$version" ] || return 0
    IFS=. read -r major minor _ <<<"${version#v}"
    # Without them the API server does not start: it has no version to emulate.
    printf -- " -X $GO_VERSION_PACKAGE.%s" "gitVersion=$version" "gitMajor=$major" "gitMinor=$minor" gitTreeState=clean
}

# tool_stamp NAME: a hash of all inputs of the build.
tool_stamp() {
    local mod
    mod=$(tool_mod "$1")
    {
        uname -m
        printf '%s\n' "$BUILD_TAGS" "$COMPILER_FLAGS" "$(link_flags "$1")"
        find "$(tool_folder "$1")" -name '*.go' ! -name '*_test.go' -print0 | sort -z | xargs -0 cat --
        cat -- "$mod" "${mod%.mod}.sum"
    } | sha256sum | cut -d ' ' -f 1
}

tool_is_current() {
    [ -x "$TOOLS/$1" ] && [ "$(tool_stamp "$1")" = "$(cat -- "$TOOLS/$1.stamp" 2>/dev/null)" ]
}

# compiler_gogc: with more than 2 GB of memory for each CPU the compiler lets its heap grow before it collects: less CPU time.
compiler_gogc() {
    local available
    available=$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)
    if [ "${available:-0}" -gt $(($(nproc) * 2 * 1024 * 1024)) ]; then printf 400; else printf 100; fi
}

# build_tool NAME WHAT
build_tool() {
    local name=$1 what=$2 started=$EPOCHREALTIME log=$TOOLS/$1.log
    tool_is_current "$name" && return
    require_go
    say "building $what"
    if ! (cd -- "$(tool_folder "$name")" && GOTOOLCHAIN=$(toolchain "$name") GOFLAGS=-mod=readonly CGO_ENABLED=0 GOGC=$(compiler_gogc) \
        compile "$log" "$TOOLS/$name.new" -modfile="$(tool_mod "$name")" -trimpath -buildvcs=false -tags "$BUILD_TAGS" \
        -gcflags "$COMPILER_FLAGS" -ldflags "$(link_flags "$name")" .); then
        tail -n 8 -- "$log" >&2
        die "building $name failed; log: $log"
    fi
    mv -f -- "$TOOLS/$name.new" "$TOOLS/$name"
    tool_stamp "$name" | write_file "$TOOLS/$name.stamp"
    say "built $name in $(seconds_since "$started") s"
}

# install_go_program NAME PACKAGE VERSION WHAT: one whose module builds as it is; its own go.sum fixes its parts. The caller
# holds the lock.
install_go_program() {
    local name=$1 wanted=$2@$3 started=$EPOCHREALTIME log=$TOOLS/$1.log
    go_program_is_current "$@" && return
    require_go
    say "building $4"
    if ! GOBIN=$TOOLS/$name.new GOFLAGS='' CGO_ENABLED=0 compile "$log" "" -trimpath -ldflags "-s -w" "$wanted"; then
        tail -n 8 -- "$log" >&2
        die "building $name failed; log: $log"
    fi
    mv -f -- "$TOOLS/$name.new/$name" "$TOOLS/$name"
    rm -rf -- "$TOOLS/$name.new"
    printf '%s\n' "$wanted" | write_file "$TOOLS/$name.stamp"
    say "built $name in $(seconds_since "$started") s"
}

go_program_is_current() {
    [ -x "$TOOLS/$1" ] && [ "$(cat -- "$TOOLS/$1.stamp" 2>/dev/null)" = "$2@$3" ]
}

# A Go that is older than the module requires downloads the newer one itself; one that is new enough
# must not, so that it also works without a network.
toolchain() {
    local wanted
    wanted=$(sed -n 's/^go //p' "$(tool_mod "$1")")
    if version_at_least "$(installed_go)" "$wanted"; then printf local; else printf auto; fi
}

# One build at a time, whichever program asks for it.
lock_tools() {
    mkdir -p -- "$TOOLS"
    exec 8<"$TOOLS"
    flock 8
}

unlock_tools() {
    exec 8<&-
}

# link_parts TOOL FOLDER PART...: links with the parts' names to one binary.
link_parts() {
    local target=$1 folder=$2 part
    shift 2
    mkdir -p -- "$folder"
    for part in "$@"; do
        [ "$(readlink -- "$folder/$part")" = "$target" ] || ln -sfn "$target" "$folder/$part"
    done
}

build_hyperkube() {
    build_tool hyperkube "Kubernetes $KUBERNETES_VERSION with a node: about 6 minutes the first time on 2 cores"
    link_parts hyperkube "$TOOLS" etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy coredns host-agent kubectl
}

build_tools() {
    lock_tools
    build_hyperkube
    build_pause
    unlock_tools
}

# An image is a tar of layers with two JSON files beside it; no daemon is needed to make one.
build_pause() {
    local work layer
    [ "$TOOLS/pause.tar" -nt "$HERE/pause/pause.c" ] && [ "$TOOLS/pause.tar" -nt "$HERE/lib/tools.sh" ] && return
    work=$(mktemp -d "$TOOLS/pause.XXXXXX")
    gcc -O2 -static -s -o "$work/pause" "$HERE/pause/pause.c" || die "building pause failed"
    tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$work/layer.tar" pause
    layer=$(sha256sum "$work/layer.tar" | cut -d ' ' -f 1)
    printf '{"architecture":"%s","os":"linux","config":{"Entrypoint":["/pause"],"User":"65535:65535"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' \
        "$(image_architecture)" "$layer" >"$work/config.json"
    printf '[{"Config":"config.json","RepoTags":["%s"],"Layers":["layer.tar"]}]' "$PAUSE_IMAGE" >"$work/manifest.json"
    tar -C "$work" --owner=0 --group=0 --mtime=@0 -cf "$TOOLS/pause.tar.new" manifest.json config.json layer.tar
    mv -f -- "$TOOLS/pause.tar.new" "$TOOLS/pause.tar"
    rm -rf -- "$work"
}

image_architecture() {
    case $(uname -m) in
    aarch64) printf arm64 ;;
    *) printf amd64 ;;
    esac
}
