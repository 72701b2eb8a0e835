#!/bin/bash
# purity.sh NM ARCHIVE... - the byte and number modules are pure: their objects refer to no clock, environment, file,
# other random numbers or log. The exceptions are those that read and write files.
set -euo pipefail
nm=$1
shift
symbols=$("$nm" -A -u "$@")

# The check itself must see something: an empty list would pass anything.
for known in 'gzfile\.c\.o:.* U open' 'torch_zip\.c\.o:.* U crc32' 'events\.c\.o:.* U ftruncate'; do
    grep -qE ":$known(64)?\$" <<<"$symbols" || {
        echo "purity: no symbols read from $*" >&2
        exit 1
    }
done

banned='time|gettimeofday|clock_gettime|clock_system|getenv|secure_getenv|fopen|fdopen|open|openat|read|write|fwrite'
banned+='|fs_[a-z_]+|rand|random|getrandom|srand|log_(line|level_parse)|printf|__printf_chk|fprintf|__fprintf_chk|puts'
if grep -vE ':(gzfile|dataset|tokens|events|export|piece|attempt_mark|ckpt_dir|ckpt_read|folder)\.c\.o:' <<<"$symbols" | grep -E " U ($banned)(64)?\$"; then
    echo "purity: pure modules refer to what they must not (above)" >&2
    exit 1
fi
