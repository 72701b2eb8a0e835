/* rules.c - one look through the history, with what is known of each job so far. */
#include "tests/fakes/rules.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { JOBS_MAX = 64, ALIVE_MAX = 256, COUNTERS = 4, BACKOFF_LIMIT_DEFAULT = 3 };

struct alive {
    char uid[64], owner[64], type[64];
    int index, attempt;
};

struct job {
    char uid[64];
    bool gone;
    int64_t counters[COUNTERS];
    char end[64]; /* phase and time of the end */
};

struct watchman {
    unsigned leave_out;
    struct job jobs[JOBS_MAX];
    int n_jobs;
    struct alive alive[ALIVE_MAX];
    int n_alive;
};

static const cJSON *meta_of(const cJSON *object)
{
    return json_child(object, "metadata");
}

static void copy(char *to, size_t size, const char *text)
{
    snprintf(to, size, "%s", text ? text : "");
}

/* NULL: there never was such a job. */
static struct job *known_job(struct watchman *w, const char *uid)
{
    for (int i = 0; i < w->n_jobs; i++)
        if (strcmp(w->jobs[i].uid, uid) == 0)
            return &w->jobs[i];
    return NULL;
}

static struct job *job_of(struct watchman *w, const char *uid)
{
    struct job *known = known_job(w, uid);

    if (known)
        return known;
    if (w->n_jobs == JOBS_MAX)
        abort(); /* a test with more jobs than that needs more room here */
    struct job *j = &w->jobs[w->n_jobs++];
    *j = (struct job){.gone = true};
    copy(j->uid, sizeof(j->uid), uid);
    return j;
}

static struct alive read_pod(const cJSON *object)
{
    const cJSON *labels = json_find(object, (const char *[]){"metadata", "labels", NULL});
    const char *index = json_str(labels, LABEL_INDEX);
    const char *attempt = json_str(labels, LABEL_ATTEMPT);
    struct alive p = {.index = index ? atoi(index) : -1, .attempt = attempt ? atoi(attempt) : -1};

    copy(p.uid, sizeof(p.uid), json_str(meta_of(object), "uid"));
    copy(p.owner, sizeof(p.owner), api_controller_uid(meta_of(object)));
    copy(p.type, sizeof(p.type), json_str(labels, LABEL_TYPE));
    return p;
}

static const char *see_new_pod(struct watchman *w, const struct alive *p)
{
    const struct job *j = known_job(w, p->owner);

    for (int i = 0; i < w->n_alive; i++) {
        const struct alive *other = &w->alive[i];
        if (strcmp(other->owner, p->owner) != 0)
            continue;
        if (other->attempt != p->attempt)
            return "a pod was created beside one of another attempt";
        if (other->index == p->index && strcmp(other->type, p->type) == 0)
            return "a second pod was created for one index";
    }
    if (!j)
        return NULL; /* of another controller */
    if (j->end[0])
        return "a pod was created after the job's end";
    return j->gone ? "a pod was created for a job that is gone" : NULL;
}

static const char *see_pod(struct watchman *w, const struct fake_change *c)
{
    struct alive p = read_pod(c->object);
    const char *broken = NULL;

    /* One that somebody gave to another owner is no longer the job's. */
    for (int i = 0; i < w->n_alive; i++)
        if (strcmp(w->alive[i].uid, p.uid) == 0 &&
            (c->type == '-' || strcmp(w->alive[i].owner, p.owner) != 0))
            w->alive[i] = w->alive[--w->n_alive];
    if (!p.owner[0] || c->type != '+')
        return NULL;
    if (!(w->leave_out & FAKE_RULES_NO_PODS))
        broken = see_new_pod(w, &p);
    if (w->n_alive == ALIVE_MAX)
        abort();
    w->alive[w->n_alive++] = p;
    return broken;
}

static int64_t restarts_of(const cJSON *status)
{
    const cJSON *task;
    int64_t sum = 0;

    cJSON_ArrayForEach(task, json_child(status, "tasks")) sum += json_i64(task, "restartCount", 0);
    return sum;
}

static const char *see_counters(struct job *j, const cJSON *job, const cJSON *status)
{
    int64_t now[COUNTERS] = {json_i64(status, "attempt", 0), json_i64(status, "backoffCount", 0),
                             json_i64(status, "disruptionCount", 0), restarts_of(status)};
    int64_t limit = json_i64(json_find(job, (const char *[]){"spec", "runPolicy", NULL}), "backoffLimit",
                             BACKOFF_LIMIT_DEFAULT);

    for (int i = 0; i < COUNTERS; i++) {
        if (now[i] < j->counters[i])
            return "a counter fell";
        j->counters[i] = now[i];
    }
    return now[1] > limit ? "more restarts were counted than backoffLimit allows" : NULL;
}

static bool is_true(const cJSON *status, const char *type)
{
    const cJSON *c;

    cJSON_ArrayForEach(c, json_child(status, "conditions"))
    {
        const char *t = json_str(c, "type");
        const char *v = json_str(c, "status");
        if (t && v && strcmp(t, type) == 0 && strcmp(v, "True") == 0)
            return true;
    }
    return false;
}

static const char *see_end(struct job *j, const cJSON *status)
{
    const char *phase = json_str(status, "phase");
    const char *completed = json_str(status, "completionTime");
    char end[sizeof(j->end)] = "";

    if (completed)
        snprintf(end, sizeof(end), "%s %s", phase ? phase : "-", completed);
    if (j->end[0] && strcmp(j->end, end) != 0)
        return "the end did not stay as it was";
    copy(j->end, sizeof(j->end), end);
    return is_true(status, "Completed") && is_true(status, "Failed") ? "a job succeeded and failed" : NULL;
}

static const char *see_job(struct watchman *w, const struct fake_change *c)
{
    struct job *j = job_of(w, json_str(meta_of(c->object), "uid"));
    const cJSON *status = json_child(c->object, "status");

    j->gone = c->type == '-';
    if (j->gone || (w->leave_out & FAKE_RULES_NO_COUNTERS))
        return NULL;
    const char *broken = see_counters(j, c->object, status);
    return broken ? broken : see_end(j, status);
}

/* A status that was sent and was the same already: a write that the server takes and nobody sees. */
static bool idle_write(struct fake_apiserver *s)
{
    struct fake_request r;

    for (int i = 0; fake_log_at(s, i, &r); i++)
        if (strcmp(r.method, "PATCH") == 0 && strstr(r.path, "/" TRAINJOB_PLURAL "/") &&
            strstr(r.path, "/status") && r.status == 200 && !r.changed)
            return true;
    return false;
}

/* A list of chosen objects is another question than that of all. */
static bool asks_the_same(const struct fake_request *a, const struct fake_request *b)
{
    size_t len = strcspn(a->path, "?");

    return !strstr(a->path, "fieldSelector") == !strstr(b->path, "fieldSelector") && a->client == b->client &&
           strcmp(a->method, b->method) == 0 && len == strcspn(b->path, "?") &&
           strncmp(a->path, b->path, len) == 0;
}

/* Sooner than Retry-After allows, before the i-th request: creates of other objects may have been under way already. */
static bool asked_too_soon(struct fake_apiserver *s, int i)
{
    struct fake_request told;
    struct fake_request r;

    if (!fake_log_at(s, i, &told) || !told.retry_after_s || strstr(told.path, "/leases"))
        return false;
    for (int n = i + 1; fake_log_at(s, n, &r) && r.at_s < told.at_s + told.retry_after_s; n++)
        if (asks_the_same(&told, &r) &&
            (r.at_s > told.at_s || strcmp(told.method, "POST") != 0 || strcmp(told.body, r.body) == 0))
            return true;
    return false;
}

static bool impatient(struct fake_apiserver *s)
{
    const int n = fake_log_count(s, NULL, NULL);

    for (int i = 0; i < n; i++)
        if (asked_too_soon(s, i))
            return true;
    return false;
}

const char *fake_broken_rule(struct fake_apiserver *s, unsigned leave_out, int *ret_at)
{
    struct watchman *w = calloc(1, sizeof(*w));
    const char *broken = NULL;
    struct fake_change c;
    int i;

    if (!w)
        abort();
    w->leave_out = leave_out;
    for (i = 0; !broken && fake_change_at(s, i, &c); i++) {
        if (strcmp(c.kind, "Pod") == 0)
            broken = see_pod(w, &c);
        else if (strcmp(c.kind, TRAINJOB_KIND) == 0)
            broken = see_job(w, &c);
    }
    free(w);
    *ret_at = broken ? i - 1 : -1;
    if (!broken && idle_write(s))
        broken = "a write of the status changed nothing";
    if (!broken && impatient(s))
        broken = "a request came sooner than Retry-After said";
    return broken;
}
