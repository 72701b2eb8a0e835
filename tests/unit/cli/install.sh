#!/bin/sh
# install.sh BUILD - what `make install` puts where, below DESTDIR.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
DESTDIR=$dir cmake --install "$1" --component cli --prefix /usr >/dev/null
got=$(cd "$dir" && find . -type f | sort)
want='./usr/bin/kubectl-ptj
./usr/bin/kubectl_complete-ptj
./usr/share/bash-completion/completions/kubectl-ptj
./usr/share/fish/vendor_completions.d/kubectl-ptj.fish
./usr/share/man/man1/kubectl-ptj.1
./usr/share/zsh/site-functions/_kubectl-ptj'
[ "$got" = "$want" ] || { printf 'install: expected:\n%s\ngot:\n%s\n' "$want" "$got" >&2; exit 1; }
[ -x "$dir/usr/bin/kubectl_complete-ptj" ] || { echo 'install: kubectl_complete-ptj is not executable' >&2; exit 1; }
PATH=$dir/usr/bin:$PATH
[ "$(kubectl_complete-ptj watch --unt)" = "$(kubectl-ptj __complete -- watch --unt)" ]
kubectl-ptj man | cmp - "$dir/usr/share/man/man1/kubectl-ptj.1"
