/* protocol.h - what goes over the wire between store and server. Pure.
 *
 * A client opens with a hello (magic, run id in a field of fixed size). Then both sides speak in frames: u32 length of
 * the body, little endian, then the body. A request's body is an operation byte, the key (u8 length), and what the
 * operation needs; an answer's is a status byte and what it found. A request whose operation byte has its highest bit set
 * is a will: set or add, done when the client's connection has ended.
 */
#ifndef TK_RENDEZVOUS_PROTOCOL_H
#define TK_RENDEZVOUS_PROTOCOL_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "rendezvous/store.h"

#include <stdbool.h>

enum {
    PROTOCOL_HELLO_BYTES = 8 + 256,
    PROTOCOL_BODY_BYTES = 2 * (STORE_VALUE_BYTES + 4) + STORE_KEY_BYTES + 64,
};

enum protocol_op { OP_SET = 1, OP_GET, OP_ADD, OP_COMPARE_SET, OP_WAIT_COUNT };

enum protocol_status {
    STATUS_OK = 0,
    STATUS_TIMEOUT,
    STATUS_CONFLICT,
    STATUS_FULL,    /* no room for key or value */
    STATUS_BAD,     /* not a request, or not a counter */
    STATUS_REFUSED, /* hello: another run id */
    STATUS_CROWDED, /* hello: too many clients */
};

/* Bytes someone else owns. */
struct view {
    const char *p;
    size_t len;
};

struct protocol_request {
    enum protocol_op op;
    bool will; /* not now, but when this connection has ended: OP_SET and OP_ADD */
    struct view key;
    struct view expected, value; /* set, compare_set */
    int64_t number;              /* add: delta; wait_count: count */
    uint32_t wait_ms;            /* get, wait_count */
};

void protocol_hello(const char *run_id, char out[static PROTOCOL_HELLO_BYTES]);

/* Equal in a time that does not tell where they differ. */
bool protocol_hello_equal(const char *a, const char *b);

/* Append a whole frame. */
int protocol_put_request(struct buf *out, const struct protocol_request *r, struct err *err) MUST_CHECK;
int protocol_put_answer(struct buf *out, enum protocol_status status, struct view payload,
                        struct err *err) MUST_CHECK;

/* Is a whole frame at the start of `in`? 1: *body is it and *used its length on the wire; 0: not yet; -1: its length is
 * over the limit, nothing sensible will come. */
int protocol_frame(struct view in, struct view *body, size_t *used);

/* False when the body is no request; *ret points into it. */
bool protocol_parse_request(struct view body, struct protocol_request *ret);

/* A counter's value. False when the bytes are none. */
bool protocol_number(struct view value, int64_t *ret);
void protocol_put_number(int64_t number, char out[static 8]);

#endif
