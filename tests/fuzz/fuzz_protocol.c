/* fuzz_protocol.c - requests do not depend on how their bytes arrive, mean the same when written again, and leave the
 * table within its bounds. Byte 0: the length of the pieces. */
#include "fuzz_pieces.h"

#include "rendezvous/requests.h"

enum { KEYS_MAX = 8, BYTES_MAX = 256 };

/* Written by us, it is the same request. */
static void check_again(const struct protocol_request *r, struct buf *out, struct err *err)
{
    const size_t start = out->len;
    struct protocol_request again;
    struct view body;
    size_t used;

    MUST(protocol_put_request(out, r, err) == 0);
    MUST(protocol_frame((struct view){out->data + start, out->len - start}, &body, &used) == 1);
    MUST(used == out->len - start && protocol_parse_request(body, &again));
    MUST(again.op == r->op && again.number == r->number && again.wait_ms == r->wait_ms);
    MUST(again.key.len == r->key.len && memcmp(again.key.p, r->key.p, r->key.len) == 0);
    MUST(again.value.len == r->value.len && again.expected.len == r->expected.len);
}

static int serve(struct view body, struct table *t, struct buf *out)
{
    struct protocol_request r;
    struct view payload;
    struct err err;
    char sum[8];

    if (!protocol_parse_request(body, &r))
        return buf_append(out, "?", 1, &err);
    check_again(&r, out, &err);
    enum protocol_status status = request_apply(t, &r, sum, &payload);
    MUST(t->keys <= KEYS_MAX && t->bytes <= BYTES_MAX);
    return protocol_put_answer(out, status, payload, &err);
}

static int talk(struct sv all, size_t piece, struct buf *out)
{
    struct table t = {.max_keys = KEYS_MAX, .max_bytes = BYTES_MAX};
    cleanup_buf struct buf in = BUF_INIT(1 << 20);
    struct view body;
    struct err err;
    size_t used;
    int rc = 0;

    while (rc == 0 && all.len) {
        struct sv next = pieces_next(&all, piece);
        MUST(buf_append(&in, next.p, next.len, &err) == 0);
        int whole;
        while ((whole = protocol_frame((struct view){in.data, in.len}, &body, &used)) == 1 && rc == 0) {
            MUST(used <= in.len && body.len == used - 4);
            rc = serve(body, &t, out);
            buf_consume(&in, used);
        }
        rc = whole < 0 ? -1 : rc;
    }
    MUST(t.keys <= KEYS_MAX && t.bytes <= BYTES_MAX);
    table_release(&t);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pieces_check(data, size, talk, true);
    return 0;
}
