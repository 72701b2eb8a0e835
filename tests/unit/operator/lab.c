/* lab.c - the operator's surroundings in one thread. */
#include "lab.h"

#include "kube/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TURNS_MAX = 60000, QUIET_TURNS = 3, JUMP_MS = 1000, SETTLED_JUMPS = 45, RUN_ROUNDS = 6 };

static int64_t wall_ms(void *ctx)
{
    struct clock c = clock_system();

    return c.wall_ms(c.ctx) + ((struct lab *)ctx)->offset_ms;
}

static int64_t mono_ms(void *ctx)
{
    struct clock c = clock_system();

    return c.mono_ms(c.ctx) + ((struct lab *)ctx)->offset_ms;
}

static void operator_start(struct lab *l)
{
    struct err err;
    const struct controller_options options = {.tensorboard_image = "tb", .seed = 1};

    l->loop = loop_new((struct clock){wall_ms, mono_ms, l}, &err);
    assert_non_null(l->loop);
    l->http = http_new(l->loop, &l->config, &(struct http_options){.user_agent = "lab"}, &err);
    assert_non_null(l->http);
    l->transport = http_transport(l->http);
    l->recorder = recorder_new(l->loop, &l->transport, "ptj-operator", NULL);
    l->controller = controller_new(l->loop, &l->transport, l->recorder, &l->log, &options);
}

static void operator_stop(struct lab *l)
{
    controller_free(l->controller);
    recorder_free(l->recorder);
    http_free(l->http);
    loop_free(l->loop);
}

void lab_start(struct lab *l, int (*script)(int attempt, int index))
{
    struct err err;

    *l = (struct lab){.script = script, .log = {STDERR_FILENO, LOG_ERROR, clock_system()}};
    l->server = fake_apiserver_start();
    fake_add_kind(l->server, "/apis/" TRAINJOB_GROUP "/" TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    fake_pods_linger(l->server, true);
    l->config =
        (struct kube_config){.server = strdup(fake_apiserver_url(l->server)), .namespace_name = strdup("ns")};
    assert_int_equal(kube_secret_from_text(&l->config.token, "token", &err), 0);
    operator_start(l);
}

void lab_stop(struct lab *l)
{
    operator_stop(l);
    kube_config_release(&l->config);
    fake_apiserver_stop(l->server);
}

void lab_crash(struct lab *l)
{
    operator_stop(l);
    operator_start(l);
}

int lab_requests(struct lab *l)
{
    return fake_log_count(l->server, NULL, NULL) - fake_log_count(l->server, "WATCH", NULL);
}

cJSON *lab_get(struct lab *l, const char *path)
{
    cleanup_free char *text = fake_get(l->server, path);
    struct err err;

    return text ? json_parse(text, strlen(text), &err) : NULL;
}

/* ---- the kubelet */

static struct lab_pod *known_pod(struct lab *l, const cJSON *meta)
{
    const char *uid = json_str(meta, "uid");
    const cJSON *labels = json_find(meta, (const char *[]){"labels", NULL});
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
    char path[160];
    char body[512];
    char state[160] = "\"running\":{}";
    char finished[CLOCK_RFC3339_BYTES];

    clock_rfc3339(wall_ms(l), false, finished);
    if (exit_code >= 0)
        snprintf(state, sizeof(state), "\"terminated\":{\"exitCode\":%d,\"finishedAt\":\"%s\"}", exit_code,
                 finished);
    snprintf(path, sizeof(path), LAB_PODS "/%s", p->name);
    snprintf(body, sizeof(body),
             "{\"spec\":{\"nodeName\":\"n0\"},\"status\":{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":"
             "\"pytorch\","
             "\"state\":{%s}}]}}",
             exit_code < 0    ? "Running"
             : exit_code == 0 ? "Succeeded"
                              : "Failed",
             state);
    assert_true(fake_put(l->server, path, body));
}

static void kubelet_pod(struct lab *l, const cJSON *object)
{
    const cJSON *meta = json_find(object, (const char *[]){"metadata", NULL});
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
    } else if (!p->ended && p->age >= RUN_ROUNDS && fate >= 0 && !(l->hold_master && p->index == 0)) {
        p->ended = true;
        set_pod(l, p, fate);
    }
}

static void kubelet(struct lab *l)
{
    struct err err;

    for (int i = fake_count(l->server, LAB_PODS) - 1; i >= 0; i--) {
        cleanup_free char *text = fake_nth(l->server, LAB_PODS, i);
        cleanup_json cJSON *object = text ? json_parse(text, strlen(text), &err) : NULL;
        if (object)
            kubelet_pod(l, object);
    }
}

void lab_turn(struct lab *l)
{
    struct err err;
    int requests = fake_log_count(l->server, NULL, NULL);

    assert_int_equal(loop_turn(l->loop, 1, &err), 0);
    l->quiet = requests == l->requests ? l->quiet + 1 : 0;
    l->requests = requests;
    if (l->quiet < QUIET_TURNS)
        return;
    fake_settle(l->server); /* else the clock would jump over a request that the server has not come to yet */
    if (fake_log_count(l->server, NULL, NULL) != l->requests)
        return;
    int works = lab_requests(l) - fake_log_count(l->server, "LIST", NULL);
    l->idle = works == l->works ? l->idle + 1 : 0;
    l->works = works;
    kubelet(l);
    l->offset_ms += JUMP_MS;
}

bool lab_settled(struct lab *l)
{
    return l->idle >= SETTLED_JUMPS;
}

void lab_until(struct lab *l, bool (*done)(struct lab *l))
{
    int turns = 0;

    while (!done(l)) {
        lab_turn(l);
        if (++turns > TURNS_MAX)
            fail_msg("it did not come to an end");
    }
}

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

static int by_name(const void *a, const void *b)
{
    const struct lab_pod *x = a;
    const struct lab_pod *y = b;
    int c = strcmp(x->name, y->name);

    return c ? c : x->attempt != y->attempt ? x->attempt - y->attempt : x->restart - y->restart;
}

void lab_pod_history(const struct lab *l, char *out, size_t size)
{
    struct lab_pod sorted[LAB_PODS_MAX];
    size_t len = 0;

    memcpy(sorted, l->pods, sizeof(sorted));
    qsort(sorted, (size_t)l->n_pods, sizeof(sorted[0]), by_name);
    out[0] = '\0';
    for (int i = 0; i < l->n_pods && len < size; i++)
        len += sorted[i].restart
                   ? (size_t)snprintf(out + len, size - len, "%s/%d.%d ", sorted[i].name, sorted[i].attempt,
                                      sorted[i].restart)
                   : (size_t)snprintf(out + len, size - len, "%s/%d ", sorted[i].name, sorted[i].attempt);
}
