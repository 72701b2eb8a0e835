/* items.c - cut a Kubernetes list into its items by counting brackets, so that lists of any size pass in bounded memory. */
#include "kube/items.h"

#include "common/json.h"

#include <string.h>

enum { REST_MAX_BYTES = 64 << 10 }; /* kind, metadata, a continue token */

void items_init(struct items *s, size_t item_max_bytes)
{
    *s = (struct items){.rest = BUF_INIT(REST_MAX_BYTES)};
    gather_init(&s->item, item_max_bytes, false);
}

/* Where a byte goes, and which of two wins for a bracket that leads from one to the other. */
enum place { GAP, REST, ITEM };

static enum place place_now(const struct items *s)
{
    if (!s->in_items)
        return REST;
    return s->depth > 2 ? ITEM : GAP;
}

static void string_byte(struct items *s, char c)
{
    bool key = s->depth == 1 && s->at_key;

    if (s->escaped) {
        s->escaped = false;
    } else if (c == '\\') {
        s->escaped = true;
    } else if (c == '"') {
        s->in_string = false;
        return;
    }
    if (!key)
        return;
    if (s->key_len < sizeof(s->key))
        s->key[s->key_len] = c;
    s->key_len++;
}

static bool key_is_items(const struct items *s)
{
    return s->key_len == 5 && memcmp(s->key, "items", 5) == 0;
}

static int open_bracket(struct items *s, char c, struct err *err)
{
    if (s->in_items && s->depth == 2 && c != '{')
        return err_set(err, ERR_INVALID, "items: expected objects, got '['");
    if (s->depth == 1 && c == '[' && !s->at_key && key_is_items(s))
        s->in_items = true;
    if (++s->depth == 1) /* it cannot overflow: items and the rest have an end */
        s->at_key = true;
    return 0;
}

static void close_bracket(struct items *s)
{
    if (s->in_items && s->depth == 2)
        s->in_items = false;
    s->depth--;
    s->ended = s->depth == 0;
}

/* One byte outside strings. */
static int plain_byte(struct items *s, char c, struct err *err)
{
    bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';

    if (s->ended && !space)
        return err_set(err, ERR_INVALID, "text after the list");
    if (s->depth == 0 && !space && c != '{')
        return err_set(err, ERR_INVALID, "expected a JSON object, got '%c'", c > ' ' && c <= '~' ? c : '?');
    if (c == '{' || c == '[')
        return open_bracket(s, c, err);
    if (c == '}' || c == ']') {
        close_bracket(s);
        return 0;
    }
    if (s->in_items && s->depth == 2 && c != ',' && !space)
        return err_set(err, ERR_INVALID, "items: expected objects");
    if (c == '"') {
        s->in_string = true;
        if (s->depth == 1 && s->at_key)
            s->key_len = 0;
    } else if (s->depth == 1 && c == ':') {
        s->at_key = false;
    } else if (s->depth == 1 && c == ',') {
        s->at_key = true;
    }
    return 0;
}

/* An item is complete: give it out. */
static int finish_item(struct items *s, struct sv tail, items_on_item *on_item, void *ctx, struct err *err)
{
    const struct skim *over;
    struct sv item;

    if (gather_end(&s->item, tail, &item, &over, err) < 0)
        return err_wrap(err, "an item of the list");
    int rc = on_item(ctx, item, over, err);
    gather_reset(&s->item);
    return rc;
}

static int keep(struct items *s, enum place place, struct sv run, struct err *err)
{
    if (place == ITEM && gather_add(&s->item, run, err) < 0)
        return err_wrap(err, "an item of the list");
    if (place == REST && buf_append(&s->rest, run.p, run.len, err) < 0)
        return err_wrap(err, "the list around its items");
    return 0;
}

int items_feed(struct items *s, struct sv bytes, items_on_item *on_item, void *ctx, struct err *err)
{
    enum place run_place = place_now(s);
    size_t start = 0;

    for (size_t i = 0; i < bytes.len; i++) {
        enum place before = place_now(s);
        if (s->in_string)
            string_byte(s, bytes.p[i]);
        else if (plain_byte(s, bytes.p[i], err) < 0)
            return -1;
        enum place after = place_now(s);
        enum place here = before > after ? before : after;
        if (here != run_place) {
            if (keep(s, run_place, (struct sv){bytes.p + start, i - start}, err) < 0)
                return -1;
            run_place = here;
            start = i;
        }
        if (before == ITEM && after == GAP) {
            if (finish_item(s, (struct sv){bytes.p + start, i + 1 - start}, on_item, ctx, err) < 0)
                return -1;
            run_place = GAP;
            start = i + 1;
        }
    }
    return keep(s, run_place, (struct sv){bytes.p + start, bytes.len - start}, err);
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
