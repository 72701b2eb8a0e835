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
    uint8_t addr[16]; /* the peer's */
    int rank;         /* -1: not registered yet, or `awaits` */
    bool awaits;      /* a waiting rank, which gets WATCH_END */
    int64_t came_ms;
    int64_t answer_ms; /* when to answer its query; 0: no query */
    uint64_t query;    /* the call that its query is about */
    /* left: it has sent WATCH_LEAVE, or the watch has sent it WATCH_END or WATCH_REFUSED. write_failed: a
     * write to it failed, so the watch sends nothing more. broken: the watch has to drop it. */
    bool left, write_failed, broken;
    bool challenged; /* with a key: WATCH_CHALLENGE was sent; it is registered after its WATCH_PROOF */
    struct watch_first first;
    uint8_t nonce[JOBKEY_NONCE_BYTES];
    size_t said;    /* bytes in `in` */
    struct buf out; /* queued for it */
    _Alignas(8) char in[WATCH_SAID_BYTES];
};

struct watch_table {
    int world, n_registered;
    int n_awaiting;      /* connected waiting ranks */
    int restart_count;   /* rank 0's */
    bool gone;           /* WATCH_GO has been sent: all ranks have registered */
    bool lost_or_failed; /* a loss or failure has been sent to all ranks; later ones are not sent */
    struct pass pass;
    struct watch_go *go;         /* the body of WATCH_GO */
    struct watch_slot **by_rank; /* [world] NULL: not connected */
    uint64_t *reported;          /* [world] the latest call that each rank has reported */
    struct watch_slot **slots;   /* [max_slots] */
    int n_slots, max_slots;
};

/* watch_table.c: act on a message of slot t. False: no rank of this run sends such a message; drop the
 * slot. */
bool watch_table_hear(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                      const void *body);
/* Send WATCH_GO to all, once all ranks have registered. */
void watch_table_go(struct watch_table *s);
/* Answer the slot's query: which ranks have not reached that call. */
void watch_table_answer(struct watch_table *s, struct watch_slot *t);
/* Send WATCH_END to the waiting ranks. */
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
