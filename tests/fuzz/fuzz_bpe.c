/* fuzz_bpe.c - a vocabulary that is opened writes every text in tokens that say it again. */
#include "fuzz_file.h"

#include "tools/text/bpe.h"

#include <string.h>

/* All bytes as tokens, and the merges of a few letters: where the fuzzer's own come in. */
static void put_vocab(const char *path)
{
    FILE *f = fopen(path, "w");
    int next = 256;

    MUST(f);
    fputs("{\"ab\": 256, \"abc\": 257, \"bc\": 258, \"aa\": 259, \"aaaa\": 260", f);
    for (int i = 0; i < 256; i++) {
        int printed = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
        fprintf(f, ", \"\\u%04x\": %d", (unsigned)(printed ? i : next++), i);
    }
    fputs("}", f);
    MUST(!fclose(f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char folder[FUZZ_FOLDER_BYTES];
    char vocab[64], merges[64];
    uint16_t token[256];
    struct err err = {0};

    fuzz_folder_make(folder);
    snprintf(vocab, sizeof(vocab), "%s/v", folder);
    snprintf(merges, sizeof(merges), "%s/m", folder);
    put_vocab(vocab);
    /* The first byte says which of the two files the others are. */
    FILE *f = fopen(size && data[0] % 2 ? vocab : merges, "wb");
    MUST(f && (size < 2 || fwrite(data + 1, 1, size - 1, f) == size - 1) && !fclose(f));
    if (size && data[0] % 2)
        MUST((f = fopen(merges, "w")) && !fclose(f));
    {
        cleanup_bpe struct bpe *b = bpe_open(vocab, merges, &err);
        MUST(b || (err.kind == ERR_INVALID && err.msg[0]));
        for (size_t n = 1; b && n <= size && n <= 200; n += 67) {
            size_t tokens = bpe_word(b, data, n, token);
            size_t at = 0;
            for (size_t i = 0; i < tokens; i++) {
                size_t len;
                const char *text = bpe_text(b, token[i], &len);
                MUST(text && len <= n - at && memcmp(text, data + at, len) == 0);
                at += len;
            }
            MUST(at == n);
        }
    }
    MUST(!unlink(vocab) && !unlink(merges) && !rmdir(folder));
    return 0;
}
