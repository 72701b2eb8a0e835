/* waiting.h - the messages that a launcher prints while it waits for other nodes: one after 10 s, then one every
 * minute. If the host's name does not resolve, the first message comes after 5 s. agent_nodes.c calls it. No
 * system calls.
 *
 * Order: waiting_begin; then waiting_due after each change of the view and at due_ms; due_ms = 0 when the wait is over.
 * Units: milliseconds of the caller's monotonic clock.
 */
#ifndef TK_LAUNCHER_WAITING_H
#define TK_LAUNCHER_WAITING_H

#include "launcher/options.h"

enum { WAITING_NAME_MS = 5000, WAITING_FIRST_MS = 10000, WAITING_AGAIN_MS = 60000, WAITING_BYTES = 500 };

struct waiting {
    int64_t since_ms;
    int64_t due_ms;   /* time of the next message; 0: not waiting */
    int64_t version;  /* of the newest state of the run */
    int64_t heard_ms; /* when it was received */
};

void waiting_begin(struct waiting *w, int64_t now_ms);

/* After each change of the view: whether a message is due; if so, the next one is due WAITING_AGAIN_MS later. */
bool waiting_due(struct waiting *w, const struct meet_view *v, int64_t now_ms);

/* Format the message, one line without newline: what the launcher waits for, where, since when, and when it gives
 * up. */
void waiting_format(const struct waiting *w, const struct options *o, const struct meet_view *v,
                    int64_t now_ms, char out[static WAITING_BYTES]);

#endif
