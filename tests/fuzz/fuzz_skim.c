/* fuzz_skim.c - skimming an object gives the same names as parsing it, however its bytes arrive. Byte 0: the length of the
 * pieces. */
#include "fuzz_skim.h"
#include "fuzz_pieces.h"

#include "common/json.h"

static int cut(struct sv all, size_t piece, struct buf *out)
{
    cleanup_skim struct skim s;
    struct err err;

    skim_init(&s, false);
    while (all.len)
        skim_feed(&s, pieces_next(&all, piece));
    MUST(skim_append(&s, out, &err) == 0);
    return 0;
}

/* What was kept of the text is in the tree. An escape, or a length beyond the bound, makes it null. */
static void check(const cJSON *whole, const cJSON *skimmed, const char *in, const char *key)
{
    const char *want = json_str(json_child(whole, in), key);
    const char *got = json_str(json_child(skimmed, in), key);

    if (got)
        MUST(want && strcmp(want, got) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = {(const char *)data + 1, size - 1};
    cleanup_skim struct skim s;
    struct err err;

    skim_init(&s, false);
    if (size < 2)
        return 0;
    pieces_check(data, size, cut, false);
    cleanup_json cJSON *tree = json_parse(text.p, text.len, &err);
    if (!cJSON_IsObject(tree) || text.p[0] == '\xef' ||
        memchr(text.p, '\\', text.len)) /* keys with escapes are not followed */
        return 0;
    skim_feed(&s, text);
    MUST(skim_complete(&s));
    static const char *const KEYS[] = {"namespace", "name", "uid", "resourceVersion", "deletionTimestamp"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        check(tree, s.tree, "metadata", KEYS[i]);
    check(tree, s.tree, "status", "reason");
    return 0;
}
