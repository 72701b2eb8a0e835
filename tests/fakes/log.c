/* log.c - the log of requests to the fake API server. */
#include "tests/fakes/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool server_fits(const char *verb, const char *path, const char *want_verb, const char *want_part)
{
    return (!want_verb || strcmp(verb, want_verb) == 0) && (!want_part || strstr(path, want_part));
}

bool server_writes(const char *verb, const char *path)
{
    return strcmp(verb, "GET") != 0 && strcmp(verb, "LIST") != 0 && strcmp(verb, "WATCH") != 0 &&
           !strstr(path, "/leases");
}

int server_remember(struct fake_apiserver *s, const struct http_message *m, const char *verb)
{
    if (s->n_log == s->cap_log) {
        s->cap_log = s->cap_log ? s->cap_log * 2 : 64;
        s->log = reallocarray(s->log, (size_t)s->cap_log, sizeof(*s->log));
        if (!s->log)
            abort();
    }
    struct fake_request *q = &s->log[s->n_log];
    snprintf(q->method, sizeof(q->method), "%s", verb);
    snprintf(q->path, sizeof(q->path), "%s", m->target);
    snprintf(q->authorization, sizeof(q->authorization), "%s", m->authorization);
    q->body = strndup(m->body, m->body_len);
    q->status = 0;
    q->changed = false;
    q->at_s = world_now_s(&s->world);
    q->retry_after_s = q->client = 0;
    return s->n_log++;
}

bool fake_log_at(struct fake_apiserver *s, int i, struct fake_request *ret)
{
    pthread_mutex_lock(&s->lock);
    bool there = i >= 0 && i < s->n_log;
    if (there)
        *ret = s->log[i];
    server_unlock(s);
    return there;
}

int fake_fault_last(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    int last = s->plan_last;
    server_unlock(s);
    return last;
}

bool fake_log_is_write(struct fake_apiserver *s, int i)
{
    struct fake_request r;

    return fake_log_at(s, i, &r) && server_writes(r.method, r.path);
}

int fake_log_count(struct fake_apiserver *s, const char *method, const char *path_part)
{
    int n = 0;

    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n_log; i++)
        n += server_fits(s->log[i].method, s->log[i].path, method, path_part);
    server_unlock(s);
    return n;
}

void fake_log_clear(struct fake_apiserver *s)
{
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < s->n_log; i++)
        free(s->log[i].body);
    s->n_log = 0;
    server_unlock(s);
}
