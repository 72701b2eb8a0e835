/* waiting.h - what a launcher that waits for other nodes says of it, and when: after 10 s, and then every minute. Pure.
 *
 * Order: waiting_begin, then waiting_hear whenever the view may have changed and waiting_due until the wait is over
 *        (waiting_end).
 * Units: milliseconds of the caller's monotonic clock.
 */
#ifndef TK_LAUNCHER_WAITING_H
#define TK_LAUNCHER_WAITING_H

#include "launcher/nodes.h"

enum { WAITING_FIRST_MS = 10000, WAITING_AGAIN_MS = 60000, WAITING_BYTES = 500 };

struct waiting {
    int64_t since_ms;
    int64_t due_ms;   /* the next line; 0: nobody waits */
    int64_t version;  /* the newest word of the leader ... */
    int64_t heard_ms; /* ... was heard then */
};

void waiting_begin(struct waiting *w, int64_t now_ms);
void waiting_end(struct waiting *w);
void waiting_hear(struct waiting *w, const struct member_view *v, int64_t now_ms);

/* True: a line is due. The next is one WAITING_AGAIN_MS later. */
bool waiting_due(struct waiting *w, int64_t now_ms);

/* How long there is nothing to say; -1: for ever. */
int waiting_left_ms(const struct waiting *w, int64_t now_ms);

/* For whom, where, since when and how long still: one line without its end. */
void waiting_say(const struct waiting *w, const struct nodes *n, int64_t now_ms,
                 char out[static WAITING_BYTES]);

#endif
