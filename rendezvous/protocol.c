/* protocol.c - encode and decode the store's requests; no length from the wire is trusted. */
#include "rendezvous/protocol.h"
#include "common/endian.h"
#include "common/secret.h"

#include <string.h>

static const char MAGIC[8] = {'T', 'K', 's', 't', 'o', 'r', 'e', '1'};

void protocol_hello(const char *run_id, char out[static PROTOCOL_HELLO_BYTES])
{
    memset(out, 0, PROTOCOL_HELLO_BYTES);
    memcpy(out, MAGIC, sizeof(MAGIC));
    strncpy(out + sizeof(MAGIC), run_id, STORE_RUN_ID_BYTES);
}

bool protocol_hello_equal(const char *a, const char *b)
{
    return secret_equal(a, b, PROTOCOL_HELLO_BYTES);
}

void protocol_put_number(int64_t number, char out[static 8])
{
    le_put(out, (uint64_t)number, 8);
}

bool protocol_number(struct view value, int64_t *ret)
{
    if (value.len != 8)
        return false;
    *ret = (int64_t)le_get(value.p, 8);
    return true;
}

/* Fill in the length of the frame that begins at `start`, after its body. */
static int close_frame(struct buf *out, size_t start)
{
    le_put(out->data + start, (uint32_t)(out->len - start - 4), 4);
    return 0;
}

static int put_bytes(struct buf *out, struct view v, struct err *err)
{
    char len[4];

    le_put(len, (uint32_t)v.len, 4);
    return buf_append(out, len, 4, err) < 0 ? -1 : buf_append(out, v.p, v.len, err);
}

int protocol_put_request(struct buf *out, const struct protocol_request *r, struct err *err)
{
    const char head[6] = {0, 0, 0, 0, (char)r->op, (char)r->key.len};
    const size_t start = out->len;
    char number[8], wait[4];

    protocol_put_number(r->number, number);
    le_put(wait, r->wait_ms, 4);
    if (buf_append(out, head, sizeof(head), err) < 0 || buf_append(out, r->key.p, r->key.len, err) < 0 ||
        buf_append(out, number, sizeof(number), err) < 0 || buf_append(out, wait, sizeof(wait), err) < 0 ||
        put_bytes(out, r->expected, err) < 0 || put_bytes(out, r->value, err) < 0)
        return -1;
    return close_frame(out, start);
}

int protocol_put_answer(struct buf *out, enum protocol_status status, struct view payload, struct err *err)
{
    const char head[5] = {0, 0, 0, 0, (char)status};
    const size_t start = out->len;

    if (buf_append(out, head, sizeof(head), err) < 0 || buf_append(out, payload.p, payload.len, err) < 0)
        return -1;
    return close_frame(out, start);
}

int protocol_frame(struct view in, struct view *body, size_t *used)
{
    if (in.len < 4)
        return 0;
    size_t len = le_get32(in.p);
    if (len == 0 || len > PROTOCOL_BODY_BYTES)
        return -1;
    if (in.len - 4 < len)
        return 0;
    *body = (struct view){in.p + 4, len};
    *used = 4 + len;
    return 1;
}

static bool take(struct view *from, size_t len, struct view *ret)
{
    if (from->len < len)
        return false;
    *ret = (struct view){from->p, len};
    from->p += len;
    from->len -= len;
    return true;
}

static bool take_value(struct view *from, struct view *ret)
{
    struct view len;

    return take(from, 4, &len) && le_get32(len.p) <= STORE_VALUE_BYTES && take(from, le_get32(len.p), ret);
}

bool protocol_parse_request(struct view body, struct protocol_request *ret)
{
    struct view head, number, wait;
    struct protocol_request r;

    if (!take(&body, 2, &head))
        return false;
    const int op = (unsigned char)head.p[0];
    if (op < OP_SET || op > OP_WAIT_COUNT || !take(&body, (unsigned char)head.p[1], &r.key) ||
        r.key.len == 0 || !take(&body, 8, &number) || !take(&body, 4, &wait) ||
        !take_value(&body, &r.expected) || !take_value(&body, &r.value) || body.len)
        return false;
    r.op = (enum protocol_op)op;
    r.wait_ms = le_get32(wait.p);
    if (!protocol_number(number, &r.number))
        return false;
    *ret = r;
    return true;
}
