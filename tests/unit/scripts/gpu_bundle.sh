#!/usr/bin/env bash
# gpu_bundle.sh REPO BUILD - the bundle of scripts/gpu.sh out of the programs of BUILD: it prints the reason where there is no GPU, also
# under an empty environment; and its parts run to the end on the emulated one, with a table, going on after a failure. They see
# no tests/ of the sources, as on another machine.
set -euo pipefail

repo=$1 build=$2
dir=$(mktemp -d)
trap 'rm -rf -- "$dir"' EXIT
fail() {
    echo "gpu_bundle: $*" >&2
    exit 1
}

(cd "$repo" && scripts/gpu.sh pack "$build" "$dir/bundle")
bundle=$dir/bundle
# Nothing of glibc, and all that the programs name.
for program in "$bundle"/bin/* "$bundle"/tests/*; do
    ! grep -q 'not found' <<<"$(LD_LIBRARY_PATH=$bundle/lib ldd "$program")" || fail "$program: a library is missing"
done
[ ! -e "$bundle/lib/libc.so.6" ] || fail "glibc is in the bundle"

# No GPU: one line with the reason, and 77.
if [ ! -e /dev/nvidiactl ] && [ ! -e /dev/dxg ]; then
    status=0
    said=$(cd / && env -i "$BASH" "$bundle/run.sh" 2>&1) || status=$?
    [[ "$status $said" == "77 run.sh: skipped: no NVIDIA GPU on this machine"* ]] || fail "no GPU: $status: $said"
fi
status=0
said=$(env -i "$BASH" "$bundle/run.sh" everything 2>&1) || status=$?
[[ "$status $said" == "2 "*"everything: expected figures"* ]] || fail "an unknown part: $status: $said"

# The emulated GPU. A namespace of mounts hides tests/ from these processes alone.
apart=(unshare --mount)
[ "$(id -u)" -eq 0 ] || apart=(unshare --mount --map-root-user)
"${apart[@]}" mount -t tmpfs none "$repo/tests" 2>"$dir/said" || {
    echo "gpu_bundle: the sources cannot be hidden here, so the bundle runs beside them: $(cat "$dir/said")"
    apart=()
}
emulated() { # emulated FOLDER PART...
    local alone=("$BASH" "$bundle/run.sh")
    # shellcheck disable=SC2016 # its own arguments
    [ ${#apart[@]} -eq 0 ] ||
        alone=("${apart[@]}" "$BASH" -c 'mount -t tmpfs none "$0" && exec "$@"' "$repo/tests" "${alone[@]}")
    (cd "$dir" && env -i PATH="$PATH" OUT="$dir/out" LIMIT_S=100000 EMULATED="$1" "${alone[@]}" "${@:2}") >"$dir/said" 2>&1
}
emulated "$build/tests/gpu/emulated" figures checks ranks || fail "emulated: $(cat "$dir/said")"
for row in 'convnet-2 +[0-9]+ s  ok' 'gpt2_bf16 +[0-9]+ s  ok' 'ranks +[0-9]+ s  ok' 'stages +[0-9]+ s  ok' '[0-9.]+ % of 989 TFLOPS'; do
    grep -Eq "$row" "$dir/said" || fail "emulated: no row $row: $(cat "$dir/said")"
done
[ "$(find "$dir/out" -name '*.log' | wc -l)" -eq 6 ] || fail "expected six logs: $(ls "$dir/out")"

# GPU support that cannot be loaded: each item fails, and the next one runs.
mkdir "$dir/broken"
echo none >"$dir/broken/libtk_cuda.so"
status=0
emulated "$dir/broken" figures || status=$?
[ "$status $(grep -c 'FAILED: exit status 1' "$dir/said")" = "1 2" ] || fail "a broken plug-in: $status: $(cat "$dir/said")"
