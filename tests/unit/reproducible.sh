#!/bin/sh
# reproducible.sh TREE CC - build the operator twice as its image does, from copies of the tree in folders of other names,
# with another time zone, language and umask; fail unless both come out with the same bytes, as built and as shipped
# (stripped).
set -eu
tree=$1
cc=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# build SOURCE OUT FOLDER: OUT and OUT.stripped, by way of SOURCE/FOLDER.
build() {
    mkdir -p "$1"
    (cd "$tree" && cp -R CMakeLists.txt cmake common kube operator cli "$1")
    if ! cmake -S "$1" -B "$1/$3" -G Ninja -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release -DTK_TRAINER=OFF \
        -DTK_TESTS=OFF >"$dir/log" 2>&1 || ! cmake --build "$1/$3" --target ptj-operator >"$dir/log" 2>&1; then
        tail -n 20 "$dir/log" >&2
        exit 1
    fi
    cp "$1/$3/bin/ptj-operator" "$2"
    strip -o "$2.stripped" "$2"
}

(umask 022 && TZ=UTC LC_ALL=C build "$dir/a" "$dir/one" build)
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 CCACHE_DISABLE=1 build "$dir/another place/of/the tree" "$dir/two" out)
for suffix in '' .stripped; do
    cmp "$dir/one$suffix" "$dir/two$suffix" || {
        echo "reproducible: two builds of one tree differ" >&2
        exit 1
    }
done
