/* watch.h - a rank's client of the watch (watch_server.h): get the other ranks' addresses, and detect when a
 * rank is lost, leaves or fails. pods*.c and open.c call it.
 *
 * Ownership: watch_join opens and fills *w, watch_close frees what it holds. Messages are copied into *err.
 * Threads:   one thread.
 * Units:     collective calls are numbered from 1 in the order of calls, the same on every rank (seq); 0 is the
 *            registration. deadline_ms is milliseconds of the monotonic clock.
 * Errors:    ERR_PEER (a rank was lost, or has left before this call), the kind of another rank's failure
 *            (ERR_INVALID, ERR_TIMEOUT; ERR_PEER for the rest), ERR_TIMEOUT.
 */
#ifndef TK_COLLECTIVES_WATCH_H
#define TK_COLLECTIVES_WATCH_H

#include "collectives/watch_wire.h"
#include "common/buf.h"
#include "host/resolve.h"

#include <stdbool.h>

struct watch {
    int fd;
    int world;
    struct rank_member *members;      /* [world] after watch_join */
    uint8_t token[WATCH_TOKEN_BYTES]; /* of this run's links, after watch_join */
    const struct pass *pass;          /* during watch_join */
    struct watch_first first;         /* with a key: this rank's first message */
    bool proved;                      /* the watch has sent a valid proof, or there is no key */
    bool met;                         /* WATCH_GO has arrived */
    bool orphaned;                    /* rank 0 has left, and its watch has ended */
    uint64_t seq;                     /* the current collective call, or the last one */
    bool in_message;                  /* a send or recv is in progress, after call seq */
    uint64_t reported;                /* the last call reported to the watch */
    uint64_t left_after;              /* the fewest calls after which a rank left; UINT64_MAX: none left */
    int left_rank;                    /* that rank */
    bool *left;                       /* [world] */
    struct err failed;                /* the first loss or failure reported; ERR_NONE: none */
    uint64_t failed_from; /* calls before this one may still succeed: their data may be in transit */
    bool awaited;         /* WATCH_AWAITED has arrived */
    uint64_t restarts;    /* rank 0's restart count, from WATCH_AWAITED */
    bool ended;           /* WATCH_END has arrived */
    int exit_code;
    bool answered;
    char answer[WATCH_TEXT_BYTES]; /* to WATCH_QUERY */
    struct buf in;
};

/* Register `me` as `rank` at the watch at address `at`, and wait until all ranks have registered. 0:
 * w->members and w->token are filled in. Without a connection, or if the watch belongs to another round or
 * has ended, it tries again until the deadline. 1: the deadline passed, *err has the last reason; -1: *err
 * has the failure. */
int watch_join(struct watch *w, struct resolver *at, int rank, int world, const struct pass *pass,
               const struct rank_member *me, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* For a waiting rank: wait until the run has ended. 0: *exit_code is its exit status. If rank 0 goes away and
 * its restart count differs, it may belong to an earlier round, so this function connects again. 1, -1: as
 * watch_join. */
int watch_await_end(struct resolver *at, const struct pass *pass, int restart_count, int64_t deadline_ms,
                    int *exit_code, struct err *err) MUST_CHECK;

/* Begin a collective call (the next seq) or, with `message`, a send or recv. */
void watch_enter(struct watch *w, bool message);

/* Read what the watch has sent, without waiting. -1 with *err when the current call cannot succeed any more.
 * `what` names the call. */
int watch_look(struct watch *w, const char *what, struct err *err) MUST_CHECK;

/* Report to the watch, once per call, that this rank has reached the current collective call, or has left the
 * last one. */
void watch_report(struct watch *w);

/* The deadline has passed: ask the watch which ranks are missing. ERR_TIMEOUT names them; or the failure that
 * arrives meanwhile. Takes 0.2 s, or 5 s when rank 0 does not answer. Always -1. */
int watch_timed_out(struct watch *w, const char *what, struct err *err);

/* A connection to a peer broke, and *err says so: wait up to 0.3 s for the watch to report why, which replaces
 * *err. */
void watch_lost(struct watch *w, const char *what, struct err *err);

/* Report to the other ranks why this rank's table has failed. */
void watch_fail(struct watch *w, const struct err *why);

/* Leave the watch; waits up to 0.5 s for it to read the last message. `well`: this rank has completed all its
 * calls. If not, no WATCH_LEAVE is sent, and the watch reports the rank as lost. */
void watch_close(struct watch *w, bool well);

#endif
