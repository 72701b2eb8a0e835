#!/usr/bin/env bash
# release.sh TREE - scripts/release.sh in a small checkout of its own: what it refuses, with one message and nothing left behind;
# what it puts into the folder; the same bytes twice. The images are made up: a stand-in for build.sh keeps them in a folder.
set -euo pipefail
TREE=$1
TOP=$(mktemp -d)
trap 'rm -rf -- "$TOP"' EXIT
REPO=$TOP/tree
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@localhost
export COSIGN=$TOP/cosign COSIGN_KEY=$TOP/cosign.key COSIGN_PASSWORD=secret
export GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t@localhost STAND_IN=$TOP/stand-in

wrong() {
    printf '%s\n' "$*" >&2
    exit 1
}

# The stand-in: an image is its name, with a list of parts and a program in it. $STAND_IN/refuse makes the registry refuse.
make_stand_in() {
    cat >"$1" <<'END'
#!/usr/bin/env bash
set -euo pipefail
[ "$1" = store ] || { printf 'built %s\n' "$@" >>"$STAND_IN/calls"; exit; }
shift
printf '%s\n' "$*" >>"$STAND_IN/calls"
[ "$1" != bud ] || grep -qx 'FROM localhost/torchkeeper/.*:dev' "$(sed 's/.*--file \([^ ]*\) .*/\1/' <<<"$*")"
[ "$1 ${2:-}" != "manifest push" ] || shift
[ "$1" = push ] || exit 0
destination=${*: -1} image=${*: -2:1}
case $destination in
oci:*)
    layout=${destination#oci:} && layout=${layout%:*}
    mkdir -p "$layout/blobs/sha256" "$STAND_IN/files"
    printf 'parts of %s' "$image" >"$STAND_IN/files/sbom.spdx.json"
    for program in torchrun kubectl-ptj; do printf '%s of %s' "$program" "$image" >"$STAND_IN/files/$program"; done
    printf '{}' >"$layout/blobs/sha256/0"
    tar -C "$STAND_IN/files" --mtime=@0 -czf "$layout/blobs/sha256/1" sbom.spdx.json torchrun kubectl-ptj ;;
*)
    # As buildah 1.28: a list whose digest is asked for is never refused.
    if [ -e "$STAND_IN/refuse" ] && [[ "$*" = *--all*--digestfile* ]]; then exit 0; fi
    [ ! -e "$STAND_IN/refuse" ] || { printf 'something\nunauthorized: who are you\n' >&2; exit 1; }
    [[ "$*" = *--digestfile* ]] || exit 0
    digestfile=$(sed 's/.*--digestfile \([^ ]*\) .*/\1/' <<<"$*")
    printf 'sha256:%s' "$(printf '%s' "$image" | sha256sum | cut -d ' ' -f 1)" >"$digestfile" ;;
esac
END
    chmod +x "$1"
}

# cosign's words, and its keys and signatures of files by openssl: ECDSA P-256 over SHA-256, in base64.
make_cosign() {
    openssl ecparam -genkey -name prime256v1 -noout -out "$COSIGN_KEY"
    cat >"$COSIGN" <<'END'
#!/usr/bin/env bash
set -euo pipefail
printf 'cosign %s\n' "$*" >>"$STAND_IN/calls"
[ "$1" = version ] || [ "$COSIGN_PASSWORD" = secret ] || { printf 'Error: reading key: wrong password\n' >&2; exit 1; }
[[ "$1" != sign* ]] || [[ "$*" = *"--yes --tlog-upload=false --key $COSIGN_KEY "* ]]
case $1 in
version) cat "$STAND_IN/cosign-version" >&2 ;; # as some versions do
public-key) openssl pkey -in "$3" -pubout ;;
sign) [ ! -e "$STAND_IN/no-signatures" ] || { printf 'Error: DENIED\n' >&2; exit 1; } ;;
sign-blob) openssl dgst -sha256 -sign "$COSIGN_KEY" -- "${*: -1}" | base64 -w 0 >"$(sed 's/.*--output-signature \([^ ]*\) .*/\1/' <<<"$*")" ;;
esac
END
    chmod +x "$COSIGN"
    cosign_says v2.6.5
}

# cosign_says VERSION: what `cosign version` writes, below a picture.
cosign_says() { printf '  ____\ncosign: A tool.\n\nGitVersion:    %s\nGitCommit:     4063\n' "$1" >"$STAND_IN/cosign-version"; }

make_tree() {
    mkdir -p "$REPO/scripts" "$STAND_IN"
    (cd "$TREE" && cp --parents -R deploy crds CMakeLists.txt CHANGELOG.md scripts/release.sh scripts/chart-oci.sh scripts/lib.sh "$REPO")
    printf '/build/\n' >"$REPO/.gitignore"
    sed -i 's/^project(torchkeeper VERSION [0-9.]*/project(torchkeeper VERSION 7.8.9/' "$REPO/CMakeLists.txt"
    printf '\n## 7.8.9 (2030-01-01)\n' >>"$REPO/CHANGELOG.md"
    make_stand_in "$REPO/deploy/images/build.sh"
    make_cosign
    git -C "$REPO" init -q
    git -C "$REPO" add .
    git -C "$REPO" commit -qm one
}

release() { "$REPO/scripts/release.sh" "$@" >"$TOP/out" 2>"$TOP/err"; }

# refused MESSAGE ARGUMENT...: exactly one line, and no folder.
refused() {
    if release "${@:2}"; then wrong "not refused: ${*:2}"; fi
    grep -q -- "$1" "$TOP/err" || wrong "expected \"$1\", it said: $(<"$TOP/err")"
    [ "$(wc -l <"$TOP/err")" -eq 1 ] || wrong "more than one line: $(<"$TOP/err")"
    local left
    left=$(find "$REPO/build" -mindepth 1 -maxdepth 1 ! -name logs)
    [ -z "$left" ] || wrong "left behind: $left"
}

check_refusals() {
    local word
    for word in 7.8.9 v7.8 v7.8.9-rc1 v07.8.9 ''; do refused "VERSION \"$word\": expected one like v1.2.3" "$word" host/me; done
    for word in host '' Host/me host/me/ 'host/a b' host/me:dev https://host/me; do refused "REGISTRY \"$word\": expected" v7.8.9 "$word"; done
    refused 'expected VERSION and REGISTRY' v7.8.9
    refused 'VERSION v7.8.8: CMakeLists.txt has 7.8.9' v7.8.8 host/me
    : >"$REPO/a file"
    refused '1 uncommitted changes, the first: ?? "a file"' v7.8.9 host/me
    rm "$REPO/a file"
    sed -i 's/^## 7.8.9 /## 7.8.90 /' "$REPO/CHANGELOG.md"
    refused 'CHANGELOG.md has no heading "## 7.8.9"' v7.8.9 host/me
    git -C "$REPO" checkout -q CHANGELOG.md
    COSIGN_KEY='' refused 'COSIGN_KEY: expected the private key' v7.8.9 host/me
    COSIGN=/nowhere/cosign refused 'there is no program /nowhere/cosign: install cosign 2' v7.8.9 host/me
    for word in v3.0.2 v1.13.6 v20.1.0 devel ''; do
        cosign_says "$word"
        refused "$COSIGN is cosign \"$word\": expected 2.x, which signs without a public log" v7.8.9 host/me
        ! grep -qv '^cosign version$' "$STAND_IN/calls" || wrong "cosign $word: it went on: $(<"$STAND_IN/calls")"
        rm "$STAND_IN/calls"
    done
    cosign_says v2.6.5
    BASE=debian:bookworm-slim refused 'BASE "debian:bookworm-slim": expected an image by digest' v7.8.9 host/me
    [ ! -e "$STAND_IN/calls" ] || wrong "it built before it looked: $(<"$STAND_IN/calls")"
    : >"$STAND_IN/refuse"
    refused 'pushing to host/me/launcher:v7.8.9 failed: unauthorized: who are you; log: build/logs/release.log' v7.8.9 host/me
    ! grep -q 'built operator' "$STAND_IN/calls" || wrong "the operator was built for a registry that refuses"
    rm "$STAND_IN/refuse"
    COSIGN_PASSWORD=other refused "COSIGN_KEY $COSIGN_KEY: Error: reading key: wrong password" v7.8.9 host/me
    : >"$STAND_IN/no-signatures"
    refused "signing host/me/launcher@$(digest launcher) failed: Error: DENIED" v7.8.9 host/me
    rm "$STAND_IN/no-signatures"
}

digest() { printf 'sha256:%s' "$(printf '%s' "localhost/torchkeeper/$1:v7.8.9" | sha256sum | cut -d ' ' -f 1)"; }

check_release() {
    local folder=$REPO/build/release-v7.8.9 name file
    release v7.8.9 127.0.0.1:5000/me || wrong "failed: $(<"$TOP/err")"
    (cd "$folder" && sha256sum --quiet -c SHA256SUMS) || wrong "the sums are wrong"
    [ "$(cd "$folder" && find . -type f ! -name SHA256SUMS ! -name '*.sig' | wc -l)" -eq "$(wc -l <"$folder/SHA256SUMS")" ] || wrong "not all has a sum"
    for name in operator trainer tensorboard launcher; do
        grep -qx "$name 127.0.0.1:5000/me/$name@$(digest "$name")" "$folder/images.txt" || wrong "images.txt: $(<"$folder/images.txt")"
    done
    for file in install.yaml install-namespaced.yaml; do
        for name in '^        image: ' --tensorboard-image= --launcher-image=; do
            [ "$(grep -c -- "$name" "$folder/$file")" -eq 1 ] || wrong "$file: $name"
        done
        [ "$(grep -c '127.0.0.1:5000/me/[a-z]*@sha256:[0-9a-f]\{64\}$' "$folder/$file")" -eq 3 ] || wrong "$file: $(grep image "$folder/$file")"
        ! grep -n localhost/ "$folder/$file" || wrong "$file names what no registry has"
    done
    tar -xzf "$folder/torchkeeper-7.8.9.tgz" -C "$TOP"
    for name in operator tensorboard launcher; do
        grep -qxE "  $name: \{repository: 127.0.0.1:5000/me/$name, tag: \"\", digest: \"$(digest "$name")\"\}.*" "$TOP/torchkeeper/values.yaml" ||
            wrong "the chart's $name: $(grep "$name:" "$TOP/torchkeeper/values.yaml")"
    done
    ! grep -rn localhost/ "$TOP/torchkeeper" || wrong "the chart names what no registry has"
    [ -z "$(find "$TOP/torchkeeper" -type l)" ] || wrong "the chart has links out of itself"
    [ "$(sed -n 's/^\(appV\|v\)ersion: //p' "$TOP/torchkeeper/Chart.yaml" | tr '\n' ' ')" = "7.8.9 v7.8.9 " ] || wrong "the chart's version"
    tar -xOf "$folder/torchkeeper-7.8.9.oci.tar" "blobs/sha256/$(sha256sum <"$folder/torchkeeper-7.8.9.tgz" | cut -d ' ' -f 1)" |
        cmp - "$folder/torchkeeper-7.8.9.tgz" || wrong "the OCI archive has another chart"
    for name in operator trainer tensorboard launcher-amd64 launcher-arm64; do
        [ "$(<"$folder/sbom/$name.spdx.json")" = "parts of localhost/torchkeeper/$name:v7.8.9" ] || wrong "sbom of $name"
        tar -tf "$folder/images/$name.tar" ./blobs/sha256/1 >/dev/null || wrong "archive of $name"
    done
    [ "$(<"$folder/torchrun-linux-arm64")" = "torchrun of localhost/torchkeeper/launcher-arm64:v7.8.9" ] || wrong "torchrun for arm64"
    [ "$(cat "$folder"/kubectl-ptj-linux-*)" = "kubectl-ptj of localhost/torchkeeper/kubectl-ptj:dev" ] || wrong "kubectl-ptj"
    ! grep -q kubectl-ptj "$folder/images.txt" || wrong "kubectl-ptj is published as an image"
    [ -x "$folder/torchrun-linux-amd64" ] || wrong "torchrun is not executable"
    grep -q "^push .*--tls-verify=false" "$STAND_IN/calls" || wrong "loopback needs no TLS"
    grep -q "^bud .*--label org.opencontainers.image.version=v7.8.9 .*revision=$(git -C "$REPO" rev-parse HEAD)" "$STAND_IN/calls" ||
        wrong "labels: $(grep -m 1 ^bud "$STAND_IN/calls")"
}

# What `cosign verify-blob --key` does, by another program.
check_signatures() {
    local folder=$REPO/build/release-v7.8.9 file name
    for file in SHA256SUMS torchkeeper-7.8.9.tgz; do
        base64 -d "$folder/$file.sig" >"$TOP/signature"
        openssl dgst -sha256 -verify "$folder/cosign.pub" -signature "$TOP/signature" "$folder/$file" >/dev/null || wrong "signature of $file"
    done
    [ "$(find "$folder" -name '*.sig' | wc -l)" -eq 2 ] || wrong "signatures: $(find "$folder" -name '*.sig')"
    for name in operator trainer tensorboard launcher; do
        grep -q "^cosign sign --yes .* --recursive 127.0.0.1:5000/me/$name@$(digest "$name")\$" "$STAND_IN/calls" || wrong "$name is not signed"
    done
    ! grep -q 'not signed' "$TOP/out" || wrong "said: $(<"$TOP/out")"
}

check_unsigned() {
    local folder=$REPO/build/release-v7.8.9
    rm "$STAND_IN/refuse"
    COSIGN_KEY=none COSIGN=/nowhere/cosign release v7.8.9 127.0.0.1:5000/me || wrong "failed: $(<"$TOP/err")"
    [ -z "$(find "$folder" -name '*.sig' -o -name cosign.pub)" ] || wrong "signed by nobody"
    grep -q ' files, not signed; images by digest:' "$TOP/out" || wrong "said: $(<"$TOP/out")"
}

check_again() {
    local folder=$REPO/build/release-v7.8.9
    cp "$folder/SHA256SUMS" "$TOP/first"
    : >"$folder/stale"
    (umask 077 && TZ=Asia/Tokyo release v7.8.9 127.0.0.1:5000/me) || wrong "failed: $(<"$TOP/err")"
    cmp "$folder/SHA256SUMS" "$TOP/first" || wrong "two runs differ"
    [ -z "$(find "$folder" ! -perm -o=r)" ] || wrong "not all may read the release: $(find "$folder" ! -perm -o=r)"
    [ ! -e "$folder/stale" ] || wrong "the earlier folder was not replaced"
    # One that fails leaves the earlier one.
    : >"$STAND_IN/refuse"
    if release v7.8.9 host/me; then wrong "not refused"; fi
    cmp "$folder/SHA256SUMS" "$TOP/first" || wrong "a run that failed changed the folder"
    if release v7.8.9 127.example.org/me; then wrong "not refused"; fi
    ! grep -q 'tls-verify=false.*docker://\(host\|127.example\)' "$STAND_IN/calls" || wrong "TLS of a remote registry is not verified"
}

make_tree
check_refusals
check_release
check_signatures
check_again
check_unsigned
