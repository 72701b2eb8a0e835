/* fuzz_items.c - the items of a list do not depend on how its bytes arrive. Byte 0: the length of the pieces. */
#include "fuzz_pieces.h"
#include "fuzz_skim.h"

#include "common/json.h"
#include "kube/items.h"

enum { ITEM_MAX_BYTES = 256 };

static int on_item(void *ctx, struct sv item, struct skim *over, struct err *err)
{
    if (over)
        return skim_append(over, ctx, err);
    MUST(item.len > 0 && item.len <= ITEM_MAX_BYTES);
    return buf_append(ctx, item.p, item.len, err) < 0 ? -1 : buf_append(ctx, "\n", 1, err);
}

/* The items and what is around them, in `out`. */
static int cut(struct sv all, size_t piece, struct buf *out)
{
    struct items s;
    struct err err = {0};
    int rc = 0;

    items_init(&s, ITEM_MAX_BYTES);
    while (rc == 0 && all.len)
        rc = items_feed(&s, pieces_next(&all, piece), on_item, out, &err);
    cleanup_json cJSON *rest = rc == 0 ? items_finish(&s, &err) : NULL;
    items_release(&s);
    MUST(rest || err.kind == ERR_INVALID);
    MUST(!rest || cJSON_IsObject(rest));
    return rest ? json_write(rest, out, &err) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pieces_check(data, size, cut, false);
    return 0;
}
