/* labcluster.c - the pretend kubelet and garbage collector of the lab. */
#include "lab.h"

#include "operator/api/pod.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_ROUNDS = 6 };

int lab_forever(int attempt, int index)
{
    (void)attempt, (void)index;
    return LAB_RUNS;
}

int lab_well(int attempt, int index)
{
    (void)attempt, (void)index;
    return 0;
}

int lab_pending(int attempt, int index)
{
    (void)attempt, (void)index;
    return LAB_PENDING;
}

int lab_stuck(int attempt, int index)
{
    (void)attempt, (void)index;
    return LAB_STUCK;
}

int lab_killed(int attempt, int index)
{
    (void)attempt, (void)index;
    return 137;
}

int lab_killed_once(int attempt, int index)
{
    return attempt > 0 ? 0 : index == 1 ? 137 : LAB_RUNS;
}

int lab_well_later(int attempt, int index)
{
    (void)index;
    return attempt == 0 ? LAB_RUNS : 0;
}

int lab_one_pending(int attempt, int index)
{
    (void)attempt;
    return index == 1 ? LAB_PENDING : LAB_RUNS;
}

static struct lab_pod *known_pod(struct lab *l, const cJSON *meta)
{
    const char *uid = json_str(meta, "uid");
    const cJSON *labels = json_child(meta, "labels");
    const char *attempt = json_str(labels, LABEL_ATTEMPT);
    const char *index = json_str(labels, LABEL_INDEX);
    const char *restart = json_str(labels, LABEL_RESTART);

    for (int i = 0; i < l->n_pods; i++)
        if (strcmp(l->pods[i].uid, uid) == 0)
            return &l->pods[i];
    assert_true(l->n_pods < LAB_PODS_MAX);
    struct lab_pod *p = &l->pods[l->n_pods++];
    snprintf(p->name, sizeof(p->name), "%s", json_str(meta, "name"));
    snprintf(p->uid, sizeof(p->uid), "%s", uid);
    p->attempt = attempt ? atoi(attempt) : -1;
    p->index = index ? atoi(index) : -1;
    p->restart = restart ? atoi(restart) : 0;
    return p;
}

static void set_pod(struct lab *l, const struct lab_pod *p, int exit_code)
{
    bool two = l->mesh || l->sidecar;
    char path[160];
    char body[640];
    char other[160] = "";
    char state[160] = "'running':{}";
    char finished[CLOCK_RFC3339_BYTES];

    clock_rfc3339(lab_wall_ms(l) + l->node_ahead_ms, false, finished);
    if (exit_code >= 0)
        snprintf(state, sizeof(state), "'terminated':{'exitCode':%d,'finishedAt':'%s'}", exit_code, finished);
    snprintf(path, sizeof(path), LAB_PODS "/%s", p->name);
    if (two)
        snprintf(other, sizeof(other), "{'name':'%s','state':{%s}},", l->mesh ? "mesh-proxy" : "shipper",
                 p->cut ? "'terminated':{'exitCode':137}" : "'running':{}");
    snprintf(body, sizeof(body),
             "{'spec':{'nodeName':'n0'%s},'status':{%s%s'phase':'%s','containerStatuses':[%s{'name':'%s','"
             "state':{%s}}]}}",
             l->mesh      ? ",'containers':[{'name':'mesh-proxy'},{'name':'trainer'}]"
             : l->sidecar ? ",'containers':[{'name':'pytorch'},{'name':'shipper'}]"
                          : "",
             l->progress_url ? "'podIP':'10.0.0.1'," : "", p->cut ? "'reason':'DeadlineExceeded'," : "",
             exit_code < 0 || (two && !p->cut) ? "Running"
             : exit_code == 0 && !p->cut       ? "Succeeded"
                                               : "Failed",
             other, l->mesh ? "trainer" : "pytorch", state);
    lab_put(l, path, body);
}

static bool gang_runs(const struct lab *l, int attempt)
{
    int n = 0;

    for (int i = 0; i < l->n_pods; i++)
        n += l->pods[i].attempt == attempt && l->pods[i].running;
    return n >= l->gang;
}

static bool ends(const struct lab *l, const struct lab_pod *p, int fate)
{
    if (p->ended || p->age < RUN_ROUNDS || fate < 0 || (l->hold_master && p->index == 0))
        return false;
    return fate > 0 || gang_runs(l, p->attempt);
}

static void kubelet_pod(struct lab *l, const cJSON *object)
{
    static const char *const DEADLINE[] = {"spec", "activeDeadlineSeconds", NULL};
    const cJSON *meta = json_child(object, "metadata");
    struct lab_pod *p = known_pod(l, meta);
    char path[160];
    int fate = l->script(p->attempt + p->restart, p->index);

    p->age++;
    if (json_str(meta, "deletionTimestamp")) {
        if (fate == LAB_STUCK)
            return;
        snprintf(path, sizeof(path), LAB_PODS "/%s", p->name);
        p->gone = fake_remove(l->server, path);
        return;
    }
    if (!p->running && fate != LAB_PENDING) {
        p->running = true;
        set_pod(l, p, -1);
    } else if (ends(l, p, fate)) {
        p->ended = true;
        set_pod(l, p, fate);
    } else if (p->ended && !p->cut && (l->mesh || l->sidecar) && json_find(object, DEADLINE)) {
        p->cut = true;
        set_pod(l, p, fate);
    }
}

static void each(struct lab *l, const char *collection, void (*visit)(struct lab *l, const cJSON *object))
{
    for (int i = fake_count(l->server, collection) - 1; i >= 0; i--) {
        cleanup_json cJSON *object = fake_nth_json(l->server, collection, i);
        if (object)
            visit(l, object);
    }
}

/* ---- garbage collection */

/* Deletes what its job's end orphaned, or what stands in the way of it. */
static void collect(struct lab *l, const cJSON *object)
{
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const cJSON *meta = json_child(object, "metadata");
    const cJSON *job_meta = json_child(job, "metadata");
    const char *uid = json_str(job_meta, "uid");
    const char *kind = json_str(object, "kind");
    char path[256];

    if (json_str(meta, "deletionTimestamp") ||
        (uid && strcmp(uid, api_controller_uid(meta)) == 0 && !json_str(job_meta, "deletionTimestamp")))
        return;
    snprintf(path, sizeof(path), "%s/%s",
             strcmp(kind, "Pod") == 0             ? LAB_PODS
             : strcmp(kind, "Service") == 0       ? LAB_SERVICES
             : strcmp(kind, "NetworkPolicy") == 0 ? LAB_POLICIES
             : strcmp(kind, "Secret") == 0        ? LAB_SECRETS
             : strcmp(kind, "Workload") == 0      ? LAB_WORKLOADS
                                                  : LAB_DEPLOYMENTS,
             json_str(meta, "name"));
    assert_true(fake_delete(l->server, path));
}

static void collect_garbage(struct lab *l)
{
    static const char *const CHILDREN[] = {LAB_PODS, LAB_SERVICES, LAB_DEPLOYMENTS, LAB_POLICIES,
                                           LAB_SECRETS};
    uint64_t version = fake_version(l->server);
    int left = 0;

    if (version == l->collected)
        return;
    l->collected = version;
    for (size_t i = 0; i < ARRAY_LEN(CHILDREN); i++) {
        each(l, CHILDREN[i], collect);
        left += fake_count(l->server, CHILDREN[i]);
    }
    if (l->queues.runs) {
        each(l, LAB_WORKLOADS, collect);
        left += fake_count(l->server, LAB_WORKLOADS);
    }
    cleanup_json cJSON *job = lab_get(l, LAB_JOB);
    const char *const dying[] = {"metadata", "deletionTimestamp", NULL};
    if (left == 0 && json_find(job, dying))
        lab_put(l, LAB_JOB, "{'metadata':{'finalizers':[]}}");
}

void lab_cluster(struct lab *l)
{
    if (l->collects)
        collect_garbage(l);
    each(l, LAB_PODS, kubelet_pod);
    if (l->queues.runs)
        lab_kueue_round(l);
}
