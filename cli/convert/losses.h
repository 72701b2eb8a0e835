/* losses.h - the fields that a conversion loses: a line for each, with its path and the reason. Pure.
 *
 * Ownership: the text is the caller's buffer; the subject is borrowed.
 * Errors:    none: a line that does not fit into the buffer is counted, but not in the text.
 */
#ifndef TK_CLI_CONVERT_LOSSES_H
#define TK_CLI_CONVERT_LOSSES_H

#include "common/json.h"

struct losses {
    struct buf *text;    /* "a.yaml:7\tTrainJob a: spec.x: reason\n" */
    const char *place;   /* of the object: "a.yaml:2" */
    bool one_file;       /* all objects stand in that file: the line is the field's */
    const char *subject; /* "TrainJob a" */
    int lost;            /* fields that were not converted */
};

/* The field was not converted, or has another effect. */
void losses_add(struct losses *l, const struct json_at *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A note, which loses nothing. */
void losses_note(struct losses *l, const struct json_at *at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A member of an object that is lost, and why. Key NULL ends a list. */
struct losses_field {
    const char *key, *reason;
};

/* Add each member of the object that is set, unless `known` has its name: names with a space between them, with or without '='. The
 * reason is that in `lost` (may be NULL), or that the member is unknown. */
void losses_members(struct losses *l, const struct json_at *at, const char *known,
                    const struct losses_field *lost);

/* Whether the node is set: it is there, and neither null nor an empty text, list or object. */
bool losses_is_set(const cJSON *node);

#endif
