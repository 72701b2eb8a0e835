/* bpe.c - byte-pair encoding: merge the pair of lowest rank in a word, leftmost first, until none is in the vocabulary. */
#include "common/memory.h"
#include "tools/text/bpe_table.h"

#include "common/hash.h"

#include <stdlib.h>
#include <string.h>

enum { CACHE_WORDS = 1 << 16, CACHED_BYTES = 22, CACHED_TOKENS = 8 };

/* A word that has been seen. One that another falls on is forgotten. */
struct bpe_word {
    uint8_t len, tokens; /* len 0: free */
    uint8_t text[CACHED_BYTES];
    uint16_t token[CACHED_TOKENS];
};

/* The pieces of a long word: piece i begins at its byte i. */
struct work {
    uint32_t token[BPE_WORD_BYTES];
    uint32_t next[BPE_WORD_BYTES], before[BPE_WORD_BYTES];
    uint64_t heap[3 * BPE_WORD_BYTES]; /* rank << 32 | piece: the least is merged first */
    size_t heap_len;
};

static const uint32_t GONE = UINT32_MAX;

static size_t slot_of(uint32_t left, uint32_t right)
{
    uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(key >> 46); /* 18 bits: BPE_SLOTS */
}

int bpe_rank(const struct bpe *b, uint32_t left, uint32_t right)
{
    for (size_t s = slot_of(left, right); b->pair_slot[s]; s = (s + 1) % BPE_SLOTS) {
        const struct bpe_merge *m = &b->merge[b->pair_slot[s] - 1];
        if (m->left == left && m->right == right)
            return b->pair_slot[s] - 1;
    }
    return -1;
}

bool bpe_add_merge(struct bpe *b, struct bpe_merge m)
{
    size_t s = slot_of(m.left, m.right);

    if (bpe_rank(b, m.left, m.right) >= 0)
        return false;
    while (b->pair_slot[s])
        s = (s + 1) % BPE_SLOTS;
    b->merge[b->merges] = m;
    b->pair_slot[s] = ++b->merges;
    return true;
}

static struct bpe *make(void)
{
    struct bpe *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->end_of_text = -1;
    b->cache = calloc(CACHE_WORDS, sizeof(*b->cache));
    b->work = malloc(sizeof(struct work));
    if (b->cache && b->work)
        return b;
    bpe_free(b);
    return NULL;
}

struct bpe *bpe_open(const char *vocab_path, const char *merges_path, struct err *err)
{
    cleanup_bpe struct bpe *b = make();

    if (!b) {
        err_memory(err, "no memory for a vocabulary");
        return NULL;
    }
    if (bpe_read_vocab(b, vocab_path, err) || bpe_read_merges(b, merges_path, err))
        return NULL;
    return TAKE(b);
}

struct bpe *bpe_bytes(void)
{
    struct bpe *b = make();

    if (!b)
        memory_exhausted();
    b->vocab = 256;
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        b->byte[i] = i;
        b->token[i] = (struct bpe_token){arena_strndup(&b->arena, &c, 1), 1};
    }
    return b;
}

void bpe_free(struct bpe *b)
{
    if (!b)
        return;
    arena_release(&b->arena);
    free(b->cache);
    free(b->work);
    free(b);
}

int bpe_vocab(const struct bpe *b)
{
    return b->vocab;
}

int bpe_end_of_text(const struct bpe *b)
{
    return b->end_of_text;
}

const char *bpe_text(const struct bpe *b, int token, size_t *ret_len)
{
    *ret_len = 0;
    if (token < 0 || token >= b->vocab || !b->token[token].text)
        return NULL;
    *ret_len = b->token[token].len;
    return b->token[token].text;
}

/* Short words: the strongest pair is looked for anew each time. */
static size_t merge_short(const struct bpe *b, const uint8_t *word, size_t len, uint32_t *token)
{
    for (size_t i = 0; i < len; i++)
        token[i] = (uint32_t)b->byte[word[i]];
    while (len > 1) {
        int best = -1;
        size_t at = 0;
        for (size_t i = 0; i + 1 < len; i++) {
            int rank = bpe_rank(b, token[i], token[i + 1]);
            if (rank >= 0 && (best < 0 || rank < best)) {
                best = rank;
                at = i;
            }
        }
        if (best < 0)
            break;
        token[at] = b->merge[best].into;
        memmove(&token[at + 1], &token[at + 2], (len - at - 2) * sizeof(*token));
        len--;
    }
    return len;
}

static void heap_push(struct work *w, uint64_t key)
{
    size_t i = w->heap_len++;

    for (; i && w->heap[(i - 1) / 2] > key; i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = key;
}

static uint64_t heap_pop(struct work *w)
{
    uint64_t top = w->heap[0];
    uint64_t last = w->heap[--w->heap_len];
    size_t i = 0;

    for (size_t child = 1; child < w->heap_len; child = 2 * i + 1) {
        if (child + 1 < w->heap_len && w->heap[child + 1] < w->heap[child])
            child++;
        if (w->heap[child] >= last)
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

static void offer(const struct bpe *b, struct work *w, uint32_t left)
{
    uint32_t right = w->next[left];
    int rank = right == GONE ? -1 : bpe_rank(b, w->token[left], w->token[right]);

    if (rank >= 0)
        heap_push(w, (uint64_t)rank << 32 | left);
}

/* Long ones: pairs wait in a heap, by strength and then by place; one that has changed meanwhile is passed over. Each merge
 * offers two more at most, so that 3 len are enough. */
static size_t merge_long(const struct bpe *b, struct work *w, const uint8_t *word, size_t len, uint16_t *out)
{
    size_t n = 0;

    w->heap_len = 0;
    for (uint32_t i = 0; i < len; i++) {
        w->token[i] = (uint32_t)b->byte[word[i]];
        w->before[i] = i ? i - 1 : GONE;
        w->next[i] = i + 1 < len ? i + 1 : GONE;
    }
    for (uint32_t i = 0; i + 1 < len; i++)
        offer(b, w, i);
    while (w->heap_len) {
        uint64_t key = heap_pop(w);
        uint32_t left = (uint32_t)key;
        uint32_t right = w->next[left];
        if (w->token[left] == GONE || right == GONE ||
            bpe_rank(b, w->token[left], w->token[right]) != (int)(key >> 32))
            continue;
        w->token[left] = b->merge[key >> 32].into;
        w->token[right] = GONE;
        w->next[left] = w->next[right];
        if (w->next[left] != GONE)
            w->before[w->next[left]] = left;
        offer(b, w, left);
        if (w->before[left] != GONE)
            offer(b, w, w->before[left]);
    }
    for (uint32_t i = 0; i != GONE; i = w->next[i])
        out[n++] = (uint16_t)w->token[i];
    return n;
}

size_t bpe_word(struct bpe *b, const uint8_t *word, size_t len, uint16_t *out)
{
    enum { SHORT = 64 };
    uint32_t token[SHORT];

    if (!len || len > BPE_WORD_BYTES)
        abort();
    if (len > SHORT)
        return merge_long(b, b->work, word, len, out);
    struct bpe_word *c = &b->cache[hash_fnv1a(HASH_FNV1A, word, len) % CACHE_WORDS];
    if (c->len == len && memcmp(c->text, word, len) == 0) {
        memcpy(out, c->token, c->tokens * sizeof(*out));
        return c->tokens;
    }
    size_t n = merge_short(b, word, len, token);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint16_t)token[i];
    if (len <= CACHED_BYTES && n <= CACHED_TOKENS) {
        c->len = (uint8_t)len;
        c->tokens = (uint8_t)n;
        memcpy(c->text, word, len);
        memcpy(c->token, out, n * sizeof(*out));
    }
    return n;
}
