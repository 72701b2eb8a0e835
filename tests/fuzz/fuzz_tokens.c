/* fuzz_tokens.c - a shard that is opened has all the tokens it promises, whatever its bytes. */
#include "fuzz.h"

#include "trainer/data/tokens.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { TIME = 3 };
    char folder[] = "/tmp/fuzz_tokens.XXXXXX";
    char path[64];
    float x[TIME];
    int32_t next[TIME];
    struct err err = {0};

    if (!size)
        return 0;
    MUST(mkdtemp(folder));
    /* The first byte says which kind of file the others are. */
    snprintf(path, sizeof(path), "%s/a.%s", folder, data[0] % 2 ? "npy" : "bin");
    FILE *f = fopen(path, "wb");
    MUST(f && fwrite(data + 1, 1, size - 1, f) == size - 1 && !fclose(f));
    {
        cleanup_tokens struct tokens *t = tokens_open(path, TIME, &err);
        MUST(t || (err.kind == ERR_INVALID && err.msg[0]));
        for (int64_t i = 0; t && i < tokens_windows(t); i++) {
            if (tokens_window(t, i, 1000, x, next, &err))
                MUST(err.kind == ERR_INVALID && strstr(err.msg, "token"));
            else
                MUST(x[TIME - 1] == (float)next[TIME - 2] && next[TIME - 1] >= 0 && next[TIME - 1] < 1000);
        }
    }
    MUST(!unlink(path) && !rmdir(folder));
    return 0;
}
