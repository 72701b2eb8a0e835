#!/usr/bin/env bash
# valgrind.sh PROGRAM ARGS... - run it under valgrind: no error, nothing lost. 77 where there is no valgrind.
set -euo pipefail
command -v valgrind >/dev/null || {
    echo "skipped: there is no valgrind"
    exit 77
}
exec valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite,indirect "$@"
