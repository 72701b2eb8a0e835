/* bpe_table.h - the vocabulary in memory, for bpe.c and bpe_files.c alone. */
#ifndef TK_TOOLS_TEXT_BPE_TABLE_H
#define TK_TOOLS_TEXT_BPE_TABLE_H

#include "common/arena.h"
#include "tools/text/bpe.h"

#include <stdbool.h>

enum { BPE_SLOTS = 1 << 18 }; /* of a table of at most 65536 keys: a quarter full */

struct bpe_token {
    const char *text; /* NULL: there is none of this number */
    size_t len;
};

/* Two tokens side by side and what becomes of them. */
struct bpe_merge {
    uint32_t left, right, into;
};

struct bpe_word; /* of the cache */

struct bpe {
    struct arena arena;
    struct bpe_token token[BPE_VOCAB_MAX];
    int vocab;
    int end_of_text;
    int byte[256];                /* the token of each byte by itself */
    int32_t text_slot[BPE_SLOTS]; /* token + 1 of a text; 0: free */

    struct bpe_merge merge[BPE_VOCAB_MAX]; /* by rank, the strongest first */
    int merges;
    int32_t pair_slot[BPE_SLOTS]; /* rank + 1 of a pair; 0: free */

    struct bpe_word *cache;
    void *work; /* of one long word */
};

/* The token of that text; -1: there is none. */
int bpe_token_of(const struct bpe *b, const char *text, size_t len);

/* The rank of a merge of these two; -1: there is none. */
int bpe_rank(const struct bpe *b, uint32_t left, uint32_t right);

/* False: it is there already. */
bool bpe_add_merge(struct bpe *b, struct bpe_merge m);

int bpe_read_vocab(struct bpe *b, const char *path, struct err *err) MUST_CHECK;
int bpe_read_merges(struct bpe *b, const char *path, struct err *err) MUST_CHECK;

#endif
