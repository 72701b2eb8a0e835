/* meeting.c - encode and decode the rendezvous records as "name=value" lines. */
#include "rendezvous/meeting.h"
#include "common/sv.h"

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

/* Append a text as one line: newlines and backslashes are escaped. */
static void put_text(const char *text, struct buf *out)
{
    for (; *text; text++) {
        if (*text == '\n' || *text == '\\')
            (void)buf_append(out, "\\", 1, NULL);
        (void)buf_append(out, *text == '\n' ? "n" : text, 1, NULL);
    }
}

static bool get_text(struct sv in, char *out, size_t size)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len; i++) {
        char c = in.p[i];
        if (c == '\\' && ++i < in.len)
            c = in.p[i] == 'n' ? '\n' : in.p[i];
        if (c == '\0' || n + 1 == size)
            return false;
        out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static void put_fields(const struct field *f, size_t n, const void *from, struct buf *out)
{
    for (; n; n--, f++) {
        const char *at = (const char *)from + f->offset;
        int64_t number = 0;
        (void)buf_printf(out, NULL, "%s=", f->name);
        if (f->size)
            put_text(at, out);
        else {
            memcpy(&number, at, sizeof(number));
            (void)buf_printf(out, NULL, "%" PRId64, number);
        }
        (void)buf_append(out, "\n", 1, NULL);
    }
}

static int get_fields(const struct field *f, size_t n, struct sv *in, void *to, struct err *err)
{
    for (; n; n--, f++) {
        char *at = (char *)to + f->offset;
        struct sv line = {NULL, 0}, name = {NULL, 0};
        int64_t number = 0;
        bool good = sv_next(in, '\n', &line) && sv_next(&line, '=', &name) && sv_eq(name, f->name);
        if (good && f->size)
            good = get_text(line, at, f->size);
        else if (good && (good = sv_i64(line, f->min, f->max, &number)))
            memcpy(at, &number, sizeof(number));
        if (!good)
            return err_set(err, ERR_INVALID, "rendezvous: bad value of %s: \"%.*s\"", f->name,
                           (int)(line.len < 60 ? line.len : 60), line.p ? line.p : "");
    }
    return 0;
}

void meeting_put_node(const struct meeting_node *n, struct buf *out)
{
    put_fields(node_fields, ARRAY_LEN(node_fields), n, out);
}

int meeting_get_node(const char *text, size_t len, struct meeting_node *ret, struct err *err)
{
    struct sv in = {text, len};

    *ret = (struct meeting_node){0}; /* zero the padding and unused bytes: quorum_hear compares with memcmp */
    if (get_fields(node_fields, ARRAY_LEN(node_fields), &in, ret, err) < 0)
        return -1;
    return in.len ? err_set(err, ERR_INVALID, "rendezvous: more than a node's state") : 0;
}

void meeting_put_state(const struct meeting_state *s, struct buf *out)
{
    put_fields(state_fields, ARRAY_LEN(state_fields), s, out);
    for (int64_t i = 0; i < s->n; i++)
        (void)buf_printf(out, NULL, "%" PRId64 ":%" PRId64 ":%" PRId64 "\n", s->members[i].ticket,
                         s->members[i].nproc, s->members[i].role);
}

int meeting_get_state(const char *text, size_t len, struct meeting_state *ret, struct err *err)
{
    struct sv in = {text, len}, line, ticket, nproc;

    if (get_fields(state_fields, ARRAY_LEN(state_fields), &in, ret, err) < 0)
        return -1;
    for (int64_t i = 0; i < ret->n; i++)
        if (!sv_next(&in, '\n', &line) || !sv_next(&line, ':', &ticket) || !sv_next(&line, ':', &nproc) ||
            !sv_i64(ticket, 1, INT64_MAX / 2, &ret->members[i].ticket) ||
            !sv_i64(nproc, 1, 1 << 20, &ret->members[i].nproc) || !sv_i64(line, 0, i, &ret->members[i].role))
            return err_set(err, ERR_INVALID, "rendezvous: bad member %d of %d", (int)i, (int)ret->n);
    return in.len ? err_set(err, ERR_INVALID, "rendezvous: more than the run's state") : 0;
}

const char *meeting_node_name(const struct meeting_node *n, char buf[static MEETING_NAME_BYTES + 32])
{
    if (n->wanted >= 0)
        snprintf(buf, MEETING_NAME_BYTES + 32, "node %d (%s)", (int)n->wanted, n->addr);
    else
        snprintf(buf, MEETING_NAME_BYTES + 32, "node %s", n->addr);
    return buf;
}
