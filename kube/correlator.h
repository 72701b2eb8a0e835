/* correlator.h - count repeated Events, and limit how many an object has. recorder.c calls it once before it sends an
 * Event. Pure: the caller gives the time.
 *
 * An Event is repeated when object, reason and message are those of an earlier one. An object may send 25 Events
 * at once, then one per 5 minutes, as in client-go.
 * Units:     milliseconds; now_ms of a monotonic clock, wall_ms since the Unix epoch.
 * Memory:    512 Events and 512 objects; beyond that the least recently used row is evicted. A zeroed struct is
 *            an empty correlator; nothing needs to be freed.
 */
#ifndef TK_KUBE_CORRELATOR_H
#define TK_KUBE_CORRELATOR_H

#include <stddef.h>
#include <stdint.h>

enum { CORRELATOR_ROWS = 512, CORRELATOR_BURST = 25, CORRELATOR_REFILL_MS = 300000 };

struct correlator_event {
    uint64_t id; /* unique in this process */
    int count;   /* 1: the first; else it repeats an Event that was sent under this id */
    int64_t first_wall_ms;
};

struct correlator_row {
    uint64_t key;
    int64_t used_ms;
    double spent;                  /* of an object: Events sent, less those refilled since */
    struct correlator_event event; /* of an Event */
};

struct correlator_table {
    struct correlator_row rows[CORRELATOR_ROWS];
    size_t n;
};

struct correlator {
    struct correlator_table events, objects;
    uint16_t sequence;
};

/* object: identifies the object that the Event is about. reason: type and reason. Returns NULL when the
 * object has sent too many Events; else a row that is valid until the next call. */
const struct correlator_event *correlator_see(struct correlator *c, const char *object, const char *reason,
                                              const char *message, int64_t now_ms, int64_t wall_ms);

#endif
