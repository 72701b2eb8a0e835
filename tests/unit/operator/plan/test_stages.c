/* test_stages.c - each Workload that a real Kueue had in tests/golden/kueue/stages.json, and what is planned for a job of that
 * Workload in four states: new, with running pods, without pods after an attempt, and done. tests/golden/kueue/wants.txt has the
 * plans, one a line; GOLDEN_UPDATE=1 writes it anew. With MultiKueue: the manager's job, whose status shows running pods, none, or
 * the end; and the worker's, which has pods. */
#include "common/buf.h"
#include "common/clock.h"
#include "operator/plan/desired.h"
#include "operator/plan/queue.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER TK_SOURCE_DIR "/tests/golden/kueue/"
#define NOW "2026-11-25T20:00:00Z"

enum { PODS_MAX = 8, LINE_BYTES = 1024 };

enum state { NEW, RUNS, ENDED, DONE, REMOTE, REMOTE_ENDED, REMOTE_DONE, WORKER, STATES };

static const char *const STATE_NAMES[] = {"new",    "runs",         "ended",       "done",
                                          "remote", "remote-ended", "remote-done", "worker"};

static cJSON *at(const cJSON *node, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(node, key);
}

static char *read_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), FOLDER "%s", name);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

/* ---- the job of a Workload */

static bool is_remote(enum state state)
{
    return state >= REMOTE && state <= REMOTE_DONE;
}

static bool runs(enum state state)
{
    return state == RUNS || state == REMOTE || state == WORKER;
}

static bool is_done(enum state state)
{
    return state == DONE || state == REMOTE_DONE;
}

static bool has_ended(enum state state)
{
    return state == ENDED || state == REMOTE_ENDED;
}

static cJSON *task_of(const cJSON *set, enum state state)
{
    cJSON *task = cJSON_CreateObject();
    cJSON *replicas = cJSON_AddArrayToObject(task, "replicas");
    char text[64];

    cJSON_AddStringToObject(task, "type", json_str(set, "name"));
    for (int i = 0; i < json_i64(set, "count", 0); i++) {
        cJSON *r = cJSON_CreateObject();
        snprintf(text, sizeof(text), "j-%s-%d", json_str(set, "name"), i);
        cJSON_AddStringToObject(r, "name", text);
        if (!has_ended(state))
            cJSON_AddStringToObject(r, "uid", text);
        if (is_remote(state))
            cJSON_AddStringToObject(r, "phase",
                                    state == REMOTE    ? "Running"
                                    : has_ended(state) ? "Creating"
                                                       : "Succeeded");
        cJSON_AddItemToArray(replicas, r);
    }
    return task;
}

static void add_status(cJSON *job, const cJSON *sets, enum state state)
{
    cJSON *status = cJSON_AddObjectToObject(job, "status");
    cJSON *tasks = cJSON_AddArrayToObject(status, "tasks");
    const cJSON *set;

    cJSON_AddStringToObject(status, "phase",
                            is_done(state) ? "Succeeded"
                            : runs(state)  ? "Running"
                                           : "Pending");
    cJSON_AddNumberToObject(status, "attempt", has_ended(state) ? 1 : 0);
    cJSON_AddNumberToObject(status, "observedGeneration", 1);
    if (state == REMOTE) {
        cJSON *c = cJSON_CreateObject();
        cJSON_AddStringToObject(c, "type", "Running");
        cJSON_AddStringToObject(c, "status", "True");
        cJSON_AddItemToArray(cJSON_AddArrayToObject(status, "conditions"), c);
    }
    if (!has_ended(state))
        cJSON_AddStringToObject(status, "startTime", "2026-11-25T19:31:00Z");
    if (is_done(state))
        cJSON_AddStringToObject(status, "completionTime", "2026-11-25T19:50:00Z");
    cJSON_ArrayForEach(set, sets) cJSON_AddItemToArray(tasks, task_of(set, state));
}

static cJSON *job_of(const cJSON *workload, enum state state)
{
    cJSON *job = cJSON_CreateObject();
    cJSON *meta = cJSON_AddObjectToObject(job, "metadata");
    cJSON *labels = cJSON_AddObjectToObject(meta, "labels");
    cJSON *spec = cJSON_AddObjectToObject(job, "spec");
    const cJSON *from = at(workload, "spec");
    const cJSON *sets = at(from, "podSets");
    cJSON *replicas = cJSON_AddArrayToObject(spec, "replicaSpecs");
    const char *class = json_str(at(from, "priorityClassRef"), "name");
    const cJSON *annotations = at(at(workload, "metadata"), "annotations");
    char limit[32];
    const cJSON *set;

    cJSON_AddStringToObject(meta, "name", "j");
    cJSON_AddStringToObject(meta, "namespace", "facts-queues");
    cJSON_AddStringToObject(meta, "uid", "0123456789");
    cJSON_AddStringToObject(meta, "resourceVersion", "1");
    cJSON_AddNumberToObject(meta, "generation", 1);
    cJSON_AddStringToObject(labels, LABEL_QUEUE, json_str(from, "queueName"));
    if (is_remote(state))
        cJSON_AddStringToObject(spec, "managedBy", TRAINJOB_MULTIKUEUE);
    if (state == WORKER)
        cJSON_AddStringToObject(labels, QUEUE_PREBUILT, "of-the-manager");
    if (class)
        cJSON_AddStringToObject(labels, LABEL_QUEUE_PRIORITY, class);
    if (annotations)
        cJSON_AddItemToObject(meta, "annotations", cJSON_Duplicate(annotations, true));
    snprintf(limit, sizeof(limit), "%lld", (long long)json_i64(from, "maximumExecutionTimeSeconds", 0));
    cJSON_AddStringToObject(labels, LABEL_QUEUE_MAX_TIME, limit);
    cJSON_ArrayForEach(set, sets)
    {
        cJSON *r = cJSON_CreateObject();
        cJSON_AddStringToObject(r, "type", json_str(set, "name"));
        cJSON_AddNumberToObject(r, "replicas", (double)json_i64(set, "count", 0));
        cJSON_AddItemToObject(r, "template", cJSON_Duplicate(at(set, "template"), true));
        cJSON_AddItemToArray(replicas, r);
        if (!at(set, "minCount"))
            continue;
        cJSON *e = cJSON_AddObjectToObject(spec, "elastic");
        cJSON_AddBoolToObject(e, "enabled", true);
        cJSON_AddNumberToObject(e, "minReplicas", (double)json_i64(set, "minCount", 1));
        cJSON_AddNumberToObject(e, "maxReplicas", (double)json_i64(set, "count", 1));
        cJSON_AddNumberToObject(e, "expectedReplicas", (double)json_i64(set, "count", 1));
        cJSON *t = cJSON_AddObjectToObject(spec, "torchrunConfig");
        cJSON_AddBoolToObject(t, "enabled", true);
        cJSON_AddNumberToObject(t, "maxRestarts", 1);
    }
    if (state != NEW)
        add_status(job, sets, state);
    return job;
}

static struct pod *pod_of(const char *type, int index, bool done, const char *hash)
{
    char text[1024];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"j-%s-%d\",\"namespace\":\"facts-queues\",\"uid\":\"j-%s-%d\","
             "\"resourceVersion\":\"8\","
             "\"creationTimestamp\":\"2026-11-25T19:31:00Z\",\"labels\":{\"" LABEL_TYPE
             "\":\"%s\",\"" LABEL_INDEX "\":\"%d\",\"" LABEL_ATTEMPT "\":\"0\",\"" LABEL_TEMPLATE_HASH
             "\":\"%s\"}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"pytorch\"}]},\"status\":{"
             "\"phase\":\"%s\","
             "\"podIP\":\"10.0.0.1\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{%s}}]}}",
             type, index, type, index, type, index, hash, done ? "Succeeded" : "Running",
             done ? "\"terminated\":{\"exitCode\":0}" : "\"running\":{}");
    cleanup_json cJSON *object = json_parse(text, strlen(text), &err);
    struct pod *pod = pod_decode(object, NULL, &err);
    assert_non_null(pod);
    return pod;
}

/* ---- the plan as a line */

/* What is set in the first pod by its admission. */
static void put_pod(struct buf *out, const char *body)
{
    struct err err;
    cleanup_json cJSON *pod = json_parse(body, strlen(body), &err);
    const char *const KEYS[] = {"nodeSelector", "tolerations", "schedulingGates"};
    struct arena a = {0};

    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        if (at(at(pod, "spec"), KEYS[i]) && at(at(pod, "spec"), KEYS[i])->child)
            buf_printf(out, NULL, " %s", json_print(at(at(pod, "spec"), KEYS[i]), &a));
    arena_release(&a);
}

static void put_action(struct buf *out, const struct action *act, bool *pod_shown)
{
    static const char *const VERBS[] = {"status", "event", "delete", "create", "patch", "apply", "edit"};
    static const char *const CHILDREN[] = {"pod", "service", "deployment", "workload",
                                           "job", "policy",  "key"};
    static const char *const EDITS[] = {"release", "spec", "adopt"};
    struct err err;

    if (act->kind == ACTION_EVENT) {
        if (strcmp(act->reason, "Evicted") == 0 || strncmp(act->reason, "Queued", 6) == 0)
            buf_printf(out, NULL, "; event %s", act->reason);
        return;
    }
    cleanup_json cJSON *body = act->body ? json_parse(act->body, strlen(act->body), &err) : NULL;
    if (act->kind == ACTION_STATUS) {
        const char *reason = json_str(at(body, "status"), "reason");
        buf_printf(out, NULL, "; status %s", reason ? reason : "-");
        return;
    }
    buf_printf(out, NULL, "; %s %s", VERBS[act->kind], CHILDREN[act->child]);
    if (act->kind == ACTION_EDIT)
        buf_printf(out, NULL, " %s", EDITS[act->edit]);
    if (act->kind == ACTION_APPLY) {
        const cJSON *c = cJSON_GetArrayItem(at(at(body, "status"), "conditions"), 0);
        buf_printf(out, NULL, " %s=%s/%s", json_str(c, "type"), json_str(c, "status"), json_str(c, "reason"));
    }
    if (act->kind == ACTION_CREATE && act->child == CHILD_POD && !*pod_shown)
        put_pod(out, act->body);
    *pod_shown |= act->kind == ACTION_CREATE && act->child == CHILD_POD;
}

static struct queue_setting *setting(const char *name, const char *labels, int64_t value)
{
    char text[512];
    struct err err;

    snprintf(text, sizeof(text),
             "{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\"},\"value\":%lld,\"spec\":{\"nodeLabels\":%s,"
             "\"tolerations\":[{\"key\":"
             "\"gpu\",\"operator\":\"Exists\"}]}}",
             name, (long long)value, labels);
    cleanup_json cJSON *o = json_parse(text, strlen(text), &err);
    struct queue_setting *s = queue_setting_decode(o, &err);
    assert_non_null(s);
    return s;
}

/* The recorded Workload as this job's own. */
static struct workload *own_workload(const cJSON *recorded, const struct trainjob *job, struct arena *a)
{
    cleanup_json cJSON *o = cJSON_Duplicate(recorded, true);
    cJSON *meta = at(o, "metadata");
    struct err err;

    if (!cJSON_IsObject(meta))
        return NULL;
    desired_owner(job, meta);
    json_set(meta, "name", cJSON_CreateString(queue_workload_name(a, job)));
    json_set(meta, "namespace", cJSON_CreateString(job->ns));
    struct workload *w = workload_decode(o, NULL, &err);
    if (w)
        return w;
    struct err again;
    w = workload_decode(o, &err, &again);
    return w;
}

/* `object` is the Workload, `recorded` that by which the job is made. */
static void plan_stage(struct buf *out, const cJSON *recorded, const cJSON *object, enum state state)
{
    struct arena a = {0};
    struct plan plan;
    struct err err;
    struct trainjob *job = trainjob_decode(job_of(recorded, state), &err);
    struct pod *pods[PODS_MAX];
    struct plan_input in = {.job = job, .launcher_image = "l"};
    const struct queue_setting *flavors[] = {setting("facts-flavor", "{\"pool\":\"facts\"}", 0),
                                             setting("facts-tas", "{}", 0)};
    const struct queue_setting *classes[] = {setting("facts-low", "{}", 10),
                                             setting("facts-high", "{}", 1000)};
    bool pod_shown = false;

    assert_non_null(job);
    if (job->spec_error)
        fail_msg("%s", job->spec_error);
    assert_true(clock_parse_rfc3339(NOW, &in.now_ms));
    for (int t = 0; (state == RUNS || state == DONE || state == WORKER) && t < job->spec.n_replica_specs; t++)
        for (int i = 0; i < job->spec.replica_specs[t].replicas && in.n_pods < PODS_MAX; i++)
            pods[in.n_pods++] = pod_of(job->spec.replica_specs[t].type, i, state == DONE, job->spec.hash);
    in.pods = (const struct pod *const *)pods;
    struct workload *w = own_workload(object, job, &a);
    in.queue = (struct plan_queue){.mode = QUEUE_ON,
                                   .workloads = (const struct workload *const[]){w},
                                   .n_workloads = w != NULL,
                                   .settings = {flavors, classes},
                                   .n_settings = {2, 2}};
    if (w && w->unreadable[0])
        in.unreadable = w->unreadable;
    plan_trainjob(&in, &a, &plan);
    for (int i = 0; i < plan.n_actions; i++)
        put_action(out, &plan.actions[i], &pod_shown);
    for (int i = 0; i < in.n_pods; i++)
        free(pods[i]);
    for (int i = 0; i < 2; i++) {
        free((void *)(uintptr_t)flavors[i]);
        free((void *)(uintptr_t)classes[i]);
    }
    free(w);
    trainjob_free(job);
    arena_release(&a);
}

static void test_each_stage(void **state)
{
    cleanup_free char *recorded = read_file("stages.json");
    cleanup_buf struct buf got = BUF_INIT(1 << 20);
    struct err err;
    int n = 0;

    (void)state;
    for (char *rest = recorded, *line; (line = strsep(&rest, "\n")) && *line; n++) {
        cleanup_json cJSON *o = json_parse(line, strlen(line), &err);
        assert_non_null(o);
        for (int s = 0; s < STATES; s++) {
            buf_printf(&got, NULL, "%s %s", json_str(o, "stage"), STATE_NAMES[s]);
            plan_stage(&got, at(o, "object"), at(o, "object"), (enum state)s);
            buf_puts(&got, "\n", NULL);
        }
    }
    assert_int_equal(n, 53);
    if (getenv("GOLDEN_UPDATE")) {
        FILE *f = fopen(FOLDER "wants.txt", "w");
        assert_non_null(f);
        fputs(buf_str(&got), f);
        fclose(f);
        return;
    }
    cleanup_free char *want = read_file("wants.txt");
    assert_string_equal(buf_str(&got), want);
}

/* ---- what anybody may have written instead */

/* The n-th node below this one, in order; *n counts down. */
static cJSON *nth(cJSON *node, int *n)
{
    cJSON *child, *found;

    cJSON_ArrayForEach(child, node)
    {
        if ((*n)-- == 0)
            return child;
        found = nth(child, n);
        if (found)
            return found;
    }
    return NULL;
}

static bool replace(cJSON *in, const cJSON *node, cJSON *by)
{
    cJSON *child;

    cJSON_ArrayForEach(child, in)
    {
        if (child == node) {
            if (cJSON_IsObject(in))
                cJSON_ReplaceItemInObjectCaseSensitive(in, child->string, by);
            else
                cJSON_ReplaceItemViaPointer(in, child, by);
            return true;
        }
        if (replace(child, node, by))
            return true;
    }
    return false;
}

static cJSON *shape(int i)
{
    static char names[2000];
    cJSON *o;

    memset(names, 'x', sizeof(names) - 1);
    switch (i) {
    case 0:
        return cJSON_CreateNull();
    case 1:
        return cJSON_CreateTrue();
    case 2:
        return cJSON_CreateNumber(-1e300);
    case 3:
        return cJSON_CreateString("");
    case 4:
        return cJSON_CreateString(names);
    case 5:
        o = cJSON_CreateArray();
        for (int k = 0; k < 40; k++)
            cJSON_AddItemToArray(o, k % 2 ? cJSON_CreateString("x") : cJSON_CreateObject());
        return o;
    default:
        o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "", "x");
        cJSON_AddNumberToObject(o, "name", 7);
        return o;
    }
}

/* The job's spec stays as recorded. No pod is created unless the Workload is admitted, nor quota given back beside one. */
static void plan_hostile(const cJSON *recorded, const cJSON *object, enum state state)
{
    struct buf out = BUF_INIT(1 << 16);

    plan_stage(&out, recorded, object, state);
    if (state == RUNS && strstr(buf_str(&out), "edit workload release"))
        fail_msg("%s", buf_str(&out));
    buf_release(&out);
}

static void test_each_node_is_replaced(void **state)
{
    static const char *const STAGES[] = {"02-admitted", "04-low-evicted-holds-quota",
                                         "24-admitted-with-podset-updates", "50-tas-admitted"};
    cleanup_free char *recorded = read_file("stages.json");
    struct err err;
    int plans = 0;

    (void)state;
    for (char *rest = recorded, *line; (line = strsep(&rest, "\n")) && *line;) {
        cleanup_json cJSON *o = json_parse(line, strlen(line), &err);
        for (size_t s = 0; s < ARRAY_LEN(STAGES); s++) {
            bool more = strcmp(json_str(o, "stage"), STAGES[s]) == 0;
            for (int i = 0; more; i++) {
                for (int k = 0; k < 7 && more; k++) {
                    cleanup_json cJSON *object = cJSON_Duplicate(at(o, "object"), true);
                    int n = i;
                    cJSON *node = nth(object, &n);
                    more = node != NULL;
                    if (!more)
                        break;
                    replace(object, node, shape(k));
                    plan_hostile(at(o, "object"), object, k % 2 ? NEW : RUNS);
                    plans++;
                }
            }
        }
    }
    assert_true(plans > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_stage),
                                       cmocka_unit_test(test_each_node_is_replaced)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
