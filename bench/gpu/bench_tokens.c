/* bench_tokens.c - a file that is unlinked once it is mapped. */
#include "bench_tokens.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int write_shard(int fd, int64_t count, int64_t vocab, struct err *err)
{
    const uint32_t header[TOKENS_SHARD_HEADER / 4] = {TOKENS_SHARD_MAGIC, TOKENS_SHARD_VERSION,
                                                      (uint32_t)count};
    uint16_t some[4096];
    uint32_t x = 1;

    bool failed = write(fd, header, sizeof(header)) != (ssize_t)sizeof(header);
    for (int64_t done = 0; done < count && !failed;) {
        int64_t n = count - done < (int64_t)ARRAY_LEN(some) ? count - done : (int64_t)ARRAY_LEN(some);
        for (int64_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            some[i] = (uint16_t)((x >> 8) % (uint32_t)vocab);
        }
        ssize_t bytes = (ssize_t)((size_t)n * sizeof(*some));
        failed = write(fd, some, (size_t)bytes) != bytes;
        done += n;
    }
    return failed ? err_errno(err, ERR_FATAL, errno, "%lld tokens into a temporary file", (long long)count)
                  : 0;
}

struct tokens *bench_tokens(int64_t windows, int32_t time, int64_t vocab, struct err *err)
{
    const char *dir = getenv("TMPDIR");
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/gpu-bench-XXXXXX.bin", dir && *dir ? dir : "/tmp");
    cleanup_close int fd = mkstemps(path, 4);
    if (fd < 0) {
        err_errno(err, ERR_FATAL, errno, "%s: cannot make it", path);
        return NULL;
    }
    struct tokens *t = NULL;
    if (!write_shard(fd, windows * time + 1, vocab, err))
        t = tokens_open(path, time, err);
    unlink(path);
    return t;
}
