/* podlog.c - the logs of pods: GET .../pods/NAME/log with sinceTime, tailLines, timestamps and follow. */
#include "common/clock.h"
#include "common/json.h"
#include "tests/fakes/server.h"

#include <stdlib.h>
#include <string.h>

enum { LOG_BYTES = 64 << 20 };

static struct podlog *log_of(struct fake_apiserver *s, const char *ns, const char *name)
{
    for (int i = 0; i < s->n_podlogs; i++)
        if (strcmp(s->podlogs[i].ns, ns) == 0 && strcmp(s->podlogs[i].name, name) == 0)
            return &s->podlogs[i];
    return NULL;
}

static struct podlog *log_at(struct fake_apiserver *s, const char *path)
{
    struct route r;

    if (!world_route(&s->world, path, &r) || !r.name[0])
        abort();
    struct podlog *l = log_of(s, r.ns, r.name);
    if (l)
        return l;
    if (s->n_podlogs == PODLOGS_MAX)
        abort();
    l = &s->podlogs[s->n_podlogs++];
    *l = (struct podlog){.text = BUF_INIT(LOG_BYTES)};
    memcpy(l->ns, r.ns, sizeof(l->ns));
    memcpy(l->name, r.name, sizeof(l->name));
    return l;
}

void fake_pod_prints(struct fake_apiserver *s, const char *path, const char *lines)
{
    struct err err;

    pthread_mutex_lock(&s->lock);
    struct podlog *l = log_at(s, path);
    l->ended = false;
    if (buf_puts(&l->text, lines, &err) < 0)
        abort();
    server_unlock(s);
}

void fake_pod_log_ends(struct fake_apiserver *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    log_at(s, path)->ended = true;
    server_unlock(s);
}

void fake_pod_log_begins_anew(struct fake_apiserver *s, const char *path)
{
    pthread_mutex_lock(&s->lock);
    struct podlog *l = log_at(s, path);
    buf_clear(&l->text);
    l->ended = false;
    server_unlock(s);
}

void fake_cut_pod_logs(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++)
        if (s->conns[i].fd >= 0 && s->conns[i].podlog)
            conn_close(&s->conns[i]);
    server_unlock(s);
}

int fake_open_pod_logs(struct fake_apiserver *s)
{
    int n = 0;

    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < CONNS_MAX; i++)
        n += s->conns[i].fd >= 0 && s->conns[i].podlog != NULL;
    server_unlock(s);
    return n;
}

void podlog_release(struct fake_apiserver *s)
{
    for (int i = 0; i < s->n_podlogs; i++)
        buf_release(&s->podlogs[i].text);
}

/* The value of a parameter of the query; NULL: it is not there. */
static const char *param(const char *target, const char *name)
{
    const char *at = strchr(target, '?');

    for (; at; at = strchr(at + 1, '&'))
        if (strncmp(at + 1, name, strlen(name)) == 0 && at[1 + strlen(name)] == '=')
            return at + 2 + strlen(name);
    return NULL;
}

static int64_t time_of(const char *line)
{
    char text[48] = "";
    int64_t ms = 0;

    memcpy(text, line, strcspn(line, " &\n") < sizeof(text) ? strcspn(line, " &\n") : 0);
    return clock_parse_rfc3339(text, &ms) ? ms : 0;
}

/* Where what was requested begins. */
static size_t beginning(const struct podlog *l, const char *target)
{
    const char *since = param(target, "sinceTime"), *tail = param(target, "tailLines");
    const char *text = buf_str(&l->text);
    size_t at = 0;

    for (long lines = tail ? strtol(tail, NULL, 10) + 1 : -1; tail && (at = l->text.len) > 0;) {
        while (at > 0 && (text[at - 1] != '\n' || --lines > 0))
            at--;
        break;
    }
    while (since && text[at] && time_of(text + at) / 1000 < time_of(since) / 1000)
        at += strcspn(text + at, "\n") + (text[at + strcspn(text + at, "\n")] == '\n');
    return at;
}

static void tell(struct conn *c, size_t until)
{
    const char *text = buf_str(&c->podlog->text);

    while (!c->podlog_times && c->told < until) { /* whole lines are printed in such tests */
        const size_t len = strcspn(text + c->told, "\n") + 1, skip = strcspn(text + c->told, " \n") + 1;
        conn_chunk(c, text + c->told + (skip < len ? skip : 0), len - (skip < len ? skip : 0));
        c->told += len;
    }
    if (c->told < until)
        conn_chunk(c, text + c->told, until - c->told);
    c->told = until;
}

void podlog_pump(struct conn *c)
{
    if (!c->podlog)
        return;
    if (c->told < c->podlog->text.len)
        tell(c, c->podlog->text.len);
    if (!c->podlog_follow || c->podlog->ended) {
        conn_end_watch(c);
        c->podlog = NULL;
    }
}

int podlog_answer(struct fake_apiserver *s, struct conn *c, const struct route *r, const char *target,
                  const struct fake_fault_plan *f, struct outcome *ret)
{
    struct podlog *l = log_of(s, r->ns, r->name);

    if (!world_find(&s->world, r->kind, r->ns, r->name))
        *ret = world_error(404, "NotFound", "pods not found");
    else if (!l)
        *ret = world_error(400, "BadRequest", "container is waiting to start: ContainerCreating");
    if (ret->status)
        return ret->status;
    conn_start_watch(c, r);
    c->watching = false;
    c->podlog = l;
    c->podlog_follow = param(target, "follow") != NULL;
    c->podlog_times = param(target, "timestamps") != NULL;
    c->told = beginning(l, target);
    if (f && (f->fault == FAKE_RESET_BODY || f->fault == FAKE_STALL_BODY)) {
        tell(c, c->told + (l->text.len - c->told) / 2);
        c->podlog = NULL;
        c->closing = f->fault == FAKE_RESET_BODY;
        c->hanging = f->fault == FAKE_STALL_BODY;
    }
    podlog_pump(c);
    return 200;
}
