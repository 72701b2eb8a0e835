/* bpe_files.c - read GPT-2's vocabulary, encoder.json and vocab.bpe, into tables. */
#include "tools/text/bpe_table.h"

#include "common/fsutil.h"
#include "common/hash.h"
#include "common/json.h"
#include "common/sv.h"

#include <string.h>

enum { FILE_BYTES_MAX = 32 << 20, CHARACTERS = 256 + 68 };

/* bytes_to_unicode: bytes that print stand for themselves, the 68 others for U+0100 and on, in their order. */
static bool prints(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

static void make_bytes(int16_t byte_of[static CHARACTERS])
{
    int next = 256;

    memset(byte_of, 0xff, CHARACTERS * sizeof(*byte_of));
    for (int i = 0; i < 256; i++)
        byte_of[prints(i) ? i : next++] = (int16_t)i;
}

/* The characters of `text`, of U+0001..U+0143, as the bytes they stand for: their number, -1: another character. */
static int to_bytes(const int16_t *byte_of, struct sv text, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned c = (unsigned char)text.p[i];
        if (c >= 0x80) { /* two bytes of UTF-8 */
            if (c < 0xc2 || c > 0xc5 || i + 1 == text.len || (text.p[i + 1] & 0xc0) != 0x80)
                return -1;
            c = (c & 0x1f) << 6 | ((unsigned char)text.p[++i] & 0x3f);
        }
        if (c >= CHARACTERS || byte_of[c] < 0 || n == size)
            return -1;
        out[n++] = (char)byte_of[c];
    }
    return (int)n;
}

static size_t text_slot(const char *text, size_t len)
{
    return hash_fnv1a(HASH_FNV1A, text, len) % BPE_SLOTS;
}

int bpe_token_of(const struct bpe *b, const char *text, size_t len)
{
    for (size_t s = text_slot(text, len); b->text_slot[s]; s = (s + 1) % BPE_SLOTS) {
        const struct bpe_token *t = &b->token[b->text_slot[s] - 1];
        if (t->len == len && memcmp(t->text, text, len) == 0)
            return b->text_slot[s] - 1;
    }
    return -1;
}

static int add_token(struct bpe *b, const char *name, const char *text, size_t len, int64_t number,
                     struct err *err)
{
    size_t s = text_slot(text, len);

    if (number >= BPE_VOCAB_MAX)
        return err_set(err, ERR_INVALID, "\"%.60s\": %lld, expected a number below %d", name,
                       (long long)number, BPE_VOCAB_MAX);
    if (b->token[number].text || bpe_token_of(b, text, len) >= 0)
        return err_set(err, ERR_INVALID, "\"%.60s\": %lld: this %s is given twice", name, (long long)number,
                       b->token[number].text ? "number" : "token");
    while (b->text_slot[s])
        s = (s + 1) % BPE_SLOTS;
    b->token[number] = (struct bpe_token){arena_strndup(&b->arena, text, len), len};
    b->text_slot[s] = (int32_t)number + 1;
    if (number >= b->vocab)
        b->vocab = (int)number + 1;
    return 0;
}

static int parse_vocab(struct bpe *b, const cJSON *tree, struct err *err)
{
    int16_t byte_of[CHARACTERS];
    char text[BPE_TOKEN_BYTES];
    const cJSON *entry;

    if (!cJSON_IsObject(tree))
        return err_set(err, ERR_INVALID, "expected an object: {\"token\": number, ...}");
    make_bytes(byte_of);
    cJSON_ArrayForEach(entry, tree)
    {
        const char *name = entry->string;
        int64_t number = json_exact_i64(entry, -1);
        int len = to_bytes(byte_of, sv_from(name), text, sizeof(text));
        if (number < 0)
            return err_set(err, ERR_INVALID, "\"%.60s\": expected a number from 0 on", name);
        if (len < 1)
            return err_set(err, ERR_INVALID,
                           "\"%.60s\": expected 1..%d of the characters that stand for bytes", name,
                           BPE_TOKEN_BYTES);
        if (add_token(b, name, text, (size_t)len, number, err))
            return -1;
    }
    return 0;
}

/* Any text can be written: with all bytes at hand. */
static int find_bytes(struct bpe *b, struct err *err)
{
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        b->byte[i] = bpe_token_of(b, &c, 1);
        if (b->byte[i] < 0)
            return err_set(err, ERR_INVALID, "no token for the byte 0x%02x, expected one for each",
                           (unsigned)i);
    }
    b->end_of_text = bpe_token_of(b, BPE_END_OF_TEXT, strlen(BPE_END_OF_TEXT));
    return 0;
}

int bpe_read_vocab(struct bpe *b, const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(FILE_BYTES_MAX);

    if (fs_read_text(path, &text, err))
        return -1;
    cleanup_json cJSON *tree = json_parse(buf_str(&text), text.len, err);
    return !tree || parse_vocab(b, tree, err) || find_bytes(b, err) ? err_wrap(err, "%.120s", path) : 0;
}

static int parse_merge(struct bpe *b, const int16_t *byte_of, struct sv line, struct err *err)
{
    struct sv part[2];
    char text[2 * BPE_TOKEN_BYTES];
    int len[2];
    int token[2];

    for (int i = 0; i < 2; i++) {
        char *at = text + (i ? len[0] : 0);
        len[i] = sv_next(&line, ' ', &part[i]) ? to_bytes(byte_of, part[i], at, BPE_TOKEN_BYTES) : 0;
        if (len[i] < 1)
            return err_set(err, ERR_INVALID, "expected two tokens with a space between them");
        token[i] = bpe_token_of(b, at, (size_t)len[i]);
        if (token[i] < 0)
            return err_set(err, ERR_INVALID, "\"%.*s\" is no token of the vocabulary",
                           part[i].len < 60 ? (int)part[i].len : 60, part[i].p);
    }
    if (line.p)
        return err_set(err, ERR_INVALID, "expected two tokens with a space between them, there are more");
    int into = bpe_token_of(b, text, (size_t)(len[0] + len[1]));
    if (into < 0 || b->merges == BPE_VOCAB_MAX)
        return err_set(err, ERR_INVALID,
                       into < 0 ? "the merged token is not in the vocabulary" : "too many merges");
    if (!bpe_add_merge(b, (struct bpe_merge){(uint32_t)token[0], (uint32_t)token[1], (uint32_t)into}))
        return err_set(err, ERR_INVALID, "this merge is given twice");
    return 0;
}

int bpe_read_merges(struct bpe *b, const char *path, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(FILE_BYTES_MAX);
    int16_t byte_of[CHARACTERS];
    struct sv line;
    int number = 0;

    if (fs_read_text(path, &text, err))
        return -1;
    make_bytes(byte_of);
    struct sv rest = {buf_str(&text), text.len};
    while (sv_next(&rest, '\n', &line)) {
        number++;
        if (line.len && line.p[line.len - 1] == '\r')
            line.len--;
        if (!line.len || (number == 1 && sv_starts(line, "#version")))
            continue;
        if (parse_merge(b, byte_of, line, err))
            return err_wrap(err, "%.120s:%d", path, number);
    }
    return 0;
}
