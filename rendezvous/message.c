/* message.c - encode and decode the messages between a node and the leader. */
#include "rendezvous/message.h"
#include "common/secret.h"

#include <stddef.h>
#include <string.h>

enum { LENGTH_BYTES = 4, HEAD_BYTES = LENGTH_BYTES + 1 };

static const char MAGIC[7] = "tkmeet"; /* before the fields of HELLO */

/* The bytes of a type's fields, a member of the union in struct message. */
static const size_t FIELDS[] = {
    [MESSAGE_HELLO] = sizeof(struct message_hello),
    [MESSAGE_CHALLENGE] = sizeof(struct message_challenge),
    [MESSAGE_ANSWER] = MESSAGE_ANSWER_BYTES,
    [MESSAGE_WELCOME] = sizeof(int64_t),
    [MESSAGE_REFUSED] = sizeof(int64_t),
    [MESSAGE_NODE] = sizeof(struct meeting_node),
    [MESSAGE_HEARD] = sizeof(int64_t),
};

static void put_fields(struct buf *out, const struct message *m)
{
    if (m->type == MESSAGE_STATE)
        meeting_put_state(m->state, out);
    else
        (void)buf_append(out, (const char *)m + offsetof(struct message, hello), FIELDS[m->type], NULL);
}

int message_put(const struct message *m, struct buf *out, struct err *err)
{
    const size_t from = out->len;
    const char head[HEAD_BYTES] = {[LENGTH_BYTES] = (char)m->type};

    (void)buf_append(out, head, sizeof(head), NULL);
    if (m->type == MESSAGE_HELLO)
        (void)buf_append(out, MAGIC, sizeof(MAGIC), NULL);
    put_fields(out, m);
    if (buf_check(out, err) < 0) {
        out->full = false;
        out->len = from;
        if (out->data)
            out->data[from] = '\0';
        return -1;
    }
    const uint32_t body = (uint32_t)(out->len - from - LENGTH_BYTES);
    memcpy(out->data + from, &body, sizeof(body));
    return 0;
}

int message_frame(const char *bytes, size_t len, size_t max, size_t *used)
{
    uint32_t body;

    if (len < LENGTH_BYTES)
        return 0;
    memcpy(&body, bytes, sizeof(body));
    if (!body || body > max - LENGTH_BYTES)
        return -1;
    *used = (size_t)body + LENGTH_BYTES;
    return len >= *used;
}

static bool is_valid(const struct message *m)
{
    if (m->type == MESSAGE_HELLO)
        return m->hello.number && !m->hello.run_id[sizeof(m->hello.run_id) - 1];
    if (m->type == MESSAGE_WELCOME || m->type == MESSAGE_HEARD)
        return m->beat >= 0 && m->beat <= INT64_MAX / 2; /* or ticket */
    return true;
}

/* Skip the magic number. Of another version only that is known; it may have any other fields. */
static bool take_magic(const char **fields, size_t *len, struct message_hello *h)
{
    if (*len < sizeof(MAGIC) + sizeof(h->version) || memcmp(*fields, MAGIC, sizeof(MAGIC)) != 0)
        return false;
    *fields += sizeof(MAGIC);
    *len -= sizeof(MAGIC);
    *h = (struct message_hello){0};
    memcpy(&h->version, *fields, sizeof(h->version));
    return true;
}

int message_get(const char *frame, size_t len, struct message *ret, struct meeting_state *state,
                struct err *err)
{
    const unsigned type = len < HEAD_BYTES ? 0 : (unsigned char)frame[LENGTH_BYTES];
    const char *fields = frame + HEAD_BYTES;
    size_t left = len - HEAD_BYTES;

    ret->type = (enum message_type)type;
    ret->state = state;
    if (type == MESSAGE_NODE)
        return meeting_get_node(fields, left, &ret->node, err);
    if (type == MESSAGE_STATE)
        return meeting_get_state(fields, left, state, err);
    bool good = type < ARRAY_LEN(FIELDS) && FIELDS[type];
    if (good && type == MESSAGE_HELLO) {
        good = take_magic(&fields, &left, &ret->hello);
        if (good && ret->hello.version != MESSAGE_VERSION)
            return 0;
    }
    good = good && left == FIELDS[type];
    if (good)
        memcpy((char *)ret + offsetof(struct message, hello), fields, left);
    return good && is_valid(ret) ? 0
                                 : err_set(err, ERR_INVALID, "rendezvous: a bad message of type %u", type);
}

void message_prove(const struct jobkey *key, enum message_type in, const struct message_hello *h,
                   const struct message_challenge *c, uint8_t proof[static MESSAGE_ANSWER_BYTES])
{
    const struct jobkey_field fields[] = {{h->run_id, strnlen(h->run_id, sizeof(h->run_id))},
                                          {h->id, sizeof(h->id)},
                                          {&h->number, sizeof(h->number)},
                                          {h->nonce, sizeof(h->nonce)},
                                          {c->leader, sizeof(c->leader)},
                                          {c->nonce, sizeof(c->nonce)}};

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
