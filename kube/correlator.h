/* correlator.h - aggregate and rate-limit Events. Pure: the caller gives the time.
 *
 * The rules are those of client-go. A repeated Event increments the count of the existing one. More than 10
 * Events of an object that differ only in their messages, with no pause of over 10 minutes, become one. An
 * object may send 25 Events at once, then one per 5 minutes.
 * Ownership: correlator_release frees all; a zeroed struct is a valid empty one.
 * Units:     milliseconds; now_ms of a monotonic clock, wall_ms since the Unix epoch.
 * Memory:    512 rows in each of three tables (events, groups, objects); beyond that the least recently used
 *            row is evicted.
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
    bool drop;     /* over the object's rate: do not send it */
    bool combined; /* stands for several similar Events; the message should say so */
    bool repeated; /* the Event was sent before: patch it */
    int count;
    int64_t first_wall_ms;
    /* Buffer of CORRELATOR_NAME_BYTES in which the caller keeps the Event's name; valid until the next
     * call. */
    char *name;
};

/* object: identifies the object that the Event is about. reason: type and reason. */
struct correlator_verdict correlator_see(struct correlator *c, const char *object, const char *reason,
                                         const char *message, int64_t now_ms, int64_t wall_ms);
void correlator_release(struct correlator *c);

#endif
