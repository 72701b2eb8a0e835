/* store_wire.h - a client's connection: bytes out and whole answers in, before a deadline. Internal to store*.c. */
#ifndef TK_RENDEZVOUS_STORE_WIRE_H
#define TK_RENDEZVOUS_STORE_WIRE_H

#include "rendezvous/protocol.h"

struct store {
    int fd;
    char where[120]; /* "host:port", for errors */
    struct buf in, out;
    bool broken;
};

/* Milliseconds until then, as poll wants them. */
int store_left_ms(int64_t deadline_ms);

/* Send s->out. */
int store_send_out(struct store *s, int64_t deadline_ms, struct err *err) MUST_CHECK;

/* Read until an answer is whole; its bytes stay in s->in until the next request. */
int store_read_answer(struct store *s, struct view *body, int64_t deadline_ms, struct err *err) MUST_CHECK;

#endif
