/* labreport.c - what became of the job and its pods, as text. */
#include "lab.h"

#include "operator/api/pod.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool lab_status_is(struct lab *l, const char *path, const char *key, const char *want)
{
    cleanup_json cJSON *job = lab_get(l, path);
    const char *have = json_str(json_child(job, "status"), key);

    return want ? have && strcmp(have, want) == 0 : !have;
}

int64_t lab_status_number(struct lab *l, const char *key)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);

    return json_i64(json_child(job, "status"), key, 0);
}

int lab_events(struct lab *l, const char *reason, const char *text)
{
    int n = 0;

    for (int i = 0; i < fake_count(l->server, "/api/v1/events"); i++) {
        cleanup_json cJSON *e = fake_nth_json(l->server, "/api/v1/events", i);
        if (strcmp(json_str(e, "reason"), reason) == 0 && (!text || strstr(json_str(e, "message"), text)))
            n += (int)json_i64(e, "count", 1);
    }
    return n;
}

void lab_summary(struct lab *l, char *out, size_t size)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const cJSON *status = json_child(job, "status");
    const cJSON *task = cJSON_GetArrayItem(json_child(status, "tasks"), 0);
    const char *phase = json_str(status, "phase");

    snprintf(
        out, size, "%s attempt=%lld backoff=%lld disruptions=%lld failures=%d restarts=%lld",
        phase ? phase : "-", (long long)json_i64(status, "attempt", -1),
        (long long)json_i64(status, "backoffCount", -1), (long long)json_i64(status, "disruptionCount", -1),
        cJSON_GetArraySize(json_child(status, "failures")), (long long)json_i64(task, "restartCount", -1));
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
        const char *name = json_meta(c.object, "name");
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
    const char *reason = json_str(json_child(job, "status"), "reason");
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

const char *lab_broken_rule(struct lab *l, unsigned leave_out)
{
    int at;

    return fake_broken_rule(l->server, leave_out, &at);
}
