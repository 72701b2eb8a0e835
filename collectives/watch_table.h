/* watch_table.h - the table of connections to the watch, for the watch's server alone: watch_server.c polls and accepts,
 * watch_slot.c reads and writes one connection, watch_table.c acts on messages.
 *
 * Threads: the server's own; `unauthenticated` may be read by any.
 */
#ifndef TK_COLLECTIVES_WATCH_TABLE_H
#define TK_COLLECTIVES_WATCH_TABLE_H

#include "collectives/watch_wire.h"
#include "common/buf.h"

#include <stdatomic.h>
#include <stdbool.h>

struct watch_slot {
    int fd;
    int rank; /* -1: not registered yet */
    int64_t came_ms;
    int64_t answer_ms; /* when to answer its query; 0: no query */
    uint64_t query;
    bool left, deaf, broken;
    size_t said;
    struct buf out;
    _Alignas(8) char in[WATCH_SAID_BYTES];
};

struct watch_table {
    int world, n_registered;
    bool gone;           /* GO was said: the table is complete */
    bool lost_or_failed; /* said once: the first reason is the one */
    uint8_t token[WATCH_TOKEN_BYTES];
    struct member *members;      /* [world] */
    struct watch_slot **by_rank; /* [world] */
    uint64_t *reported;          /* [world] the latest call each was seen to wait in */
    struct watch_slot **slots;   /* [max_slots] */
    int n_slots, max_slots;
    _Atomic uint32_t unauthenticated;
};

/* watch_table.c: a message of a slot; false: it is no rank of ours. */
bool watch_table_hear(struct watch_table *s, struct watch_slot *t, const struct watch_head *head,
                      const void *body);
/* The last rank has come: tell all. */
void watch_table_go(struct watch_table *s);
/* Who is missing in the call that the slot asked about. */
void watch_table_answer(struct watch_table *s, struct watch_slot *t);
/* Slot i's connection has ended. */
void watch_table_drop(struct watch_table *s, int i);
/* There is a registered slot that has not taken all that it was told. */
bool watch_table_owes(const struct watch_table *s);

/* watch_slot.c: takes `fd` over. */
struct watch_slot *watch_slot_new(int fd);
void watch_slot_free(struct watch_slot *t);
void watch_slot_say(struct watch_slot *t, const struct watch_head *head, const void *body);
/* Take in what has come and act on it; give out what is owed. What fails shows in `broken`. */
void watch_slot_read(struct watch_table *s, struct watch_slot *t);
void watch_slot_write(struct watch_slot *t);

#endif
