/* tokens.h - map files of tokens and read them as the windows on which a language model is trained.
 *
 * Formats:   by a file's name: .bin is llm.c's shard (256 int32, of which 20240520, version 1 and the number of tokens;
 *            then uint16), or uint16 alone, as nanoGPT writes; .npy a vector of uint16, anything else plain bytes, a token
 *            0..255 each.
 * Order:     the files of a pattern sorted by their bytes; each is cut into windows of `time` tokens and the one behind
 *            them, which the next window begins with. What is left of a file is less than a window and not used: that is
 *            llm.c's rule. The sampler decides which rank takes which window.
 * Ownership: tokens_open makes, tokens_free frees. Files are mapped read-only and shared with all who map them; one that
 *            is cut short meanwhile ends the process by SIGBUS.
 * Errors:    ERR_NOT_FOUND (nothing matches), ERR_INVALID ("<path>: <field>: <value>, expected ..."), ERR_FATAL.
 */
#ifndef TK_TRAINER_DATA_TOKENS_H
#define TK_TRAINER_DATA_TOKENS_H

#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TOKENS_FILES_MAX = 65536,
    TOKENS_BYTES_VOCAB = 256, /* of plain bytes */

    /* llm.c: dev/data/data_common.py, write_datafile */
    TOKENS_SHARD_MAGIC = 20240520,
    TOKENS_SHARD_VERSION = 1,
    TOKENS_SHARD_HEADER = 1024,
};

struct tokens;

/* `pattern`: as in glob(7). */
struct tokens *tokens_open(const char *pattern, int32_t time, struct err *err);
void tokens_free(struct tokens *t);

static inline void tokens_freep(struct tokens **t)
{
    tokens_free(*t);
}
#define cleanup_tokens __attribute__((cleanup(tokens_freep)))

int64_t tokens_windows(const struct tokens *t); /* at least 1 */

/* 256 when all files are plain bytes; else 0: not known. */
int32_t tokens_vocab(const struct tokens *t);

/* Read window `window` (0..windows-1): x, its tokens as floats; next, the token after each. All must be below `vocab`:
 * ERR_INVALID names the file and the position. */
int tokens_window(const struct tokens *t, int64_t window, int32_t vocab, float *x, /* (time) */
                  int32_t *next,                                                   /* (time) */
                  struct err *err) MUST_CHECK;

/* The header of an llm.c shard, which has `bytes` bytes. */
int tokens_shard_parse(const char *path, const void *file, size_t bytes, int64_t *ret_count,
                       struct err *err) MUST_CHECK;

#endif
