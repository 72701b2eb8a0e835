/* items.h - a Kubernetes list cut into its items while it arrives, without ever holding it whole.
 * Pure.
 *
 * What stands around the items (kind, metadata) is kept and parsed at the end, as if `items` were
 * empty.
 * Ownership: items_release frees all. An item given out is borrowed for the callback.
 * Errors:    ERR_INVALID: an item without an end (gather.h), the rest over its limit, text that cannot be a JSON
 *            object. Items are cut by brackets and strings only; whether each is JSON is for its parser to say.
 */
#ifndef TK_KUBE_ITEMS_H
#define TK_KUBE_ITEMS_H

#include "kube/gather.h"

struct items {
    struct gather item; /* under way */
    struct buf rest;    /* the list without its items */
    int depth;          /* open brackets */
    bool in_string, escaped;
    bool at_key;   /* at the top level: a key comes next, or is being read */
    bool in_items; /* inside the top-level "items" array */
    bool ended;    /* the top-level object is closed */
    char key[8];   /* the beginning of the last top-level key */
    size_t key_len;
};

void items_init(struct items *s, size_t item_max_bytes);

/* The item, or else what was skimmed of one over the limit: then `item` is empty. -1 (with *err set) ends the feeding. */
typedef int items_on_item(void *ctx, struct sv item, const struct skim *over, struct err *err);

int items_feed(struct items *s, struct sv bytes, items_on_item *on_item, void *ctx,
               struct err *err) MUST_CHECK;

/* The list without its items once all bytes were fed; NULL when it broke off. Free with cJSON_Delete. */
cJSON *items_finish(struct items *s, struct err *err) MUST_CHECK;

void items_reset(struct items *s);
void items_release(struct items *s);

#endif
