/* fuzz_tokens.c - a file that is opened has all the tokens it promises, whatever its bytes. */
#include "fuzz.h"

#include "trainer/data/tokens.h"

#include <string.h>

static void shard(const uint8_t *data, size_t size)
{
    struct err err = {0};
    int64_t count;

    if (tokens_shard_parse("x.bin", data, size, &count, &err))
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else
        MUST(TOKENS_SHARD_HEADER + 2 * (uint64_t)count == size);
}

static void windows(const struct tokens *t)
{
    enum { TIME = 3 };
    float x[TIME];
    int32_t next[TIME];
    struct err err = {0};

    for (int64_t i = 0; i < tokens_windows(t); i++) {
        if (tokens_window(t, i, 1000, x, next, &err))
            MUST(err.kind == ERR_INVALID && strstr(err.msg, "token"));
        else
            MUST(x[TIME - 1] == (float)next[TIME - 2] && next[TIME - 1] >= 0 && next[TIME - 1] < 1000);
    }
}

/* The reader distinguishes files by their names, so these have one. */
static void array(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_tokens.XXXXXX.npy";
    int fd = mkstemps(path, 4);
    struct err err = {0};

    MUST(fd >= 0 && write(fd, data, size) == (ssize_t)size && !close(fd));
    {
        cleanup_tokens struct tokens *t = tokens_open(path, 3, &err);
        MUST(t || (err.kind == ERR_INVALID && err.msg[0]));
        if (t)
            windows(t);
    }
    MUST(!unlink(path));
}

/* The first byte selects the kind of file; the others are its bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && data[0] % 2)
        array(data + 1, size - 1);
    else if (size)
        shard(data + 1, size - 1);
    return 0;
}
