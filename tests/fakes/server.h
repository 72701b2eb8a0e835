/* server.h - the fake API server from the inside: apiserver.c serves, control.c is what tests call. */
#ifndef TK_TESTS_FAKES_SERVER_H
#define TK_TESTS_FAKES_SERVER_H

#include "tests/fakes/apiserver.h"
#include "tests/fakes/conn.h"

#include <pthread.h>

enum { PODLOGS_MAX = 256 };

struct podlog {
    char ns[256], name[256];
    struct buf text; /* each line with its time */
    bool ended;
};

/* Everything but the thread, the url and the descriptors is read and written under the lock. */
struct fake_apiserver {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t idle;      /* signalled when answered reaches asked */
    uint64_t asked, answered; /* fake_settle */
    int listener, wake;       /* -1: no thread serves it, but direct.c in the caller's */
    bool stop;
    char url[64];
    struct world world;
    const struct kind *frozen; /* NULL: nothing */
    struct world past;         /* of that kind */
    struct conn conns[CONNS_MAX];
    struct fake_fault_plan plan;
    bool planned;
    int plan_seen, plan_done, plan_last;
    int connections;
    int clients; /* of direct.h, ever */
    struct fake_request *log;
    int n_log, cap_log;
    struct podlog podlogs[PODLOGS_MAX];
    int n_podlogs;
};

/* Carry one request out and leave the answer in the connection. */
void server_handle(struct fake_apiserver *s, struct conn *c, const struct http_message *m);

/* The world as a read shows it: the past for a kind that is frozen. */
struct world *server_shown(struct fake_apiserver *s, const char *method, const struct route *r);

/* Whether this watch's next event is held back. */
bool server_holds(const struct fake_apiserver *s, const struct conn *c);

/* Begin to answer a request for a pod's log; returns the status. Of an error *ret is the answer. */
int podlog_answer(struct fake_apiserver *s, struct conn *c, const struct route *r, const char *target,
                  const struct fake_fault_plan *f, struct outcome *ret);
void podlog_pump(struct conn *c); /* send what is new */
void podlog_release(struct fake_apiserver *s);

/* Note a request; its place in the log. */
int server_remember(struct fake_apiserver *s, const struct http_message *m, const char *verb);

/* Unlock, and let the thread look at what changed. */
void server_unlock(struct fake_apiserver *s);

/* Whether such a request is to change something, leases left aside. */
bool server_writes(const char *verb, const char *path);

/* Whether a request is of this verb (NULL: any) and has this in its path (NULL: any). */
bool server_fits(const char *verb, const char *path, const char *want_verb, const char *want_part);

#endif
