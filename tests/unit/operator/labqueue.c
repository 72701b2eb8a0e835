/* labqueue.c - the pretend Kueue of the lab: it admits each Workload, unless it is full. */
#include "lab.h"

#include "common/clock.h"
#include "jsontext.h"
#include "operator/api/pod.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static cJSON *at(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

static bool is(const cJSON *workload, const char *type, const char *status)
{
    const char *have =
        json_str(json_item_with(at(at(workload, "status"), "conditions"), "type", type), "status");

    return have && strcmp(have, status) == 0;
}

void lab_kueue_serve(struct lab *l)
{
    fake_add_kind(l->server, LAB_KUEUE, "workloads", "Workload");
    fake_add_kind(l->server, LAB_KUEUE, "resourceflavors", "ResourceFlavor");
    fake_add_kind(l->server, LAB_KUEUE, "workloadpriorityclasses", "WorkloadPriorityClass");
    fake_add_kind(l->server, "/apis/scheduling.k8s.io/v1", "priorityclasses", "PriorityClass");
    lab_put(l, LAB_KUEUE "/resourceflavors/gpu",
            "{'spec':{'nodeLabels':{'pool':'a100'},'tolerations':[{'key':'gpu','operator':'Exists'}]}}");
    lab_put(l, LAB_KUEUE "/workloadpriorityclasses/high", "{'value':1000}");
    l->queues.runs = true;
}

void lab_kueue_install(struct lab *l)
{
    lab_kueue_serve(l);
    l->kueue = QUEUES_AUTO;
    lab_restart(l);
}

cJSON *lab_workload(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *uid = json_str(at(job, "metadata"), "uid");

    for (int i = fake_count(l->server, LAB_WORKLOADS) - 1; uid && i >= 0; i--) {
        cleanup_json cJSON *w = fake_nth_json(l->server, LAB_WORKLOADS, i);
        if (strcmp(api_controller_uid(at(w, "metadata")), uid) == 0)
            return TAKE(w);
    }
    return NULL;
}

static void put(struct lab *l, const cJSON *workload, const cJSON *patch)
{
    cleanup_free char *text = cJSON_PrintUnformatted(patch);
    char path[256];

    snprintf(path, sizeof(path), LAB_WORKLOADS "/%s", json_str(at(workload, "metadata"), "name"));
    lab_put(l, path, text);
}

/* Add a condition to the whole list in `status`; the fake server merges no lists. */
static void add(struct lab *l, cJSON *status, const char *type, const char *state, const char *reason,
                const char *message)
{
    cJSON *list = at(status, "conditions");
    cJSON *c = json_item_with(list, "type", type);
    char now[CLOCK_RFC3339_BYTES];

    clock_rfc3339(lab_wall_ms(l), false, now);
    cJSON_Delete(c ? cJSON_DetachItemViaPointer(list, c) : NULL);
    c = cJSON_CreateObject();
    cJSON_AddStringToObject(c, "type", type);
    cJSON_AddStringToObject(c, "status", state);
    cJSON_AddStringToObject(c, "reason", reason);
    cJSON_AddStringToObject(c, "message", message);
    cJSON_AddStringToObject(c, "lastTransitionTime", now);
    cJSON_AddItemToArray(list, c);
}

/* A patch of the status with the conditions as they are. */
static cJSON *status_patch(const cJSON *workload, cJSON **ret_status)
{
    cJSON *patch = cJSON_CreateObject();
    const cJSON *have = at(at(workload, "status"), "conditions");

    *ret_status = cJSON_AddObjectToObject(patch, "status");
    cJSON_AddItemToObject(*ret_status, "conditions",
                          have ? cJSON_Duplicate(have, true) : cJSON_CreateArray());
    return patch;
}

void lab_workload_condition(struct lab *l, const char *type, const char *status, const char *reason,
                            const char *message)
{
    cleanup_json cJSON *w = lab_workload(l);
    cJSON *to;
    cleanup_json cJSON *patch = status_patch(w, &to);

    add(l, to, type, status, reason, message);
    put(l, w, patch);
}

bool lab_workload_is(struct lab *l, const char *type, const char *status)
{
    cleanup_json cJSON *w = lab_workload(l);

    return w && is(w, type, status);
}

void lab_workload_put(struct lab *l, const char *json)
{
    cleanup_json cJSON *w = lab_workload(l);
    char path[256];

    snprintf(path, sizeof(path), LAB_WORKLOADS "/%s", json_str(at(w, "metadata"), "name"));
    lab_put(l, path, json);
}

void lab_evict(struct lab *l, const char *reason)
{
    lab_workload_condition(l, "Evicted", "True", reason, "Preempted to accommodate a workload");
}

static void rewrite(cJSON *patch, const cJSON *w)
{
    cJSON *sets = cJSON_Duplicate(at(at(w, "spec"), "podSets"), true);
    cJSON *c = at(at(at(sets->child, "template"), "spec"), "containers")->child;

    cJSON_AddStringToObject(at(at(c, "resources"), "limits"), "added", "1");
    cJSON_AddItemToObject(cJSON_AddObjectToObject(patch, "spec"), "podSets", sets);
}

static void admit(struct lab *l, const cJSON *w)
{
    cJSON *status;
    cleanup_json cJSON *patch = status_patch(w, &status);
    cJSON *admission = cJSON_AddObjectToObject(status, "admission");
    cJSON *sets = cJSON_AddArrayToObject(admission, "podSetAssignments");
    const cJSON *s;

    cJSON_AddStringToObject(admission, "clusterQueue", "cq");
    cJSON_ArrayForEach(s, at(at(w, "spec"), "podSets"))
    {
        cleanup_json cJSON *more = l->queues.assignment ? jsontext_parse(l->queues.assignment) : NULL;
        cJSON *o = more ? TAKE(more) : cJSON_CreateObject();
        cJSON_AddStringToObject(o, "name", json_str(s, "name"));
        if (!at(o, "count"))
            cJSON_AddNumberToObject(o, "count", (double)json_i64(s, "count", 0));
        cJSON_AddStringToObject(cJSON_AddObjectToObject(o, "flavors"), "cpu", "gpu");
        cJSON_AddItemToArray(sets, o);
    }
    add(l, status, "QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue cq");
    if (!l->queues.checks)
        add(l, status, "Admitted", "True", "Admitted", "The workload is admitted");
    if (is(w, "Evicted", "True"))
        add(l, status, "Evicted", "False", "QuotaReserved", "Previously: Preempted");
    l->queues.admitted++;
    if (l->queues.rewrites)
        rewrite(patch, w);
    put(l, w, patch);
}

/* In the second round after the reservation. */
static void check(struct lab *l, const cJSON *w)
{
    const char *state = json_str(cJSON_GetArrayItem(at(at(w, "status"), "admissionChecks"), 0), "state");
    bool ready = state != NULL;
    cJSON *status;
    cleanup_json cJSON *patch = status_patch(w, &status);

    cJSON_AddItemToObject(
        status, "admissionChecks",
        jsontext_parse(ready ? "[{'name':'c','state':'Ready'}]" : "[{'name':'c','state':'Pending'}]"));
    if (ready)
        add(l, status, "Admitted", "True", "Admitted", "The workload is admitted");
    put(l, w, patch);
}

static void judge(struct lab *l, const cJSON *w)
{
    cJSON *status;

    if (json_str(at(w, "metadata"), "deletionTimestamp") || is(w, "Finished", "True") ||
        is(w, "Requeued", "False") || cJSON_IsFalse(at(at(w, "spec"), "active")))
        return;
    if (is(w, "QuotaReserved", "True")) {
        if (l->queues.checks && !is(w, "Admitted", "True") && !is(w, "Evicted", "True"))
            check(l, w);
        return;
    }
    if (l->queues.meddles && json_i64(at(at(w, "spec"), "podSets")->child, "count", 0) != 1) {
        cJSON *sets = cJSON_Duplicate(at(at(w, "spec"), "podSets"), true);
        cleanup_json cJSON *patch = cJSON_CreateObject();
        cJSON_ReplaceItemInObject(sets->child, "count", cJSON_CreateNumber(1));
        cJSON_AddItemToObject(cJSON_AddObjectToObject(patch, "spec"), "podSets", sets);
        put(l, w, patch);
    } else if (!l->queues.full) {
        admit(l, w);
    } else if (!json_item_with(at(at(w, "status"), "conditions"), "type", "QuotaReserved")) {
        cleanup_json cJSON *patch = status_patch(w, &status);
        add(l, status, "QuotaReserved", "False", "Pending",
            "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor "
            "gpu, 2 more needed");
        put(l, w, patch);
    }
}

void lab_kueue_round(struct lab *l)
{
    for (int i = fake_count(l->server, LAB_WORKLOADS) - 1; i >= 0; i--) {
        cleanup_json cJSON *w = fake_nth_json(l->server, LAB_WORKLOADS, i);
        if (w)
            judge(l, w);
    }
}

/* ---- what has to hold at every moment */

enum { ACTIVE_MAX = 256 };

struct look {
    char active[ACTIVE_MAX][64]; /* UIDs of pods */
    int n;
    bool admitted, reserved;
};

static void note_pod(struct look *k, const struct fake_change *c)
{
    const char *uid = json_str(at(c->object, "metadata"), "uid");
    const char *phase = json_str(at(c->object, "status"), "phase");
    bool active =
        c->type != '-' && (!phase || (strcmp(phase, "Failed") != 0 && strcmp(phase, "Succeeded") != 0));
    int i = 0;

    while (i < k->n && strcmp(k->active[i], uid) != 0)
        i++;
    if (active && i == k->n) {
        assert_true(k->n < ACTIVE_MAX);
        snprintf(k->active[k->n++], 64, "%s", uid);
    } else if (!active && i < k->n) {
        memcpy(k->active[i], k->active[--k->n], 64);
    }
}

static const char *note_workload(struct look *k, const struct fake_change *c, bool strict)
{
    bool gone = c->type == '-' || is(c->object, "Finished", "True");
    bool reserved = !gone && is(c->object, "QuotaReserved", "True");
    const char *broken =
        strict && k->reserved && !reserved && k->n > 0 ? "quota was given back while a pod was active" : NULL;

    k->reserved = reserved;
    k->admitted = reserved && is(c->object, "Admitted", "True");
    return broken;
}

/* Kueue counts the quota of a Workload that is Finished as free; the finalizer of any other one keeps it. */
static const char *leaked(struct lab *l)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    cleanup_json cJSON *w = fake_nth_json(l->server, LAB_WORKLOADS, 0);
    bool over = !job || json_str(at(job, "status"), "completionTime");

    if (w && over && cJSON_GetArraySize(at(at(w, "metadata"), "finalizers")) > 0)
        return "a Workload kept its finalizer";
    return w && over && job && !is(w, "Finished", "True") ? "the job ended and its Workload did not" : NULL;
}

const char *lab_broken_queue_rule(struct lab *l, bool strict)
{
    static struct look k;
    struct fake_change c;

    k = (struct look){0};
    for (int i = 0; fake_change_at(l->server, i, &c); i++) {
        const char *broken = NULL;
        if (strcmp(c.kind, "Workload") == 0 &&
            strstr(json_str(at(c.object, "metadata"), "name"), "trainingjob-"))
            broken = note_workload(&k, &c, strict);
        if (strcmp(c.kind, "Pod") == 0)
            note_pod(&k, &c);
        if (strict && strcmp(c.kind, "Pod") == 0 && c.type == '+' && !k.admitted)
            broken = "a pod was created for a job that was not admitted";
        if (broken)
            return broken;
    }
    return leaked(l);
}
