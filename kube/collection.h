/* collection.h - what a server says of a collection: an event of a watch, an object, what stands around a list's items.
 * Pure.
 *
 * Ownership: what is read points into the JSON it was read from.
 * Errors:    ERR_INVALID: not what the API promises; what was to be read is then undefined.
 */
#ifndef TK_KUBE_COLLECTION_H
#define TK_KUBE_COLLECTION_H

#include "kube/request.h"
#include "kube/skim.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* What every object must have for a cache to hold it. An item of a list may lack its kind. */
int collection_check_object(const struct kube_resource *r, const cJSON *object, struct err *err) MUST_CHECK;

enum collection_event_kind {
    COLLECTION_UPSERT,
    COLLECTION_REMOVED,
    COLLECTION_BOOKMARK,
    COLLECTION_ERROR, /* the object is a Status */
};

struct collection_event {
    enum collection_event_kind kind;
    const cJSON *object;
    const char *version; /* NULL with an error, else never */
    bool initial_end;    /* a bookmark that ends the initial events */
};

int collection_read_event(const struct kube_resource *r, const cJSON *event, struct collection_event *ret,
                          struct err *err) MUST_CHECK;

/* The same of an event that could not be read, as far as it was skimmed. *ret_object is the caller's: cJSON_Delete; NULL when
 * not even its names are known. Only objects can be skipped: an error or a bookmark has to be read. */
int collection_skimmed_event(const struct skim *s, struct collection_event *ret, cJSON **ret_object,
                             struct err *err) MUST_CHECK;

struct collection_list {
    const char *version;
    const char *more; /* NULL: this was the last page */
};

/* Without its items, as items_finish leaves it. */
int collection_read_list(const struct kube_resource *r, const cJSON *list, struct collection_list *ret,
                         struct err *err) MUST_CHECK;

#endif
