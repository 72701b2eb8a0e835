/* watch_table.h - the watch's table of connections. Internal to watch_*.c: watch_server.c polls and accepts,
 * watch_slot.c reads and writes one connection, watch_table.c acts on messages.
 *
 * Threads: the watch's thread only.
 */
#ifndef TK_COLLECTIVES_WATCH_TABLE_H
#define TK_COLLECTIVES_WATCH_TABLE_H

#include "collectives/watch_wire.h"
#include "common/buf.h"

#include <stdbool.h>

struct watch_slot {
    int fd;
    uint8_t addr[16]; /* where it comes from */
    int rank;         /* -1: not registered yet, or `awaits` */
    bool awaits;      /* a rank that takes no part and waits for WATCH_END */
    int64_t came_ms;
    int64_t answer_ms; /* when to answer its query; 0: no query */
    uint64_t query;    /* the call that it asked about */
    /* left: it has sent WATCH_LEAVE, or been sent WATCH_END or WATCH_REFUSED; deaf: a write to it failed, nothing more is sent; broken: to be dropped. */
    bool left, deaf, broken;
    bool challenged; /* with a key: it has to prove the nonce; it is registered when it has */
    struct watch_first first;
    uint8_t nonce[JOBKEY_NONCE_BYTES];
    size_t said;    /* bytes in `in` */
    struct buf out; /* queued for it */
    _Alignas(8) char in[WATCH_SAID_BYTES];
};

struct watch_table {
    int world, n_registered;
    int n_awaiting;      /* ranks that take no part, less those that have gone again */
    int restart_count;   /* rank 0's */
    bool gone;           /* WATCH_GO has been sent: all ranks have registered */
    bool lost_or_failed; /* a loss or failure has been sent to all; later ones are not */
    char run_id[WATCH_RUN_ID_BYTES];
    struct pass pass;            /* with that run id */
    struct watch_go *go;         /* what WATCH_GO sends */
    struct watch_slot **by_rank; /* [world] NULL: not connected */
    uint64_t *reported;          /* [world] the latest call that each has come to, as was reported */
    struct watch_slot **slots;   /* [max_slots] */
    int n_slots, max_slots;
};

/* watch_table.c: act on a message of slot t. False when it is not one that a rank of this run sends: drop the
 * slot. */
bool watch_table_hear(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                      const void *body);
/* Send WATCH_GO to all, once all ranks have registered. */
void watch_table_go(struct watch_table *s);
/* Answer the slot's query: which ranks are missing in the call that it asked about. */
void watch_table_answer(struct watch_table *s, struct watch_slot *t);
/* Send WATCH_END to those that await it. */
void watch_table_end(struct watch_table *s, int exit_code);
/* Whether slot t has not identified itself. */
static inline bool watch_slot_unknown(const struct watch_slot *t)
{
    return t->rank < 0 && !t->awaits;
}
/* Close and free slot i, and report its rank's loss to all unless it has left. */
void watch_table_drop(struct watch_table *s, int i);
/* Whether messages for a registered slot are still queued. */
bool watch_table_owes(const struct watch_table *s);

/* watch_slot.c: the slot owns `fd` from now on. */
struct watch_slot *watch_slot_new(int fd, const uint8_t addr[static 16]);
void watch_slot_free(struct watch_slot *t);
/* Queue a message; a slot whose queue is full becomes `broken`. */
void watch_slot_say(struct watch_slot *t, const struct watch_head *head, const void *body);
/* Read what has arrived and act on it; write what is queued. Neither waits. A failed read sets `broken`. */
void watch_slot_read(struct watch_table *s, struct watch_slot *t);
void watch_slot_write(struct watch_slot *t);

#endif
