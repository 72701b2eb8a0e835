/* member_connection.h - what a member's threads share: the member, and a connection to the store that mends itself.
 * Internal to member*.c.
 *
 * Threads: a connection is one thread's; what is in the member is read and written with its lock held.
 */
#ifndef TK_RENDEZVOUS_MEMBER_CONNECTION_H
#define TK_RENDEZVOUS_MEMBER_CONNECTION_H

#include "rendezvous/member.h"
#include "rendezvous/store.h"

#include <pthread.h>

struct member {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* of what is said, of stop, of threads */
    int refs;               /* the owner, each thread */
    bool stop, speaker_ended;
    bool dirty; /* something new is to be said */
    int fd;     /* an eventfd */
    int64_t grace_ms;
    struct member_config config; /* its texts are ours */
    struct meeting_node say;
    struct member_view view;
    char leader_id[32]; /* "": not known */
    int64_t said_tie;   /* the store has a word of ours that tells this tie */
};

/* More than fit into the heartbeats' silence, unless that is set longer. */
enum { CONNECTION_ASIDE_MAX = 8 };

/* A connection of one thread. */
struct connection {
    struct member *m;
    struct store *store;
    bool tied; /* the store will write down its end, for others to take for the end of this process */
    struct store *aside[CONNECTION_ASIDE_MAX]; /* tied ones that fell silent: see member_mend */
    size_t n_aside;
    struct resolver *at; /* of the store's host; once reached, of its address */
    int64_t ok_ms;       /* the last time that the store answered */
};

/* Begin one, and end it. */
struct connection member_connection(struct member *m);
void member_disconnect(struct connection *l);

/* With the lock held. */
void member_tell_owner(struct member *m);
bool member_ended(const struct member *m);

/* Set MEMBER_LOST, for the first reason given (code: errno or 0); nothing that happens after the end of the run is a loss. */
void member_lose(struct member *m, enum err_kind kind, int code, const char *why);

/* Told to stop, lost, or the run has ended. */
bool member_over(struct member *m);

int64_t member_silence_ms(const struct member *m);

/* A thread of the member runs `run`, holds a reference and gives it back with member_unref. */
int member_start_thread(void *(*run)(void *), struct member *m, struct err *err) MUST_CHECK;
void member_unref(struct member *m);
void *member_speak_thread(void *member);
void *member_listen_thread(void *member);

/* Until something changes or it is that late; with the lock held. */
void member_wait_until(struct member *m, int64_t mono_ms);

/* A pause between two tries. */
void member_rest(void);

/* Connect once; ERR_INVALID when another run, or another leader than before, is there. */
int member_reach(struct connection *l, struct err *err) MUST_CHECK;

/* After a failed call: connect again (0), or know that it is over. A tied connection that fell silent is not ended but put
 * aside, until the store has heard of the next one: it would hear of the end first, and we would be taken for dead. */
int member_mend(struct connection *l, const struct err *why) MUST_CHECK;

/* The store has heard of a newer one. */
void member_end_aside(struct connection *l);

#endif
