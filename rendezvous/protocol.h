/* protocol.h - encode and decode the protocol between the store's client and server. No system calls.
 *
 * A client begins with a hello: 8 bytes of magic and the run id, padded to 256 bytes. The server answers it with
 * a frame, then client and server alternate with a request and its answer, a frame each. A frame is the length of
 * its body (u32) and the body. All integers are little endian.
 *
 * Request: operation byte, key length (u8), key, number (i64), wait_ms (u32), expected (u32 length and bytes),
 *          value (u32 length and bytes).
 * Answer:  status byte, then the payload: a value, or a counter's new value as i64.
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
    STATUS_FULL,    /* the table has no room */
    STATUS_BAD,     /* not a valid request, or add on a value that is no counter */
    STATUS_REFUSED, /* answer to a hello with another run id */
    STATUS_CROWDED, /* answer to a connection beyond the limit of clients */
};

/* Borrowed bytes. */
struct view {
    const char *p;
    size_t len;
};

struct protocol_request {
    enum protocol_op op;
    struct view key;
    struct view expected, value; /* of OP_COMPARE_SET; value also of OP_SET */
    int64_t number;              /* of OP_ADD: delta; of OP_WAIT_COUNT: count */
    uint32_t wait_ms;            /* of OP_GET and OP_WAIT_COUNT */
};

void protocol_hello(const char *run_id, char out[static PROTOCOL_HELLO_BYTES]);

/* Compare two hellos in constant time. */
bool protocol_hello_equal(const char *a, const char *b);

/* Append a whole frame to *out. */
int protocol_put_request(struct buf *out, const struct protocol_request *r, struct err *err) MUST_CHECK;
int protocol_put_answer(struct buf *out, enum protocol_status status, struct view payload,
                        struct err *err) MUST_CHECK;

/* Find a frame at the start of `in`. 1: it is complete: *body points to its body, *used is the length of the
 * frame; 0: not complete yet; -1: its length is 0 or over the limit, drop the connection. */
int protocol_frame(struct view in, struct view *body, size_t *used);

/* Decode a request; *ret points into body. False when it is not valid. */
bool protocol_parse_request(struct view body, struct protocol_request *ret);

/* Decode and encode a counter's value, 8 bytes. False when the bytes are no counter. */
bool protocol_number(struct view value, int64_t *ret);
void protocol_put_number(int64_t number, char out[static 8]);

#endif
