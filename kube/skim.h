/* skim.h - read an object's names out of a JSON text without a tree: the text is too long, or json.h refuses
 * its shape. Pure.
 *
 * Only brackets and strings are followed; nothing else is validated. Strings at known places are kept; where
 * a member comes twice the first one counts, as in cJSON. A string with an escape, or longer than its grammar
 * allows, counts as absent; as managedBy it is "?".
 *
 * Ownership: a struct skim is two kilobytes and owns no memory. What skim_object returns is the caller's:
 *            cJSON_Delete.
 * Order:     skim_init, then any number of skim_feed, in pieces of any size.
 */
#ifndef TK_KUBE_SKIM_H
#define TK_KUBE_SKIM_H

#include "common/sv.h"

#include <cjson/cJSON.h>

enum {
    SKIM_LEVELS = 6,       /* nesting levels followed: event, object, metadata, ownerReferences, its item */
    SKIM_LABEL_BYTES = 64, /* sizes with the NUL: a DNS label, a kind, a reason */
    SKIM_NAME_BYTES = 254,
    SKIM_UID_BYTES = 65, /* the API server makes 36 characters */
    SKIM_VERSION_BYTES = 32,
    SKIM_API_VERSION_BYTES = SKIM_NAME_BYTES + SKIM_LABEL_BYTES,
};

struct skim_owner {
    char api_version[SKIM_API_VERSION_BYTES];
    char kind[SKIM_LABEL_BYTES];
    char name[SKIM_NAME_BYTES];
    char uid[SKIM_UID_BYTES];
    unsigned seen;
    bool controller;
};

struct skim {
    /* What was found; "" for absent. */
    char type[16]; /* of an event */
    char ns[SKIM_LABEL_BYTES], name[SKIM_NAME_BYTES], uid[SKIM_UID_BYTES], version[SKIM_VERSION_BYTES];
    char reason[SKIM_LABEL_BYTES];   /* status.reason */
    char deletion[SKIM_LABEL_BYTES]; /* metadata.deletionTimestamp */
    char manager[SKIM_NAME_BYTES];   /* spec.runPolicy.managedBy */
    struct skim_owner controller;    /* the first owner reference with controller: true */

    /* Parser state. */
    bool event; /* the object is the member "object" of the text */
    int level;  /* number of open brackets */
    unsigned char places[SKIM_LEVELS];
    unsigned seen;
    bool in_string, escaped, at_key, at_value; /* a key, or its value, comes next or is being read */
    char key[20];
    size_t key_len;
    char *to; /* where the present string is stored; NULL: it is not */
    size_t to_size, to_len;
    bool to_spoiled;
    struct skim_owner owner; /* the owner reference being read */
    bool ended, broken;
};

/* event: the text is {"type": ..., "object": {...}}; otherwise the object itself. */
void skim_init(struct skim *s, bool event);
void skim_feed(struct skim *s, struct sv bytes);

/* Whether the text was one JSON object, as far as brackets and strings tell. */
bool skim_complete(const struct skim *s);

/* The object with what was found: metadata with namespace, name, uid, resourceVersion, deletionTimestamp and,
 * of ownerReferences, the controller only; spec.runPolicy.managedBy; status.reason. NULL without name, uid or
 * resourceVersion. */
cJSON *skim_object(const struct skim *s);

#endif
