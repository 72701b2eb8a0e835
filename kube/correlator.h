/* correlator.h - which Events become one, and which are too many. Pure: time is given.
 *
 * The rules are client-go's, so that people see what they are used to: the same event again counts up;
 * more than 10 that differ only in their message within 10 minutes become one; an object may send 25 at
 * once, then one per 5 minutes.
 * Ownership: correlator_release frees all; a zeroed struct is a valid empty one.
 * Units:     milliseconds on one clock that does not go back. Remembers 512 of each kind; beyond that
 *            the longest unused is forgotten.
 */
#ifndef TK_KUBE_CORRELATOR_H
#define TK_KUBE_CORRELATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CORRELATOR_SIMILAR = 10,
    CORRELATOR_WINDOW_MS = 600000,
    CORRELATOR_BURST = 25,
    CORRELATOR_REFILL_MS = 300000,
    CORRELATOR_NAME_BYTES = 254,
};

struct correlator_table {
    void *rows;
    size_t n, cap;
};

struct correlator {
    struct correlator_table events, groups, objects;
};

struct correlator_verdict {
    bool drop;     /* too many of this object */
    bool combined; /* stands for similar ones: say so in the message */
    bool repeated; /* the Event exists already: patch it */
    int count;
    int64_t first_wall_ms;
    char *name; /* CORRELATOR_NAME_BYTES to keep the Event's name in; valid until the next call */
};

/* object: who it is about; reason: type and reason. */
struct correlator_verdict correlator_see(struct correlator *c, const char *object, const char *reason,
                                         const char *message, int64_t now_ms, int64_t wall_ms);
void correlator_release(struct correlator *c);

#endif
