/* meeting.c - encode and decode the rendezvous records: their bytes, checked field by field when they are read. */
#include "rendezvous/meeting.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* A number (size 0) or a text of at most size - 1 bytes. */
struct field {
    const char *name;
    size_t offset, size;
    int64_t min, max;
};

#define NUMBER(type, member, low, high)                                                                      \
    {                                                                                                        \
#member, offsetof(type, member), 0, (low), (high)                                                    \
    }
#define TEXT(type, member)                                                                                   \
    {                                                                                                        \
#member, offsetof(type, member), sizeof(((type *)0)->member), 0, 0                                   \
    }
#define CAUSE(type)                                                                                          \
    NUMBER(type, cause.rank, -1, INT_MAX), NUMBER(type, cause.local_rank, -1, INT_MAX),                      \
        NUMBER(type, cause.pid, 0, INT_MAX), NUMBER(type, cause.status, 0, 0xffff),                          \
        NUMBER(type, cause.wall_ms, 0, INT64_MAX / 2), NUMBER(type, cause.unsure, 0, 2),                     \
        NUMBER(type, cause.strength, 0, STRENGTHS - 1), NUMBER(type, cause.place, 0, INT64_MAX / 2),         \
        NUMBER(type, cause.number, 0, INT64_MAX / 2), TEXT(type, cause.host), TEXT(type, cause.error_file),  \
        TEXT(type, cause.message)

static const struct field node_fields[] = {
    NUMBER(struct meeting_node, phase, NODE_JOINING, NODE_LEAVING),
    NUMBER(struct meeting_node, round, 0, INT_MAX),
    NUMBER(struct meeting_node, beat, 0, INT64_MAX / 2),
    NUMBER(struct meeting_node, version, 0, INT64_MAX / 2),
    NUMBER(struct meeting_node, nproc, 1, 1 << 20),
    NUMBER(struct meeting_node, wanted, -1, MEETING_NODES_MAX - 1),
    NUMBER(struct meeting_node, port, 0, 65535),
    NUMBER(struct meeting_node, signal, 0, 64),
    NUMBER(struct meeting_node, heard_end, 0, 1),
    NUMBER(struct meeting_node, quiet, 0, 1),
    NUMBER(struct meeting_node, number, 0, INT64_MAX / 2),
    NUMBER(struct meeting_node, call, 0, INT_MAX),
    NUMBER(struct meeting_node, done, 0, MEETING_NODES_MAX),
    NUMBER(struct meeting_node, steps.window, 0, INT64_MAX / 2),
    NUMBER(struct meeting_node, steps.ranks, 0, STEPS_RANKS_MAX),
    NUMBER(struct meeting_node, steps.median_us, 0, STEPS_US_MAX),
    NUMBER(struct meeting_node, steps.slow_us, 0, STEPS_US_MAX),
    NUMBER(struct meeting_node, steps.slow_rank, 0, INT_MAX),
    NUMBER(struct meeting_node, steps.wait_us, 0, STEPS_US_MAX),
    TEXT(struct meeting_node, addr),
    TEXT(struct meeting_node, role),
    CAUSE(struct meeting_node),
};

static const struct field state_fields[] = {
    NUMBER(struct meeting_state, version, 0, INT64_MAX / 2),
    NUMBER(struct meeting_state, stage, STAGE_FORMING, STAGE_ENDED),
    NUMBER(struct meeting_state, round, 0, INT_MAX),
    NUMBER(struct meeting_state, restarts, 0, INT_MAX),
    NUMBER(struct meeting_state, keep_alive_ms, 1, INT_MAX),
    NUMBER(struct meeting_state, end, END_NONE, END_TIMEOUT),
    NUMBER(struct meeting_state, blame, 0, INT64_MAX / 2),
    NUMBER(struct meeting_state, master_port, 0, 65535),
    TEXT(struct meeting_state, master_addr),
    TEXT(struct meeting_state, why),
    NUMBER(struct meeting_state, here, 0, MEETING_TICKETS_MAX),
    NUMBER(struct meeting_state, left_ms, 0, INT64_MAX / 2),
    TEXT(struct meeting_state, missing),
    CAUSE(struct meeting_state),
    NUMBER(struct meeting_state, hung, 0, 1),
    NUMBER(struct meeting_state, asks, 0, 1),
    NUMBER(struct meeting_state, number, 0, INT64_MAX / 2),
    NUMBER(struct meeting_state, call, 0, INT_MAX),
    NUMBER(struct meeting_state, done, 0, MEETING_NODES_MAX),
    NUMBER(struct meeting_state, n, 0, MEETING_NODES_MAX),
};

/* Whether all fields are in their ranges, and all texts end. */
static int check_fields(const struct field *f, size_t n, const void *record, struct err *err)
{
    for (; n; n--, f++) {
        const char *at = (const char *)record + f->offset;
        int64_t number;
        if (f->size && !memchr(at, '\0', f->size))
            return err_set(err, ERR_INVALID, "rendezvous: %s does not end", f->name);
        if (f->size)
            continue;
        memcpy(&number, at, sizeof(number));
        if (number < f->min || number > f->max)
            return err_set(err, ERR_INVALID, "rendezvous: %s is %" PRId64 ", expected %" PRId64 "..%" PRId64,
                           f->name, number, f->min, f->max);
    }
    return 0;
}

int meeting_get_node(const char *bytes, size_t len, struct meeting_node *ret, struct err *err)
{
    if (len != sizeof(*ret))
        return err_set(err, ERR_INVALID, "rendezvous: %zu bytes are no node's state", len);
    memcpy(ret, bytes, len);
    return check_fields(node_fields, ARRAY_LEN(node_fields), ret, err);
}

static size_t members_bytes(int64_t n)
{
    return (size_t)n * sizeof(struct meeting_member);
}

void meeting_put_state(const struct meeting_state *s, struct buf *out)
{
    (void)buf_append(out, s, offsetof(struct meeting_state, members) + members_bytes(s->n), NULL);
}

int meeting_get_state(const char *bytes, size_t len, struct meeting_state *ret, struct err *err)
{
    const size_t head = offsetof(struct meeting_state, members);

    if (len < head)
        return err_set(err, ERR_INVALID, "rendezvous: %zu bytes are no run's state", len);
    memcpy(ret, bytes, head);
    if (check_fields(state_fields, ARRAY_LEN(state_fields), ret, err) < 0)
        return -1;
    if (len - head != members_bytes(ret->n))
        return err_set(err, ERR_INVALID, "rendezvous: %zu bytes are no state of %d members", len,
                       (int)ret->n);
    memcpy(ret->members, bytes + head, len - head);
    for (int64_t i = 0; i < ret->n; i++) {
        const struct meeting_member *m = &ret->members[i];
        if (m->ticket < 1 || m->ticket > INT64_MAX / 2 || m->nproc < 1 || m->nproc > 1 << 20 || m->role < 0 ||
            m->role > i)
            return err_set(err, ERR_INVALID, "rendezvous: bad member %d of %d", (int)i, (int)ret->n);
    }
    return 0;
}

const char *meeting_node_name(const struct meeting_node *n, char buf[static MEETING_NAME_BYTES + 32])
{
    if (n->wanted >= 0)
        snprintf(buf, MEETING_NAME_BYTES + 32, "node %d (%s)", (int)n->wanted, n->addr);
    else
        snprintf(buf, MEETING_NAME_BYTES + 32, "node %s", n->addr);
    return buf;
}
