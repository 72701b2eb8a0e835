/* watch_room.h - the ranks and strangers that are connected to the watch. Internal to the watch's server: watch_server.c polls
 * and lets in, watch_seat.c moves bytes, watch_room.c knows what is said to whom.
 *
 * Threads: the watch's own, but for `strangers`.
 */
#ifndef TK_COLLECTIVES_WATCH_ROOM_H
#define TK_COLLECTIVES_WATCH_ROOM_H

#include "collectives/watch_wire.h"
#include "common/buf.h"

#include <stdatomic.h>
#include <stdbool.h>

struct watch_seat {
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

struct watch_room {
    int world, n_registered;
    bool gone;           /* GO was said: the table is complete */
    bool lost_or_failed; /* said once: the first reason is the one */
    uint8_t token[WATCH_TOKEN_BYTES];
    struct member *members;      /* [world] */
    struct watch_seat **by_rank; /* [world] */
    uint64_t *reported;          /* [world] the latest call each was seen to wait in */
    struct watch_seat **seats;   /* [max_seats] */
    int n_seats, max_seats;
    _Atomic uint32_t strangers;
};

/* watch_room.c: a message of a seat; false: it is no rank of ours. */
bool watch_room_hear(struct watch_room *s, struct watch_seat *t, const struct watch_head *head,
                     const void *body);
/* The last rank has come: tell all. */
void watch_room_go(struct watch_room *s);
/* Who is missing in the call that the seat asked about. */
void watch_room_answer(struct watch_room *s, struct watch_seat *t);
/* Seat i's connection has ended. */
void watch_room_drop(struct watch_room *s, int i);
/* There is a registered seat that has not taken all that it was told. */
bool watch_room_owes(const struct watch_room *s);

/* watch_seat.c: takes `fd` over. */
struct watch_seat *watch_seat_new(int fd);
void watch_seat_free(struct watch_seat *t);
void watch_seat_say(struct watch_seat *t, const struct watch_head *head, const void *body);
/* Take in what has come and act on it; give out what is owed. What fails shows in `broken`. */
void watch_seat_read(struct watch_room *s, struct watch_seat *t);
void watch_seat_write(struct watch_seat *t);

#endif
