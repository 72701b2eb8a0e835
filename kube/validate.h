/* validate.h - check and read what the server sends for a collection: watch events, objects, list metadata.
 * Pure.
 *
 * Ownership: results point into the JSON that they were read from.
 * Errors:    ERR_INVALID: the JSON does not have the shape that the API promises; the output is then
 *            undefined.
 */
#ifndef TK_KUBE_VALIDATE_H
#define TK_KUBE_VALIDATE_H

#include "kube/request.h"
#include "kube/skim.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* Check the kind, which an item of a list may lack, and that name, uid and resourceVersion are set, as a
 * cache needs them. */
int validate_object(const struct kube_resource *r, const cJSON *object, struct err *err) MUST_CHECK;

enum watch_event_kind {
    WATCH_UPSERT,
    WATCH_REMOVED,
    WATCH_BOOKMARK,
    WATCH_ERROR, /* the object is a Status */
};

struct watch_event {
    enum watch_event_kind kind;
    const cJSON *object;
    const char *version; /* NULL only for WATCH_ERROR */
};

int validate_event(const struct kube_resource *r, const cJSON *event, struct watch_event *ret,
                   struct err *err) MUST_CHECK;

/* The same for an event that could not be parsed, from its skimmed names; NULL: the event is incomplete. Also
 * -1 for an error, for a bookmark and for an object without readable names: such an event does not show which
 * entry of a cache it makes out of date. */
int validate_skimmed_event(const cJSON *event, struct watch_event *ret, struct err *err) MUST_CHECK;

struct list_meta {
    const char *version;
    const char *more; /* continue token; NULL: this was the last page */
};

/* `list` comes without its items, from items_finish. */
int validate_list(const struct kube_resource *r, const cJSON *list, struct list_meta *ret,
                  struct err *err) MUST_CHECK;

#endif
