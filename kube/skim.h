/* skim.h - extract an object's names from a JSON text that is too long, or that json.h refuses. Pure.
 *
 * It follows only brackets and strings, and validates nothing else. The result is a tree with only these
 * members: metadata with namespace, name, uid, resourceVersion, deletionTimestamp and, of ownerReferences,
 * the first with controller: true (apiVersion, kind, name, uid); spec.managedBy, spec.runPolicy.managedBy; status.reason.
 * Where a member appears twice the first one counts, as in cJSON. A string with an escape, or longer than its
 * grammar allows, becomes null; as managedBy it becomes "?".
 *
 * Ownership: skim_release frees the tree, skim_take hands it over. It needs a few kilobytes at most.
 * Order:     skim_init, then any number of skim_feed, in pieces of any size.
 */
#ifndef TK_KUBE_SKIM_H
#define TK_KUBE_SKIM_H

#include "common/jsontok.h"

#include <cjson/cJSON.h>

enum {
    SKIM_LEVELS = 6
}; /* levels of nesting that are read: event, object, metadata, ownerReferences, its item */

struct skim {
    struct jsontok tokens;
    cJSON *tree;
    cJSON *nodes[SKIM_LEVELS]; /* the result at each open level; NULL: the level is skipped */
    unsigned char scopes[SKIM_LEVELS];
    const struct skim_member *member; /* the member whose value comes next; NULL: it is skipped */
    bool event;                       /* the object is the member "object" of the text, beside "type" */
    bool ended, broken;
};

/* event: the text is {"type": ..., "object": {...}}; otherwise the object itself. */
void skim_init(struct skim *s, bool event);
void skim_feed(struct skim *s, struct sv bytes);

/* Whether the text was one JSON object, as far as brackets and strings show. */
bool skim_complete(const struct skim *s);

/* The names found so far; NULL: no text yet. Free it with cJSON_Delete. */
cJSON *skim_take(struct skim *s);

/* Whether an object has name, uid and resourceVersion. */
bool skim_has_names(const cJSON *object);

void skim_release(struct skim *s);
#define cleanup_skim __attribute__((cleanup(skim_release)))

#endif
