/* lab.c - the operators, their surroundings and their clock in one thread. */
#include "lab.h"

#include "common/memory.h"
#include "kube/auth/config.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TURNS_MAX = 60000, QUIET_TURNS = 3, JUMP_MS = 1000, BOOKMARKS_MS = 60000 };

/* Where the clock of a lab without sockets begins: 2026-11-21. */
#define FIRST_WALL_MS INT64_C(1795219200000)

int64_t lab_wall_ms(const struct lab *l)
{
    struct clock c = clock_system();

    return (l->direct ? FIRST_WALL_MS : c.wall_ms(c.ctx)) + l->offset_ms - l->back_ms;
}

/* Over sockets time passes while the operators work: the server's runs as theirs does. */
static void set_server_time(struct lab *l)
{
    if (l->direct)
        fake_set_time(l->server, lab_wall_ms(l) + l->server_ahead_ms);
    else
        fake_set_ahead(l->server, l->offset_ms - l->back_ms + l->server_ahead_ms);
}

static int64_t wall_ms(void *ctx)
{
    return lab_wall_ms(ctx);
}

static int64_t mono_ms(void *ctx)
{
    struct lab *l = ctx;

    l->offset_ms += l->slow_ms;
    return (l->direct ? 1 : clock_mono_ms()) + l->offset_ms;
}

static int64_t cpu_us(void *ctx)
{
    struct lab *l = ctx;

    return l->used_us += l->busy_us;
}

static void on_leads(void *ctx, bool leads)
{
    struct lab_operator *o = ctx;

    kube_reconciler_lead(controller_reconciler(o->controller), leads);
}

static void on_synced(void *ctx)
{
    struct lab_operator *o = ctx;

    elector_start(o->elector);
}

static void reach_server(struct lab *l, struct lab_operator *o)
{
    struct err err;

    if (l->direct) {
        o->direct = fake_direct_new(l->server, o->loop, &l->tamper);
        o->transport = fake_direct_transport(o->direct);
    } else {
        o->http = http_new(o->loop, &l->config, "lab", &err);
        assert_non_null(o->http);
        o->transport = http_transport(o->http);
    }
}

static void elect(struct lab *l, struct lab_operator *o)
{
    struct elector_sink sink = {.ctx = o, .changed = on_leads};

    if (l->n_operators < 2)
        return;
    snprintf(o->identity, sizeof(o->identity), "operator-%d", l->started);
    o->elector = elector_new(o->loop, &o->transport,
                             &(struct lease_options){.ns = "ns",
                                                     .name = "operator",
                                                     .identity = o->identity,
                                                     .duration_ms = LEASE_DURATION_MS,
                                                     .seed = (uint64_t)l->started},
                             &sink);
    o->transport = elector_transport(o->elector);
}

static void operator_start(struct lab *l, struct lab_operator *o)
{
    struct err err;
    const struct controller_options options = {.tensorboard_image = l->no_boards ? NULL : "tb",
                                               .launcher_image = "launcher",
                                               .guards = {.isolate = !l->unguarded, .operator_ns = "ops"},
                                               .job_keys = !l->unguarded,
                                               .gangs = {l->gangs, "gangs", 0},
                                               .seed = 1,
                                               .kueue = l->kueue,
                                               .progress_url = l->progress_url};

    l->started++;
    o->loop = kube_loop_new((struct clock){wall_ms, mono_ms, mono_ms, cpu_us, l}, &err);
    assert_non_null(o->loop);
    reach_server(l, o);
    elect(l, o);
    o->recorder = kube_recorder_new(o->loop, &o->transport, "ptj-operator");
    o->controller = controller_new(o->loop, &o->transport, o->recorder, &l->log, &options);
    if (o->elector)
        kube_reconciler_await(controller_reconciler(o->controller), on_synced, o);
    else
        kube_reconciler_lead(controller_reconciler(o->controller), true);
}

static void operator_stop(struct lab_operator *o)
{
    if (!o->loop)
        return;
    controller_free(o->controller);
    kube_recorder_free(o->recorder);
    elector_free(o->elector);
    http_free(o->http);
    fake_direct_free(o->direct);
    kube_loop_free(o->loop);
    *o = (struct lab_operator){0};
}

static void start(struct lab *l, int (*script)(int attempt, int index), int n_operators)
{
    struct err err;

    l->script = script;
    l->n_operators = n_operators;
    l->log = (struct log){STDERR_FILENO, LOG_ERROR, clock_system()};
    fake_add_kind(l->server, "/apis/" TRAINJOB_GROUP "/" TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    fake_pods_linger(l->server, true);
    set_server_time(l);
    l->config =
        (struct kube_config){.server = strdup(fake_apiserver_url(l->server)), .namespace_name = strdup("ns")};
    l->config.token.bytes = (struct buf)BUF_INIT(16);
    assert_int_equal(buf_puts(&l->config.token.bytes, "token", &err), 0);
    for (int i = 0; i < n_operators; i++)
        operator_start(l, &l->operators[i]);
}

void lab_start(struct lab *l, int (*script)(int attempt, int index))
{
    *l = (struct lab){.server = fake_apiserver_start()};
    start(l, script, 1);
}

void lab_start_direct(struct lab *l, int (*script)(int attempt, int index), int n_operators)
{
    *l = (struct lab){.server = fake_apiserver_alone(), .direct = true};
    start(l, script, n_operators);
}

void lab_stop(struct lab *l)
{
    for (int i = 0; i < l->n_operators; i++)
        operator_stop(&l->operators[i]);
    kube_config_release(&l->config);
    fake_apiserver_stop(l->server);
}

struct lab *lab_begin(void **state, int (*script)(int attempt, int index))
{
    struct lab *l = *state = memory_must(malloc(sizeof(*l)));

    lab_start_direct(l, script, 1);
    return l;
}

int lab_end(void **state)
{
    lab_stop(*state);
    free(*state);
    return 0;
}

void lab_kill(struct lab *l, int i)
{
    operator_stop(&l->operators[i]);
}

void lab_restart(struct lab *l)
{
    for (int i = 0; i < l->n_operators; i++) {
        operator_stop(&l->operators[i]);
        operator_start(l, &l->operators[i]);
    }
}

void lab_crash(struct lab *l)
{
    assert_int_equal(l->n_operators, 1);
    operator_stop(&l->operators[0]);
    operator_start(l, &l->operators[0]);
}

int lab_requests(struct lab *l)
{
    return fake_log_count(l->server, NULL, NULL) - fake_log_count(l->server, "WATCH", NULL);
}

cJSON *lab_get(struct lab *l, const char *path)
{
    return fake_json(l->server, path);
}

static long activity(struct lab *l)
{
    long n = fake_log_count(l->server, NULL, NULL);

    for (int i = 0; i < l->n_operators; i++)
        if (l->operators[i].direct)
            n += (long)fake_direct_told(l->operators[i].direct);
    return n;
}

/* Over a socket of its own, which takes a moment. */
static bool asks_for_progress(const struct lab_operator *o)
{
    return o->controller && controller_counts(o->controller).polls.out > 0;
}

static bool any_asks(const struct lab *l)
{
    for (int i = 0; i < l->n_operators; i++)
        if (asks_for_progress(&l->operators[i]))
            return true;
    return false;
}

static void turn_loops(struct lab *l)
{
    struct err err;

    for (int i = 0; i < l->n_operators; i++) {
        struct lab_operator *o = &l->operators[i];
        if (o->direct)
            fake_direct_turn(o->direct);
        if (o->loop)
            assert_int_equal(kube_loop_turn(o->loop, o->direct && !asks_for_progress(o) ? 0 : 1, &err), 0);
    }
}

bool lab_turn(struct lab *l)
{
    turn_loops(l);
    long active = activity(l);
    l->quiet = active == l->requests && !any_asks(l) ? l->quiet + 1 : 0;
    l->requests = active;
    if (l->quiet < QUIET_TURNS)
        return false;
    fake_settle(l->server); /* else the clock would jump over a request that the server has not come to yet */
    if (activity(l) != l->requests)
        return false;
    int works = lab_requests(l) - fake_log_count(l->server, "LIST", NULL) -
                fake_log_count(l->server, NULL, LAB_LEASES);
    l->idle = works == l->works ? l->idle + 1 : 0;
    l->works = works;
    lab_cluster(l);
    l->offset_ms += JUMP_MS;
    set_server_time(l);
    if (l->bookmarks && l->offset_ms % BOOKMARKS_MS == 0)
        fake_bookmark(l->server);
    return true;
}

bool lab_settled(struct lab *l)
{
    return l->idle >= (l->settle_jumps ? l->settle_jumps : LAB_SETTLED_JUMPS);
}

void lab_turn_once_more(struct lab *l, int turns)
{
    if (turns > TURNS_MAX)
        fail_msg("it did not come to an end");
    lab_turn(l);
}

int64_t lab_until(struct lab *l, bool (*done)(struct lab *l))
{
    int64_t from_ms = l->offset_ms;

    LAB_UNTIL(l, done(l));
    return l->offset_ms - from_ms;
}

int64_t lab_until_status(struct lab *l, const char *key, const char *want)
{
    int64_t from_ms = l->offset_ms;

    for (int turns = 0; !lab_status_is(l, LAB_JOB, key, want); lab_turn(l))
        if (++turns > TURNS_MAX)
            fail_msg("%s does not become %s", key, want ? want : "empty");
    return l->offset_ms - from_ms;
}

void lab_put(struct lab *l, const char *path, const char *json)
{
    assert_true(fake_put(l->server, path, json));
}

void lab_put_job(struct lab *l, const char *ns, const char *name, const char *json)
{
    char path[160];

    snprintf(path, sizeof(path), "/apis/" TRAINJOB_API_VERSION "/namespaces/%s/" TRAINJOB_PLURAL "/%s", ns,
             name);
    lab_put(l, path, json);
}

void lab_run(struct lab *l, const char *job)
{
    lab_put(l, LAB_JOB, job);
    lab_until_status(l, "phase", "Running");
}

void lab_run_settled(struct lab *l, const char *job)
{
    lab_run(l, job);
    lab_until(l, lab_settled);
}

bool lab_struck(struct lab *l)
{
    return fake_faults_done(l->server) > 0;
}

struct controller_counts lab_counts(const struct lab *l)
{
    return controller_counts(l->operators[0].controller);
}

struct watches_counts lab_cached(const struct lab *l)
{
    return controller_cached(l->operators[0].controller);
}

void lab_lead(struct lab *l, bool leads)
{
    kube_reconciler_lead(controller_reconciler(l->operators[0].controller), leads);
}

void lab_pause(struct lab *l)
{
    lab_put(l, LAB_JOB, "{'spec':{'suspend':true}}");
    lab_until_status(l, "phase", "Paused");
}

void lab_resume(struct lab *l)
{
    lab_run(l, "{'spec':{'suspend':false}}");
}

void lab_pass_ms(struct lab *l, int64_t ms)
{
    int64_t until_ms = l->offset_ms + ms;

    while (l->offset_ms < until_ms)
        lab_turn(l);
}
