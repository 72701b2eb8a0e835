#!/bin/sh
# hardened.sh CC PROGRAM... - fail when a program lacks the hardening that its compiler and linker flags request:
# a position that nobody knows, tables that are read-only before main, no memory both written and run, no search path
# for libraries that others may fill, checked copies and guarded stacks.
set -eu
cc=$1
shift
# weaknesses FILE: one word for each.
weaknesses() {
    file=$(readelf -W --file-header --segments --dynamic --symbols -- "$1")
    has() { echo "$file" | grep -Eq -- "$1"; }
    has '^ *Type: +DYN' && has 'FLAGS_1.* PIE' || echo not-pie
    has '^ *GNU_RELRO ' || echo no-relro
    has 'FLAGS_1.* NOW' || echo lazy-binding
    has '^ *GNU_STACK .* RW +0x' || echo stack-is-run
    has '^ *LOAD .* RWE ' && echo written-and-run
    has '\(TEXTREL\)' && echo text-relocations
    has '\((RPATH|RUNPATH)\)' && echo search-path
    has ' __[a-z]+_chk(@| |$)' || echo not-fortified
    has ' __stack_chk_fail(@| |$)' || echo stack-unguarded
    return 0
}

# The check itself must be able to fail.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
echo 'int main(void) { return 0; }' >"$dir/weak.c"
"$cc" -O0 -U_FORTIFY_SOURCE -fno-stack-protector -fno-pie -no-pie -Wl,-z,norelro,-z,lazy,-z,execstack -Wl,-rpath,/tmp \
    "$dir/weak.c" -o "$dir/weak" 2>/dev/null
got=$(weaknesses "$dir/weak" | xargs)
want='not-pie no-relro lazy-binding stack-is-run search-path not-fortified stack-unguarded'
[ "$got" = "$want" ] || { printf 'hardened: of a weak program it says:\n%s\nexpected:\n%s\n' "$got" "$want" >&2; exit 1; }

bad=0
[ $# -gt 0 ] || { echo "hardened: no program given" >&2; exit 1; }
for program in "$@"; do
    found=$(weaknesses "$program" | xargs)
    if [ -n "$found" ]; then
        printf '%s is not hardened: %s\n' "$program" "$found" >&2
        bad=1
    fi
done
exit "$bad"
