/* fuzz_skim.c - what is skimmed of an object is what a tree of it says, however its bytes arrive. Byte 0: the length of the
 * pieces. */
#include "fuzz_skim.h"
#include "fuzz_pieces.h"

#include "common/json.h"

static int cut(struct sv all, size_t piece, struct buf *out)
{
    struct skim s;
    struct err err;

    skim_init(&s, false);
    while (all.len)
        skim_feed(&s, pieces_next(&all, piece));
    MUST(skim_append(&s, out, &err) == 0);
    return 0;
}

/* What was kept of the text is in the tree. An escape, or a length beyond the bound, makes it absent. */
static void check(const cJSON *meta, const char *key, const char *skimmed)
{
    const char *want = json_str(meta, key);

    if (skimmed[0])
        MUST(want && strcmp(want, skimmed) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv text = {(const char *)data + 1, size - 1};
    struct skim s;
    struct err err;

    if (size < 2)
        return 0;
    pieces_check(data, size, cut, false);
    cleanup_json cJSON *tree = json_parse(text.p, text.len, &err);
    if (!cJSON_IsObject(tree) || text.p[0] == '\xef' ||
        memchr(text.p, '\\', text.len)) /* keys with escapes are not followed */
        return 0;
    const cJSON *meta = json_find(tree, (const char *[]){"metadata", NULL});
    skim_init(&s, false);
    skim_feed(&s, text);
    MUST(skim_complete(&s));
    check(meta, "namespace", s.ns);
    check(meta, "name", s.name);
    check(meta, "uid", s.uid);
    check(meta, "resourceVersion", s.version);
    check(json_find(tree, (const char *[]){"status", NULL}), "reason", s.reason);
    return 0;
}
