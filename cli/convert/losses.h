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

/* As the reason of a member: it is copied, under its own name. */
extern const char LOSSES_SAME[];

/* A member of an object and what is lost with it; NULL: nothing, it is converted elsewhere or does not matter. */
struct losses_field {
    const char *key;
    const char *reason;
};

/* Of what has only these two. */
extern const struct losses_field LOSSES_METADATA_AND_SPEC[];

/* Add each member of the object that is set and that the table (ended by key NULL) does not name, or names with a reason. */
void losses_members(struct losses *l, const struct json_at *at, const struct losses_field *fields);

/* Whether the node is set: it is there, and neither null nor an empty text, list or object. */
bool losses_is_set(const cJSON *node);

#endif
