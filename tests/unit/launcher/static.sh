#!/bin/sh
# static.sh TREE TEST... - build torchrun as its image does, static with musl, and run these tests with it. It must need no
# file of the system that it runs on, and be small.
set -eu
tree=$1
shift
dir=$(mktemp -d)
chmod 755 "$dir" # a test runs it as nobody
trap 'rm -rf "$dir"' EXIT
if ! cmake -S "$tree" -B "$dir" -G Ninja --toolchain "$tree/cmake/musl.cmake" -DCMAKE_BUILD_TYPE=Release -DTK_WERROR=ON \
    -DTK_OPERATOR=OFF -DTK_TRAINER=OFF -DTK_TESTS=OFF -DTK_LAUNCHER=ON -DTK_STATIC=ON >"$dir/log" 2>&1 ||
    ! cmake --build "$dir" --target torchrun >"$dir/log" 2>&1; then
    tail -n 20 "$dir/log" >&2
    exit 1
fi
program=$dir/bin/torchrun
strip "$program"

wrong() {
    printf 'static: %s\n' "$1" >&2
    exit 1
}
shape=$(readelf -W --file-header --segments --dynamic -- "$program")
has() { echo "$shape" | grep -Eq -- "$1"; }
has ' INTERP |\(NEEDED\)' && wrong "the program needs a loader or a library"
has '^ *Type: +DYN' || wrong "the program is not position-independent"
has '^ *GNU_STACK .* 0x100000 RW ' || wrong "threads do not get 1 MiB of stack"
[ "$(stat -c %s "$program")" -le 3000000 ] || wrong "the program is larger than 3 MB"
for test in "$@"; do
    "$test" "$program" >"$dir/log" 2>&1 || { cat "$dir/log" >&2 && wrong "${test##*/} fails with the static program"; }
done
