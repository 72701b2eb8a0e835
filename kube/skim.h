/* skim.h - what an object is called, read out of a JSON text that is not kept: too long, or of a shape that we do not take.
 * Pure.
 *
 * Brackets and strings are followed, nothing else is judged; of the strings those at the known places are kept, the first one
 * where a place comes twice, as cJSON has it. A string with an escape, or longer than its grammar allows, counts as absent;
 * as a manager it is "?".
 *
 * Ownership: a struct skim is two kilobytes and owns nothing. What skim_object returns is the caller's: cJSON_Delete.
 * Order:     skim_init, any number of skim_feed, in pieces of any size.
 */
#ifndef TK_KUBE_SKIM_H
#define TK_KUBE_SKIM_H

#include "common/sv.h"

#include <cjson/cJSON.h>

enum {
    SKIM_LEVELS = 6, /* of nesting that are followed: event, object, metadata, ownerReferences, its item */
    SKIM_LABEL_BYTES = 64, /* each with the NUL: a DNS label, a kind, a reason */
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
    struct skim_owner controller;    /* the first owner that is one */

    /* The place in the text. */
    bool event; /* the object is a member of the text's */
    int level;  /* open brackets */
    unsigned char places[SKIM_LEVELS];
    unsigned seen;
    bool in_string, escaped, at_key, at_value; /* a key, or the value of one, comes next or is being read */
    char key[20];
    size_t key_len;
    char *to; /* the string under way; NULL: nobody's */
    size_t to_size, to_len;
    bool to_spoiled;
    struct skim_owner owner; /* under way */
    bool ended, broken;
};

/* event: {"type": ..., "object": {...}}, else the object itself. */
void skim_init(struct skim *s, bool event);
void skim_feed(struct skim *s, struct sv bytes);

/* The text was one JSON object, as far as brackets and strings tell. */
bool skim_complete(const struct skim *s);

/* The object as far as it is known: metadata with its namespace, name, uid, resourceVersion, deletionTimestamp and the controller
 * alone among its ownerReferences, spec.runPolicy.managedBy and status.reason. NULL without name, uid or resourceVersion. */
cJSON *skim_object(const struct skim *s);

#endif
