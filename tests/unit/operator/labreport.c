/* labreport.c - what became of the job and its pods, as text. */
#include "lab.h"

#include "operator/api/pod.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void lab_summary(struct lab *l, char *out, size_t size)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const cJSON *status = json_find(job, (const char *[]){"status", NULL});
    const cJSON *task = cJSON_GetArrayItem(json_find(status, (const char *[]){"tasks", NULL}), 0);
    const char *phase = json_str(status, "phase");

    snprintf(out, size, "%s attempt=%lld backoff=%lld disruptions=%lld failures=%d restarts=%lld",
             phase ? phase : "-", (long long)json_i64(status, "attempt", -1),
             (long long)json_i64(status, "backoffCount", -1),
             (long long)json_i64(status, "disruptionCount", -1),
             cJSON_GetArraySize(json_find(status, (const char *[]){"failures", NULL})),
             (long long)json_i64(task, "restartCount", -1));
}

void lab_explain(struct lab *l)
{
    int n = fake_log_count(l->server, NULL, NULL);
    struct fake_request r;
    char summary[256];

    for (int i = n > 40 ? n - 40 : 0; i < n && fake_log_at(l->server, i, &r); i++)
        print_error("%s %s -> %d\n", r.method, r.path, r.status);
    lab_summary(l, summary, sizeof(summary));
    print_error("%s; idle for %d jumps\n", summary, l->idle);
}

enum { HISTORY_MAX = 512, NAME_BYTES = 96 };

struct tally {
    int added, removed;
};

static struct tally tally_of(struct lab *l, const char *kind)
{
    struct tally t = {0};
    struct fake_change c;

    for (int i = 0; fake_change_at(l->server, i, &c); i++) {
        t.added += c.type == '+' && strcmp(c.kind, kind) == 0;
        t.removed += c.type == '-' && strcmp(c.kind, kind) == 0;
    }
    return t;
}

static int number_label(const cJSON *object, const char *key)
{
    const char *text = json_str(json_find(object, (const char *[]){"metadata", "labels", NULL}), key);

    return text ? atoi(text) : 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void lab_pod_history(struct lab *l, char *out, size_t size)
{
    static char names[HISTORY_MAX][NAME_BYTES];
    struct fake_change c;
    size_t n = 0;
    size_t len = 0;

    for (int i = 0; fake_change_at(l->server, i, &c); i++) {
        if (c.type != '+' || strcmp(c.kind, "Pod") != 0)
            continue;
        assert_true(n < HISTORY_MAX);
        const char *name = json_str(json_find(c.object, (const char *[]){"metadata", NULL}), "name");
        int restart = number_label(c.object, LABEL_RESTART);
        int used = snprintf(names[n], NAME_BYTES, "%s/%d", name, number_label(c.object, LABEL_ATTEMPT));
        if (restart)
            snprintf(names[n] + used, NAME_BYTES - (size_t)used, ".%d", restart);
        n++;
    }
    qsort(names, n, NAME_BYTES, by_text);
    out[0] = '\0';
    for (size_t i = 0; i < n && len < size; i++)
        len += (size_t)snprintf(out + len, size - len, " %s", names[i]);
}

void lab_ending(struct lab *l, bool history, char *out, size_t size)
{
    struct tally pods = tally_of(l, "Pod");
    struct tally services = tally_of(l, "Service");
    struct tally deployments = tally_of(l, "Deployment");
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *reason = json_str(json_find(job, (const char *[]){"status", NULL}), "reason");
    char summary[256];
    char names[512];

    lab_summary(l, summary, sizeof(summary));
    lab_pod_history(l, names, sizeof(names));
    if (!reason)
        reason = job ? "-" : "gone";
    if (history)
        snprintf(out, size, "%s, %s; pods +%d -%d:%s; services +%d -%d; deployments +%d -%d", reason, summary,
                 pods.added, pods.removed, names, services.added, services.removed, deployments.added,
                 deployments.removed);
    else
        snprintf(out, size, "%s, %s; %d pods, %d services, %d deployments", reason, summary,
                 pods.added - pods.removed, services.added - services.removed,
                 deployments.added - deployments.removed);
}

/* ---- rules */

struct watchman {
    struct {
        char uid[64];
        int attempt;
    } alive[LAB_PODS_MAX];
    int n_alive;
    int64_t attempt, backoff;
    char end[64]; /* phase and time of the end */
};

static const char *see_pod(struct watchman *w, const struct fake_change *c)
{
    const char *uid = json_str(json_find(c->object, (const char *[]){"metadata", NULL}), "uid");
    int attempt = number_label(c->object, LABEL_ATTEMPT);

    if (c->type == '-')
        for (int i = 0; i < w->n_alive; i++)
            if (strcmp(w->alive[i].uid, uid) == 0)
                w->alive[i] = w->alive[--w->n_alive];
    if (c->type != '+')
        return NULL;
    for (int i = 0; i < w->n_alive; i++)
        if (w->alive[i].attempt != attempt)
            return "a pod was created beside one of another attempt";
    if (w->end[0])
        return "a pod was created after the job's end";
    assert_true(w->n_alive < LAB_PODS_MAX);
    snprintf(w->alive[w->n_alive].uid, sizeof(w->alive[0].uid), "%s", uid);
    w->alive[w->n_alive++].attempt = attempt;
    return NULL;
}

static const char *see_job(struct watchman *w, const struct fake_change *c)
{
    const cJSON *status = json_find(c->object, (const char *[]){"status", NULL});
    const char *phase = json_str(status, "phase");
    const char *completed = json_str(status, "completionTime");
    int64_t attempt = json_i64(status, "attempt", 0);
    int64_t backoff = json_i64(status, "backoffCount", 0);
    char end[sizeof(w->end)] = "";

    if (completed)
        snprintf(end, sizeof(end), "%s %s", phase ? phase : "-", completed);
    if (attempt < w->attempt || backoff < w->backoff)
        return "a counter fell";
    if (w->end[0] && strcmp(w->end, end) != 0)
        return "the end did not stay as it was";
    w->attempt = attempt;
    w->backoff = backoff;
    snprintf(w->end, sizeof(w->end), "%s", end);
    return NULL;
}

const char *lab_broken_rule(struct lab *l, bool ghosts)
{
    struct watchman w = {0};
    const char *broken = NULL;
    struct fake_change c;

    for (int i = 0; !broken && fake_change_at(l->server, i, &c); i++) {
        if (strcmp(c.kind, "Pod") == 0 && !ghosts)
            broken = see_pod(&w, &c);
        else if (strcmp(c.kind, TRAINJOB_KIND) == 0)
            broken = see_job(&w, &c);
    }
    return broken;
}
