/* conn.h - one client of the fake API server: bytes in, requests out, answers and watch events back. */
#ifndef TK_TESTS_FAKES_CONN_H
#define TK_TESTS_FAKES_CONN_H

#include "common/buf.h"
#include "tests/fakes/world.h"

enum { CONNS_MAX = 128, CONN_IN_MAX_BYTES = 8 << 20, CONN_OUT_MAX_BYTES = 256 << 20 };

struct conn {
    int fd; /* -1: this place is free */
    struct buf in, out;
    bool watching, hanging; /* hanging: it gets no answer any more */
    bool closing;           /* after what is in out */
    struct route route;     /* of the watch */
    size_t next_change;
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
void conn_bookmark(struct conn *c, uint64_t version, bool initial_events_end);

/* Everything in the world that this watch has not been told. */
void conn_pump(struct conn *c, const struct world *w);
void conn_close(struct conn *c);

#endif
