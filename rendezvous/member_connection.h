/* member_connection.h - struct member, which a member's threads share, and a connection to the store that
 * reconnects. Internal to member*.c.
 *
 * Threads: one thread uses a connection. The fields of struct member that change are accessed with its lock held.
 */
#ifndef TK_RENDEZVOUS_MEMBER_CONNECTION_H
#define TK_RENDEZVOUS_MEMBER_CONNECTION_H

#include "rendezvous/member.h"
#include "rendezvous/store.h"

#include <pthread.h>

struct member {
    pthread_mutex_t lock;
    pthread_cond_t changed;      /* of `say`, `stop` and `speaker_ended` */
    int refs;                    /* the owner's and each thread's; the last one frees the member */
    bool stop, speaker_ended;    /* member_end was called; the speaking thread has ended */
    bool dirty;                  /* `say` has changed and is not published yet */
    int fd;                      /* an eventfd: member_fd */
    int64_t grace_ms;            /* of member_end */
    struct member_config config; /* with copies of its strings */
    struct meeting_node say;     /* this node's state, to be published */
    struct member_view view;
    struct leader *leader; /* in this process; NULL: elsewhere */
    char leader_id[32];    /* value of "leader"; "": not known */
    int64_t said_tie;      /* the `tie` in the last state that was published */
};

/* More than one can lose within the heartbeats' silence, unless that is configured longer. */
enum { CONNECTION_ASIDE_MAX = 8 };

/* A thread's connection to the store. */
struct connection {
    struct member *m;
    struct store *store; /* NULL: not connected */
    bool tied;           /* it has a will that reports its end, see `tie` in meeting.h */
    struct store *aside[CONNECTION_ASIDE_MAX]; /* tied connections that fell silent: see member_mend */
    size_t n_aside;
    struct resolver *at; /* of the store's host; after the first connection, of its address */
    int64_t ok_ms;       /* the last time that the store answered */
};

/* Create one, not connected yet; and close it. */
struct connection member_connection(struct member *m);
void member_disconnect(struct connection *l);

/* With the lock held: make member_fd readable. */
void member_tell_owner(struct member *m);
/* With the lock held: whether the run has ended. */
bool member_ended(const struct member *m);

/* Set MEMBER_LOST with this error (code: errno or 0), unless it is set already or the run has ended. */
void member_lose(struct member *m, enum err_kind kind, int code, const char *why);

/* Whether the threads have to end: stopped, lost, or the run has ended. */
bool member_over(struct member *m);

/* How long the store may not answer before it counts as lost: the heartbeat interval times the missed beats. */
int64_t member_silence_ms(const struct member *m);

/* Start a thread of the member; it holds a reference, which it gives back with member_unref. */
int member_start_thread(void *(*run)(void *), struct member *m, struct err *err) MUST_CHECK;
void member_unref(struct member *m);
void *member_speak_thread(void *member);
void *member_listen_thread(void *member);

/* With the lock held: wait for `changed`, at most until mono_ms. */
void member_wait_until(struct member *m, int64_t mono_ms);

/* Pause 0.1 s between two tries. */
void member_rest(void);

/* Try to connect once, for up to 1 s. ERR_INVALID when another run, or another leader than before, is there. */
int member_reach(struct connection *l, struct err *err) MUST_CHECK;

/* After a call failed with *why: reconnect. -1 when the member is over or the store counts as lost (then
 * MEMBER_LOST is set). A tied connection that fell silent is not closed but put aside until the store has the
 * number of the next one: otherwise the store would report its end first, and this node would count as lost. */
int member_mend(struct connection *l, const struct err *why) MUST_CHECK;

/* Close the connections put aside, once the store has the number of a newer one. */
void member_end_aside(struct connection *l);

#endif
