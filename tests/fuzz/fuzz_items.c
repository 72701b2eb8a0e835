/* fuzz_items.c - the items of a list do not depend on how its bytes arrive. Byte 0: the length of the pieces. */
#include "fuzz.h"

#include "common/json.h"
#include "kube/items.h"

#include <string.h>

enum { ITEM_MAX_BYTES = 256 };

static int on_item(void *ctx, struct sv item, struct err *err)
{
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
    for (size_t at = 0; rc == 0 && at < all.len; at += piece) {
        size_t n = piece < all.len - at ? piece : all.len - at;
        rc = items_feed(&s, (struct sv){all.p + at, n}, on_item, out, &err);
    }
    cleanup_json cJSON *rest = rc == 0 ? items_finish(&s, &err) : NULL;
    items_release(&s);
    MUST(rest || err.kind == ERR_INVALID);
    MUST(!rest || cJSON_IsObject(rest));
    return rest ? json_write(rest, out, &err) : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_buf struct buf one = BUF_INIT(1 << 22);
    cleanup_buf struct buf many = BUF_INIT(1 << 22);

    if (size < 2 || size > 100000)
        return 0;
    struct sv all = {(const char *)data + 1, size - 1};
    int whole = cut(all, 1, &one);
    int pieces = cut(all, 1 + data[0] % 100U, &many);
    MUST(whole == pieces);
    MUST(whole < 0 || (one.len == many.len && memcmp(buf_str(&one), buf_str(&many), one.len) == 0));
    return 0;
}
