/* shards.h - write tokens as files of llm.c's format (data/tokens.h), a fixed number of tokens in each.
 *
 * Names:     <prefix>_000000.bin, <prefix>_000001.bin, ...; with val_tokens the first of all tokens go to
 *            <prefix>_val_000000.bin, ... and the others to <prefix>_train_000000.bin, ....
 * Ownership: shards_make to shards_release; the prefix is borrowed.
 * Errors:    ERR_INVALID (files of such names are there already), ERR_FATAL (cannot write). A file appears when it is
 *            whole; on failure the one that is being written never does.
 */
#ifndef TK_TOOLS_TEXT_SHARDS_H
#define TK_TOOLS_TEXT_SHARDS_H

#include "common/fsutil.h"
#include "trainer/data/tokens.h"

#include <limits.h>

struct shards_options {
    const char *prefix;
    int64_t shard_tokens; /* 1..TOKENS_SHARD_MAX */
    int64_t val_tokens;   /* 0: none apart */
};

struct shards {
    struct shards_options o;
    struct fs_atomic file;
    int64_t in_file; /* tokens of the open file, buffered ones included */
    int64_t total;
    int64_t number; /* of the next file among its kind */
    int64_t files;
    uint8_t *buffer;
    size_t buffered; /* bytes */
    char last[PATH_MAX];
};

int shards_make(struct shards *s, const struct shards_options *o, struct err *err) MUST_CHECK;
int shards_put(struct shards *s, const uint16_t *tokens, size_t n, struct err *err) MUST_CHECK;
int shards_end(struct shards *s, struct err *err) MUST_CHECK;
void shards_release(struct shards *s);
#define cleanup_shards __attribute__((cleanup(shards_release)))

#endif
