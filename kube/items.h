/* items.h - split a Kubernetes list into its items while it arrives, without holding all of it. Pure.
 *
 * The members around the items (kind, metadata) are kept and parsed at the end, as if `items` were empty.
 * Ownership: items_release frees all. The callback borrows the item.
 * Errors:    ERR_INVALID: an item that does not end (gather.h), other members over 64 KiB, or text that
 *            cannot be a JSON object. The splitter follows only brackets and strings; the parser of an item
 *            checks that it is JSON.
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

/* After the last byte: the list without its items. Free it with cJSON_Delete. NULL: the list is incomplete or
 * not JSON. */
cJSON *items_finish(struct items *s, struct err *err) MUST_CHECK;

void items_reset(struct items *s);
void items_release(struct items *s);

#endif
