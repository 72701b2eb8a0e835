/* store_wire.h - a store client's connection: send bytes and receive whole answers, before a deadline. Internal
 * to store*.c. A timeout, a lost connection and an invalid answer set `broken`. */
#ifndef TK_RENDEZVOUS_STORE_WIRE_H
#define TK_RENDEZVOUS_STORE_WIRE_H

#include "rendezvous/protocol.h"

struct store {
    int fd;
    char where[120]; /* "host:port", for errors */
    struct buf in, out;
    bool broken;
};

/* Milliseconds left until deadline_ms, 0..INT_MAX, for poll. */
int store_left_ms(int64_t deadline_ms);

/* Send all of s->out. */
int store_send_out(struct store *s, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* Receive one whole answer; *body points into s->in until the next request. */
int store_read_answer(struct store *s, struct view *body, int64_t deadline_ms, struct err *err) MUST_CHECK;

#endif
