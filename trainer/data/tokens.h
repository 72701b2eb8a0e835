/* tokens.h - map files of tokens and read windows of them, the samples of a language model. formats/tokens.c
 * and feed.c call it.
 *
 * Formats:   by the file's name. .bin: llm.c's shard (a header of 256 int32: 20240520, version 1, the number
 *            of tokens, ...; then uint16), or uint16 alone as nanoGPT writes it. .npy: a vector of uint16.
 *            Other names: plain bytes, each a token 0..255.
 * Order:     the files of a pattern are sorted by the bytes of their names. Each file is split into windows
 *            of `time` tokens plus the next token, with which the next window begins. By llm.c's rule the
 *            rest of a file, less than a window, is not used. The sampler decides which rank takes which
 *            window.
 * Ownership: tokens_open to tokens_free. Files are mapped read-only and shared. If a file is truncated
 *            meanwhile, SIGBUS ends the process.
 * Errors:    ERR_NOT_FOUND (nothing matches), ERR_INVALID ("<path>: <field>: <value>, expected ..."), ERR_FATAL.
 */
#ifndef TK_TRAINER_DATA_TOKENS_H
#define TK_TRAINER_DATA_TOKENS_H

#include "common/cleanup.h"
#include "common/err.h"

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

/* 256 if all files are plain bytes; 0: not known. */
int32_t tokens_vocab(const struct tokens *t);

/* Read window `window` (0..windows-1): x, its tokens as floats; next, the token after each. ERR_INVALID: a
 * token is not below `vocab`; the message names the file and the position. */
int tokens_window(const struct tokens *t, int64_t window, int32_t vocab, float *x, /* (time) */
                  int32_t *next,                                                   /* (time) */
                  struct err *err) MUST_CHECK;

/* The header of an llm.c shard, which has `bytes` bytes. */
int tokens_shard_parse(const char *path, const void *file, size_t bytes, int64_t *ret_count,
                       struct err *err) MUST_CHECK;

#endif
