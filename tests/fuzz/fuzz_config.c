/* fuzz_config.c - a preset that the reader accepts gives the same run twice; for one that it refuses the error says what is wrong. */
#include "fuzz.h"

#include "trainer/cli/config.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_arena struct arena a = {0};
    struct config one, two;
    struct err err = {0};
    const char *text = (const char *)data;

    if (config_decode("net.yaml", text, size, &a, &one, &err) < 0) {
        MUST(err.kind == ERR_INVALID && strncmp(err.msg, "net.yaml", 8) == 0);
        return 0;
    }
    MUST(config_decode("net.yaml", text, size, &a, &two, &err) == 0);
    MUST(config_fingerprint(&one) == config_fingerprint(&two));
    MUST(config_resumable(&one) == config_resumable(&two));
    MUST(one.batch_size >= 1 && one.batch_size <= BATCH_SIZE_MAX && one.positionals <= POSITIONALS_MAX);
    if (config_batch(&one, 3, &err) < 0)
        MUST(err.kind == ERR_INVALID && err.msg[0]);
    else
        MUST(one.batch_size >= 1 && one.batch_size <= BATCH_SIZE_MAX && one.micro_batches >= 1);
    return 0;
}
