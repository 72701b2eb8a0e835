/* conn.h - one client of the fake API server: bytes in, requests out, answers and watch events back. */
#ifndef TK_TESTS_FAKES_CONN_H
#define TK_TESTS_FAKES_CONN_H

#include "common/buf.h"
#include "tests/fakes/world.h"

/* `bare`: no socket and no HTTP around it. What would be sent is kept apart for a client in the same thread (direct.h):
 * out holds the body alone, status is 0 until there is an answer, cut: the end of the body is missing. */
enum { CONN_BARE_FD = 1 << 30 };

enum { CONNS_MAX = 128, CONN_IN_MAX_BYTES = 8 << 20, CONN_OUT_MAX_BYTES = 256 << 20 };

struct podlog;

struct conn {
    int fd; /* -1: this place is free */
    struct buf in, out;
    bool watching, hanging; /* hanging: it gets no answer any more */
    bool closing;           /* after what is in out */
    struct route route;     /* of the watch */
    size_t next_change;
    struct podlog *podlog; /* that is being sent; NULL: none */
    size_t told;           /* bytes of it */
    bool podlog_follow, podlog_times;
    bool bare, cut;
    bool drips; /* what is in out comes slowly; bare ones only */
    bool late;  /* it comes LATE_MS after it was made; bare ones only */
    int client; /* of bare ones */
    int status, retry_after_s;
    const char *location; /* of the next answer; NULL: no such header */
};

struct http_message {
    char method[8];
    char target[4096];
    char authorization[128];
    const char *body; /* inside conn->in, NUL after it only if it is last */
    size_t body_len;
    size_t total; /* bytes to drop from conn->in afterwards */
};

/* 1: a whole request is there; 0: not yet; -1: not HTTP. */
int conn_parse(const struct conn *c, struct http_message *ret);

/* Queue an answer; `cut` >= 0 sends only so many bytes of the body and then closes. */
void conn_answer(struct conn *c, int status, int retry_after_s, const char *body, size_t len, long cut);

void conn_start_watch(struct conn *c, const struct route *r);
void conn_chunk(struct conn *c, const char *bytes, size_t len);
void conn_end_watch(struct conn *c);

/* One watch event as a line. */
void conn_event(struct conn *c, const char *type, const cJSON *object);
void conn_bookmark(struct conn *c, uint64_t version);

/* Whether there is a change that this watch has not been sent: the one at next_change. */
bool conn_due(struct conn *c, const struct world *w);

/* "ADDED", "MODIFIED" or "DELETED", of one that is due. */
const char *conn_due_type(const struct conn *c, const struct world *w);

/* Send it, and go to the next. */
void conn_tell(struct conn *c, const struct world *w);

/* All of them. */
void conn_pump(struct conn *c, const struct world *w);
void conn_close(struct conn *c);

#endif
