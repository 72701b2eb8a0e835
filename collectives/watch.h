/* watch.h - a rank's end of the watch (watch_server.h): who the others are, and whether they still are.
 *
 * Ownership: watch_join opens, watch_close ends. Text that is told outlives nothing: it is copied into *err.
 * Threads:   one thread.
 * Units:     calls are counted from 1, the same on every rank; 0 is the meeting itself.
 * Errors:    ERR_PEER (a rank was lost, or has left before this call), whatever a rank's failure was, ERR_TIMEOUT.
 */
#ifndef TK_COLLECTIVES_WATCH_H
#define TK_COLLECTIVES_WATCH_H

#include "collectives/watch_wire.h"
#include "common/buf.h"
#include "common/resolve.h"

#include <stdbool.h>

struct watch {
    int fd;
    int rank, world;
    struct member *members; /* [world] after watch_join */
    bool met;
    bool orphaned;       /* rank 0 has left, and the watch with it */
    uint64_t seq;        /* the call we are in, or were in last */
    bool in_message;     /* we are in a message after it */
    uint64_t reported;   /* the call we were last seen to wait in */
    uint64_t left_after; /* the fewest calls after which a rank left, and its number */
    int left_rank;
    bool *left;           /* [world] */
    struct err failed;    /* ERR_NONE: nothing was told */
    uint64_t failed_from; /* calls before this one may still succeed: all that they need is under way */
    bool answered;
    char answer[WATCH_TEXT_BYTES];
    struct buf in;
};

enum watch_joined { WATCH_JOINED, WATCH_AGAIN, WATCH_FAILED };

/* Register at the watch that listens there, and wait for all; finding the host's address may take all the time there is.
 * WATCH_AGAIN: this watch is another round's, or has ended; look for the next one. */
enum watch_joined watch_join(struct watch *w, struct resolver *at, int rank, int world,
                             const uint8_t token[WATCH_TOKEN_BYTES], const struct member *me,
                             int64_t deadline_ms, struct err *err);

/* A call of all ranks, or a message, begins. */
void watch_enter(struct watch *w, bool message);

/* Take in what was told, without waiting. -1 when our call cannot succeed any more. `what` names it. */
int watch_look(struct watch *w, const char *what, struct err *err) MUST_CHECK;

/* We wait in our call: told once. */
void watch_report(struct watch *w);

/* Ask who is missing; ERR_TIMEOUT with their names. Takes a fraction of a second. Always -1. */
int watch_timed_out(struct watch *w, const char *what, struct err *err);

/* A connection to a peer broke, and *err says so: wait a moment for the reason, which replaces it. */
void watch_lost(struct watch *w, const char *what, struct err *err);

/* Tell the others why this rank's table has failed. */
void watch_fail(struct watch *w, const struct err *why);

/* `well`: this rank has completed all its calls; otherwise the others are left to think it lost. */
void watch_close(struct watch *w, bool well);

#endif
