/* message.c - encode and decode the messages between a node and the leader. */
#include "rendezvous/message.h"
#include "common/secret.h"

#include <limits.h>
#include <string.h>

enum { LENGTH_BYTES = 4 };

static const char MAGIC[7] = "tkmeet";

/* The rest of a body that is being decoded. */
struct reader {
    const char *p;
    size_t len;
    bool bad; /* a field reaches beyond the body */
};

static void put_number(uint64_t n, size_t bytes, char *out)
{
    for (size_t i = 0; i < bytes; i++)
        out[i] = (char)(n >> (8 * i) & 0xff);
}

static uint64_t get_number(const char *in, size_t bytes)
{
    uint64_t n = 0;

    for (size_t i = 0; i < bytes; i++)
        n |= (uint64_t)(unsigned char)in[i] << (8 * i);
    return n;
}

static void put(struct buf *out, const void *bytes, size_t len)
{
    (void)buf_append(out, bytes, len, NULL);
}

static void put_integer(struct buf *out, uint64_t n, size_t bytes)
{
    char text[8];

    put_number(n, bytes, text);
    put(out, text, bytes);
}

static void take(struct reader *r, void *out, size_t len)
{
    if (r->bad || r->len < len) {
        r->bad = true;
        memset(out, 0, len);
        return;
    }
    memcpy(out, r->p, len);
    r->p += len;
    r->len -= len;
}

static uint64_t take_integer(struct reader *r, size_t bytes)
{
    char text[8] = {0};

    take(r, text, bytes);
    return get_number(text, bytes);
}

static void put_hello(struct buf *out, const struct message_hello *h)
{
    const size_t len = strlen(h->run_id);

    put(out, MAGIC, sizeof(MAGIC));
    put_integer(out, (uint64_t)h->version, 1);
    put_integer(out, h->auth, 1);
    put(out, h->id, sizeof(h->id));
    put_integer(out, h->number, 4);
    put(out, h->nonce, sizeof(h->nonce));
    put_integer(out, len, 1);
    put(out, h->run_id, len);
}

static void take_hello(struct reader *r, struct message_hello *h)
{
    char magic[sizeof(MAGIC)];

    memset(h, 0, sizeof(*h));
    take(r, magic, sizeof(magic));
    r->bad = r->bad || memcmp(magic, MAGIC, sizeof(MAGIC)) != 0;
    h->version = (int64_t)take_integer(r, 1);
    if (!r->bad && h->version != MESSAGE_VERSION) {
        r->len = 0; /* a newer version may add any fields */
        return;
    }
    h->auth = (uint8_t)take_integer(r, 1);
    take(r, h->id, sizeof(h->id));
    h->number = (uint32_t)take_integer(r, 4);
    take(r, h->nonce, sizeof(h->nonce));
    take(r, h->run_id, take_integer(r, 1));
    r->bad = r->bad || !h->number;
}

static void put_challenge(struct buf *out, const struct message_challenge *c)
{
    put_integer(out, c->auth, 1);
    put(out, c->leader, sizeof(c->leader));
    put(out, c->nonce, sizeof(c->nonce));
    put(out, c->answer, sizeof(c->answer));
}

static void take_challenge(struct reader *r, struct message_challenge *c)
{
    c->auth = (uint8_t)take_integer(r, 1);
    take(r, c->leader, sizeof(c->leader));
    take(r, c->nonce, sizeof(c->nonce));
    take(r, c->answer, sizeof(c->answer));
}

static void put_body(struct buf *out, const struct message *m)
{
    put_integer(out, m->type, 1);
    switch (m->type) {
    case MESSAGE_HELLO:
        put_hello(out, &m->hello);
        break;
    case MESSAGE_CHALLENGE:
        put_challenge(out, &m->challenge);
        break;
    case MESSAGE_ANSWER:
        put(out, m->answer, sizeof(m->answer));
        break;
    case MESSAGE_WELCOME:
        put_integer(out, (uint64_t)m->ticket, 8);
        break;
    case MESSAGE_REFUSED:
        put_integer(out, (uint64_t)m->refusal, 1);
        break;
    case MESSAGE_NODE:
        meeting_put_node(&m->node, out);
        break;
    case MESSAGE_HEARD:
        put_integer(out, (uint64_t)m->beat, 8);
        break;
    case MESSAGE_STATE:
        meeting_put_state(m->state, out);
        break;
    }
}

int message_put(const struct message *m, struct buf *out, struct err *err)
{
    const size_t from = out->len;

    put_integer(out, 0, LENGTH_BYTES);
    put_body(out, m);
    if (buf_check(out, err) < 0) {
        out->full = false;
        out->len = from;
        if (out->data)
            out->data[from] = '\0';
        return -1;
    }
    put_number(out->len - from - LENGTH_BYTES, LENGTH_BYTES, out->data + from);
    return 0;
}

int message_frame(const char *bytes, size_t len, size_t max, size_t *used)
{
    if (len < LENGTH_BYTES)
        return 0;
    const uint64_t body = get_number(bytes, LENGTH_BYTES);
    if (!body || body + LENGTH_BYTES > max)
        return -1;
    *used = (size_t)body + LENGTH_BYTES;
    return len >= *used;
}

/* A counter or a ticket: never negative. */
static int64_t take_count(struct reader *r)
{
    const uint64_t n = take_integer(r, 8);

    r->bad = r->bad || n > INT64_MAX / 2;
    return (int64_t)(n & INT64_MAX);
}

int message_get(const char *frame, size_t len, struct message *ret, struct meeting_state *state,
                struct err *err)
{
    struct reader r = {frame, len, false};

    (void)take_integer(&r, LENGTH_BYTES);
    ret->type = (enum message_type)take_integer(&r, 1);
    switch (ret->type) {
    case MESSAGE_HELLO:
        take_hello(&r, &ret->hello);
        break;
    case MESSAGE_CHALLENGE:
        take_challenge(&r, &ret->challenge);
        break;
    case MESSAGE_ANSWER:
        take(&r, ret->answer, sizeof(ret->answer));
        break;
    case MESSAGE_WELCOME:
        ret->ticket = take_count(&r);
        break;
    case MESSAGE_REFUSED:
        ret->refusal = (int64_t)take_integer(&r, 1);
        break;
    case MESSAGE_HEARD:
        ret->beat = take_count(&r);
        break;
    case MESSAGE_NODE:
        return meeting_get_node(r.p, r.len, &ret->node, err);
    case MESSAGE_STATE:
        ret->state = state;
        return meeting_get_state(r.p, r.len, state, err);
    default:
        r.bad = true;
    }
    return r.bad || r.len ? err_set(err, ERR_INVALID, "rendezvous: a bad message of type %d", (int)ret->type)
                          : 0;
}

void message_prove(const struct jobkey *key, enum message_type in, const struct message_hello *h,
                   const struct message_challenge *c, uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    char number[4];
    const struct jobkey_field fields[] = {{h->run_id, strnlen(h->run_id, sizeof(h->run_id))},
                                          {h->id, sizeof(h->id)},
                                          {number, sizeof(number)},
                                          {h->nonce, sizeof(h->nonce)},
                                          {c->leader, sizeof(c->leader)},
                                          {c->nonce, sizeof(c->nonce)}};

    put_number(h->number, sizeof(number), number);
    jobkey_prove(key,
                 in == MESSAGE_CHALLENGE ? "torchkeeper meeting 1: leader" : "torchkeeper meeting 1: node",
                 fields, ARRAY_LEN(fields), proof);
}

bool message_proved(const struct jobkey *key, enum message_type in, const struct message_hello *h,
                    const struct message_challenge *c, const uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    uint8_t want[MESSAGE_ANSWER_BYTES];

    message_prove(key, in, h, c, want);
    return !key->has || secret_equal(want, proof, sizeof(want));
}
