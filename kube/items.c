/* items.c - split a Kubernetes list into its items by counting brackets, so that a list of any size needs
 * bounded memory. */
#include "kube/items.h"

#include "common/json.h"

#include <string.h>

enum {
    REST_MAX_BYTES = 64 << 10, /* kind, metadata, a continue token */
    LIST = 1,                  /* depth inside the list's object, */
    ITEMS,                     /* inside its items, */
    ITEM,                      /* inside an item */
};

void items_init(struct items *s, size_t item_max_bytes)
{
    *s = (struct items){.rest = BUF_INIT(REST_MAX_BYTES), .tokens.keep_depth = LIST};
    gather_init(&s->item, item_max_bytes, false);
}

static int check(const struct items *s, char c, size_t before, struct err *err)
{
    if (s->ended)
        return err_set(err, ERR_INVALID, "text after the list");
    if (before == 0 && c != '{')
        return err_set(err, ERR_INVALID, "expected a JSON object, got '%c'", c > ' ' && c <= '~' ? c : '?');
    if (s->in_items && before == ITEMS && !strchr("{,]}", c))
        return err_set(err, ERR_INVALID, "items: expected objects");
    return 0;
}

/* Store part of the item, or of the list around the items; bytes between items are dropped. */
static int store_part(struct items *s, struct sv part, struct err *err)
{
    if (s->in_items)
        return s->tokens.depth < ITEM ? 0 : gather_add(&s->item, part, err);
    return buf_append(&s->rest, part.p, part.len, err) < 0 ? err_wrap(err, "the list around its items") : 0;
}

int items_feed(struct items *s, struct sv bytes, gather_on_object *on_item, void *ctx, struct err *err)
{
    struct jsontok *const t = &s->tokens;
    const char *from = bytes.p; /* the first byte that is not stored yet */
    size_t before = t->depth;

    for (char c; (c = jsontok_next(t, &bytes)); before = t->depth) {
        if (check(s, c, before, err) < 0)
            return -1;
        s->ended = t->depth == 0;
        if (s->in_items && before == ITEMS) {
            from = t->begin;
            s->in_items = c == '{' || c == ',';
        } else if (s->in_items && before == ITEM && t->depth == ITEMS) {
            if (gather_end(&s->item, (struct sv){from, (size_t)(bytes.p - from)}, on_item, ctx, err) < 0)
                return -1;
            from = bytes.p;
        } else if (before == LIST && c == '[' && !t->odd && strcmp(t->text, "items") == 0) {
            if (store_part(s, (struct sv){from, (size_t)(bytes.p - from)}, err) < 0)
                return -1;
            s->in_items = true;
        }
    }
    return store_part(s, (struct sv){from, (size_t)(bytes.p - from)}, err);
}

cJSON *items_finish(struct items *s, struct err *err)
{
    if (!s->ended) {
        err_set(err, ERR_INVALID, "the list broke off");
        return NULL;
    }
    return json_parse(s->rest.data, s->rest.len, err);
}

void items_reset(struct items *s)
{
    size_t max = s->item.text.max;

    items_release(s);
    items_init(s, max);
}

void items_release(struct items *s)
{
    gather_release(&s->item);
    buf_release(&s->rest);
}
