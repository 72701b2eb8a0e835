#!/bin/sh
# install.sh BUILD-FOLDER CC - what `cmake --install` gives others: the examples compile and link by its pkg-config file alone,
# outside of this tree, beside functions that have the names of our internal ones; a test of theirs runs on the fake API server; and no symbol is exported but kube_*.
set -eu
build=$(realpath "$1") cc=$2
examples=$(realpath "$(dirname "$0")/../../../kube/examples")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cmake --install "$build" --component kubecontroller --prefix "$dir/usr" >"$dir/log" || { cat "$dir/log"; exit 1; }
PKG_CONFIG_PATH=$(dirname "$(find "$dir/usr" -name kubecontroller.pc)")
export PKG_CONFIG_PATH
cp "$examples"/*.c "$dir"
cd "$dir"
# shellcheck disable=SC2046
for name in podcount configcopy; do
    "$cc" -Wall -Wextra -Werror "$name.c" -o "$name" $(pkg-config --cflags --libs kubecontroller)
    KUBECONFIG=/dev/null ./"$name" 2>"$name.err" && { echo "$name: expected an error without a server" >&2; exit 1; }
    grep -q "/dev/null" "$name.err" || { cat "$name.err" >&2; exit 1; }
done
# shellcheck disable=SC2046
"$cc" -Wall -Wextra -Werror podcount_test.c -o podcount_test $(pkg-config --cflags --libs kubecontroller-test)
./podcount_test
# A program with functions of its own that are called as internal ones of the library.
cat >ours.c <<'C'
#include <stdint.h>
#define OURS(name) int name(void); int name(void) { return 1; }
OURS(err_set) OURS(buf_puts) OURS(heap_push) OURS(json_parse) OURS(log_line) OURS(arena_release) OURS(work_free)
uint64_t kube_manager_seed(void);
int main(void) { return kube_manager_seed() == 0; }
C
# shellcheck disable=SC2046
"$cc" ours.c -o ours $(pkg-config --cflags --libs kubecontroller)
./ours
exported=$(nm -g --defined-only "$dir"/usr/lib*/libkubecontroller.a "$dir"/usr/lib*/*/libkubecontroller.a 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(kube_|KUBE_)/ { print $3 }')
[ -z "$exported" ] || { echo "exported besides kube_*: $exported" >&2; exit 1; }
[ "$(pkg-config --modversion kubecontroller)" = "$(sed -n 's/^#define KUBE_VERSION "\(.*\)"/\1/p' "$dir"/usr/include/kubecontroller/kube/kube.h)" ]
