/* tamper.c - what becomes of a watch's events on their way. */
#include "tests/fakes/tamper.h"

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool strikes(struct fake_tamper *t)
{
    int repeats = t->repeats ? t->repeats : 1;

    return ++t->seen >= t->event && t->event && t->seen < t->event + repeats;
}

static void compact(struct world *w)
{
    w->oldest = ++w->version;
}

static void tell_gone(struct fake_apiserver *s, struct conn *c)
{
    struct outcome gone = world_error(410, "Expired", "too old resource version");

    conn_event(c, "ERROR", gone.body);
    cJSON_Delete(gone.body);
    compact(&s->world);
    conn_end_watch(c);
}

static void refuse_next_watch(struct fake_apiserver *s, struct conn *c)
{
    c->closing = true;
    compact(&s->world);
    s->plan = (struct fake_fault_plan){.request = 1, .method = "WATCH", .fault = FAKE_STATUS, .status = 410};
    s->plan.path_part = c->route.kind->plural;
    s->plan_seen = s->plan_done = 0;
    s->planned = true;
}

/* Bytes that are no event of the server's; "@V" stands for a version that is good, "@K" for the watch's kind. */
static void tell_raw(const struct world *w, struct conn *c, const struct fake_tamper *t)
{
    cleanup_buf struct buf bytes = BUF_INIT(CONN_OUT_MAX_BYTES);
    char version[32];
    struct err err;

    snprintf(version, sizeof(version), "%llu", (unsigned long long)w->changes[c->next_change].version - 1);
    for (size_t i = 0; i < t->raw_len; i++) {
        bool mark = t->raw[i] == '@' && i + 1 < t->raw_len;
        const char *word = mark && t->raw[i + 1] == 'V'   ? version
                           : mark && t->raw[i + 1] == 'K' ? c->route.kind->name
                                                          : NULL;
        if ((word ? buf_puts(&bytes, word, &err) : buf_append(&bytes, &t->raw[i], 1, &err)) < 0)
            abort();
        i += word != NULL;
    }
    conn_chunk(c, buf_str(&bytes), bytes.len);
}

/* The first half of the event's line. */
static void tell_half(const struct world *w, struct conn *c)
{
    size_t before = c->out.len;

    conn_tell(c, w);
    c->out.len = before + (c->out.len - before) / 2;
    c->next_change--;
}

static bool same_object(const struct change *a, const struct change *b)
{
    const char *const name[] = {"metadata", "name", NULL};
    const char *const ns[] = {"metadata", "namespace", NULL};
    const cJSON *x = a->after ? a->after : a->before;
    const cJSON *y = b->after ? b->after : b->before;

    return a->kind == b->kind && cJSON_Compare(json_find(x, name), json_find(y, name), true) &&
           cJSON_Compare(json_find(x, ns), json_find(y, ns), true);
}

static bool changed_again(const struct world *w, size_t at)
{
    for (size_t i = at + 1; i < w->n_changes; i++)
        if (same_object(&w->changes[at], &w->changes[i]))
            return true;
    return false;
}

/* The event, and then the first state of another object of the kind, which was sent already, once more. */
static void tell_old(const struct world *w, struct conn *c)
{
    const size_t news = c->next_change; /* behind it there need not be a change yet */

    conn_tell(c, w);
    const size_t next = c->next_change;
    for (c->next_change = 0; conn_due(c, w) && c->next_change < news; c->next_change++)
        if (!same_object(&w->changes[c->next_change], &w->changes[news])) {
            conn_tell(c, w);
            break;
        }
    c->next_change = next;
}

static void tamper_with(struct fake_apiserver *s, struct conn *c, struct fake_tamper *t,
                        struct tamper_hold *h, int64_t now_ms)
{
    const struct world *w = &s->world;

    t->done++;
    snprintf(t->told, sizeof(t->told), "%.40s/%s", c->route.kind->plural, conn_due_type(c, w));
    switch (t->how) {
    case FAKE_TELL:
        conn_tell(c, w);
        break;
    case FAKE_CUT_BEFORE:
        c->closing = true;
        break;
    case FAKE_CUT_AFTER:
        conn_tell(c, w);
        c->closing = true;
        break;
    case FAKE_REPEAT:
        conn_tell(c, w);
        c->next_change--;
        conn_tell(c, w);
        break;
    case FAKE_MERGE:
    case FAKE_LATE:
        h->until_ms = now_ms + t->late_ms;
        h->merging = t->how == FAKE_MERGE;
        break;
    case FAKE_GONE_STREAM:
        tell_gone(s, c);
        break;
    case FAKE_GONE_REQUEST:
        refuse_next_watch(s, c);
        break;
    case FAKE_RAW:
        tell_raw(w, c, t);
        conn_tell(c, w);
        break;
    case FAKE_RAW_END:
        tell_raw(w, c, t);
        conn_end_watch(c);
        break;
    case FAKE_HALF_CUT:
        tell_half(w, c);
        c->closing = true;
        break;
    case FAKE_HALF_END:
        tell_half(w, c);
        conn_end_watch(c);
        break;
    case FAKE_END:
        conn_end_watch(c);
        break;
    case FAKE_OLD:
        tell_old(w, c);
        break;
    }
}

/* False: the stream is held. */
static bool released(const struct world *w, struct conn *c, struct tamper_hold *h, int64_t now_ms)
{
    if (!h->until_ms)
        return true;
    if (h->merging && changed_again(w, c->next_change)) {
        c->next_change++; /* the next one says it all */
        h->until_ms = 0;
        return true;
    }
    if (now_ms < h->until_ms)
        return false;
    h->until_ms = 0;
    conn_tell(c, w);
    return true;
}

void tamper_pump(struct fake_apiserver *s, struct conn *c, struct fake_tamper *t, struct tamper_hold *h,
                 int64_t now_ms)
{
    while (!c->closing && conn_due(c, &s->world) && !server_holds(s, c) &&
           released(&s->world, c, h, now_ms)) {
        if (!conn_due(c, &s->world))
            break;
        if (t && strikes(t))
            tamper_with(s, c, t, h, now_ms);
        else
            conn_tell(c, &s->world);
    }
}
