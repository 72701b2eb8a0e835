#!/bin/bash
# purity.sh NM ARCHIVE... - operations neither allocate, log, read clocks nor the environment: they cannot, because
# their objects do not refer to anything that does. kctx, memory and team, which set up, are the
# exceptions.
set -euo pipefail
nm=$1
shift
symbols=$("$nm" -A -u "$@")

# The check itself must see something: an empty list would pass anything.
grep -qE ':kctx\.c\.o:.* U calloc$' <<<"$symbols" || {
    echo "kernels: no symbols read from $*" >&2
    exit 1
}

banned='malloc|calloc|realloc|aligned_alloc|posix_memalign|free|mmap|printf|fprintf|__printf_chk|__fprintf_chk|puts|write'
banned+='|time|clock_gettime|getenv|rand|log_[a-z]+|pthread_[a-z_]+'
if grep -v -e ':kctx\.c\.o:' -e ':memory\.c\.o:' -e ':team\.c\.o:' <<<"$symbols" | grep -E " U ($banned)$"; then
    echo "kernels: operations refer to what they must not (above)" >&2
    exit 1
fi
