/* items.h - cut a Kubernetes list into its items while it arrives, without ever holding all of it. Pure.
 *
 * The members around the items (kind, metadata) are kept and parsed at the end, as if `items` were empty.
 * Ownership: items_release frees all. An item is borrowed for the callback.
 * Errors:    ERR_INVALID: an item that does not end (gather.h), other members over 64 KiB, or text that
 *            cannot be a JSON object. Items are cut by brackets and strings only; whether each is JSON is for
 *            its parser to check.
 */
#ifndef TK_KUBE_ITEMS_H
#define TK_KUBE_ITEMS_H

#include "common/jsontok.h"
#include "kube/gather.h"

struct items {
    struct jsontok tokens;
    struct gather item; /* the item being received */
    struct buf rest;    /* the list without its items */
    bool in_items;      /* inside the top-level "items" array */
    bool ended;         /* the top-level object is closed */
};

void items_init(struct items *s, size_t item_max_bytes);
int items_feed(struct items *s, struct sv bytes, gather_on_object *on_item, void *ctx,
               struct err *err) MUST_CHECK;

/* Once all bytes were fed: the list without its items, to be freed with cJSON_Delete. NULL: it is incomplete
 * or not JSON. */
cJSON *items_finish(struct items *s, struct err *err) MUST_CHECK;

void items_reset(struct items *s);
void items_release(struct items *s);

#endif
