/* conn.c - HTTP/1.1 as far as libcurl speaks it to us. */
#include "tests/fakes/conn.h"

#include "common/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Tests cannot continue with half an answer. */
static void must(int rc)
{
    if (rc < 0)
        abort();
}

int conn_parse(const struct conn *c, struct http_message *ret)
{
    const char *end = c->in.len ? strstr(c->in.data, "\r\n\r\n") : NULL;

    if (!end)
        return 0;
    if (sscanf(c->in.data, "%7s %4095s", ret->method, ret->target) != 2)
        return -1;
    size_t length = 0;
    ret->authorization[0] = '\0';
    for (const char *line = strstr(c->in.data, "\r\n"); line && line < end; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, "Content-Length:", 15) == 0)
            length = strtoul(line + 17, NULL, 10);
        (void)sscanf(line + 2, "Authorization: %127[^\r]", ret->authorization);
    }
    size_t head = (size_t)(end + 4 - c->in.data);
    if (length > CONN_IN_MAX_BYTES)
        return -1;
    if (c->in.len - head < length)
        return 0;
    ret->body = c->in.data + head;
    ret->body_len = length;
    ret->total = head + length;
    return 1;
}

void conn_answer(struct conn *c, int status, int retry_after_s, const char *body, size_t len, long cut)
{
    struct err err;

    if (c->bare) {
        c->status = status;
        c->retry_after_s = retry_after_s;
        c->cut = cut >= 0;
        must(buf_append(&c->out, body, cut >= 0 && (size_t)cut < len ? (size_t)cut : len, &err));
        return;
    }
    must(buf_printf(&c->out, &err,
                    "HTTP/1.1 %d Fake\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n", status,
                    len));
    if (retry_after_s)
        must(buf_printf(&c->out, &err, "Retry-After: %d\r\n", retry_after_s));
    if (c->location)
        must(buf_printf(&c->out, &err, "Location: %s\r\n", c->location));
    c->location = NULL;
    must(buf_puts(&c->out, "\r\n", &err));
    must(buf_append(&c->out, body, cut >= 0 && (size_t)cut < len ? (size_t)cut : len, &err));
    c->closing = c->closing || cut >= 0;
}

void conn_chunk(struct conn *c, const char *bytes, size_t len)
{
    struct err err;

    if (!len)
        return;
    if (c->bare) {
        must(buf_append(&c->out, bytes, len, &err));
        return;
    }
    must(buf_printf(&c->out, &err, "%zx\r\n", len));
    must(buf_append(&c->out, bytes, len, &err));
    must(buf_puts(&c->out, "\r\n", &err));
}

void conn_end_watch(struct conn *c)
{
    struct err err;

    if (!c->bare)
        must(buf_puts(&c->out, "0\r\n\r\n", &err));
    c->watching = false;
}

void conn_event(struct conn *c, const char *type, const cJSON *object)
{
    struct err err;
    cleanup_buf struct buf line = BUF_INIT(CONN_IN_MAX_BYTES);

    must(buf_printf(&line, &err, "{\"type\":\"%s\",\"object\":", type));
    must(json_write(object, &line, &err));
    must(buf_puts(&line, "}\n", &err));
    conn_chunk(c, line.data, line.len);
}

void conn_bookmark(struct conn *c, uint64_t version)
{
    cleanup_json cJSON *o = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(o, "metadata");
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)version);
    cJSON_AddStringToObject(o, "kind", c->route.kind->name);
    cJSON_AddStringToObject(meta, "resourceVersion", text);
    conn_event(c, "BOOKMARK", o);
}

void conn_start_watch(struct conn *c, const struct route *r)
{
    struct err err;

    c->status = 200;
    if (!c->bare)
        must(buf_puts(
            &c->out,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n", &err));
    c->route = *r;
    c->watching = true;
}

static bool wanted(const struct conn *c, const cJSON *object)
{
    const char *ns = json_meta(object, "namespace");

    if (!object || (c->route.ns[0] && (!ns || strcmp(ns, c->route.ns) != 0)))
        return false;
    return world_matches(&c->route, object);
}

/* NULL: not this watch's business. */
static const char *event_type(const struct conn *c, const struct change *change)
{
    bool was = change->kind == c->route.kind && wanted(c, change->before);
    bool is = change->kind == c->route.kind && wanted(c, change->after);

    return is ? (was ? "MODIFIED" : "ADDED") : was ? "DELETED" : NULL;
}

bool conn_due(struct conn *c, const struct world *w)
{
    while (c->watching && c->next_change < w->n_changes && !event_type(c, &w->changes[c->next_change]))
        c->next_change++;
    return c->watching && c->next_change < w->n_changes;
}

const char *conn_due_type(const struct conn *c, const struct world *w)
{
    return event_type(c, &w->changes[c->next_change]);
}

void conn_tell(struct conn *c, const struct world *w)
{
    const struct change *change = &w->changes[c->next_change++];

    conn_event(c, event_type(c, change), change->after ? change->after : change->before);
}

void conn_pump(struct conn *c, const struct world *w)
{
    while (conn_due(c, w))
        conn_tell(c, w);
}

void conn_close(struct conn *c)
{
    if (c->fd >= 0 && !c->bare)
        close(c->fd);
    buf_release(&c->in);
    buf_release(&c->out);
    *c = (struct conn){.fd = -1};
}
