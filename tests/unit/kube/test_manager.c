/* test_manager.c - a whole program in one process: it leads, serves its pages, and leaves in good order. */
#include "kube/manager.h"

#include "common/json.h"
#include "rig.h"
#include "test.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LEASE "/apis/coordination.k8s.io/v1/namespaces/sys/leases/l"
#define EVENTS "/api/v1/namespaces/ns/events"

enum { TICKS_MAX = 30000 }; /* a minute: nothing here takes ten seconds */

enum { PAGES = 40 };

struct lab {
    struct fake_apiserver *server;
    struct kube_config config;
    struct kube_manager *m;
    struct kube_reconciler *r;
    char news[600];
    struct kube_loop_timer tick;
    void (*step)(struct lab *l); /* every few milliseconds while it runs */
    struct kube_work *held;
    int stage, works, ticks;
    int port;           /* of the metrics */
    int asked, written; /* pages of metrics */
    int fd;             /* of a page's client */
    char page[32 << 10];
    size_t page_len;
};

static void tell(void *ctx, enum kube_manager_news news, const char *detail)
{
    static const char *const WORDS[] = {"started",      "",     "leads", "leads-no-more", "waits",
                                        "lease-failed", "stops"};
    struct lab *l = ctx;
    size_t len = strlen(l->news);

    if (news == KUBE_MANAGER_LISTENS) {
        assert_int_equal(sscanf(detail, "/metrics on port %d", &l->port), 1);
        return;
    }
    snprintf(l->news + len, sizeof(l->news) - len, "%s%s%s ", WORDS[news],
             news >= KUBE_MANAGER_WAITS ? ":" : "", news >= KUBE_MANAGER_WAITS ? detail : "");
}

static void own_metrics(void *ctx, struct buf *out)
{
    ((struct lab *)ctx)->written++;
    const struct prometheus_family f = {"own_works_total", "", "counter", "Works.",
                                        (uint64_t)((struct lab *)ctx)->works};

    prometheus_families(out, &f, 1);
}

static void reconcile(void *ctx, struct kube_work *w)
{
    struct lab *l = ctx;

    l->works++;
    kube_work_done(w);
}

static void hold(void *ctx, struct kube_work *w)
{
    struct lab *l = ctx;

    l->works++;
    l->held = w;
}

static void problem(void *ctx, const char *what, const struct err *err)
{
    (void)ctx, (void)what, (void)err;
}

static void on_tick(void *ctx)
{
    struct lab *l = ctx;

    kube_loop_timer_set(kube_manager_loop(l->m), &l->tick, kube_loop_now_ms(kube_manager_loop(l->m)) + 2);
    if (++l->ticks > TICKS_MAX)
        fail_msg("it did not come to an end: %s", l->news);
    l->step(l);
}

static int setup(void **ctx)
{
    struct lab *l = calloc(1, sizeof(*l));

    l->server = fake_apiserver_start();
    assert_true(fake_put(l->server, "/api/v1/namespaces/ns/pods/p", "{}"));
    rig_config(&l->config, fake_apiserver_url(l->server));
    l->tick = (struct kube_loop_timer){.fire = on_tick, .ctx = l};
    *ctx = l;
    return 0;
}

static int teardown(void **ctx)
{
    struct lab *l = *ctx;

    kube_config_release(&l->config);
    fake_apiserver_stop(l->server);
    free(l);
    return 0;
}

/* Runs until SIGTERM, which `step` sends. */
static void run(struct lab *l, const char *lease, void (*reconciler)(void *ctx, struct kube_work *w),
                void (*step)(struct lab *l))
{
    struct err err;
    cleanup_kube_manager struct kube_manager *m =
        kube_manager_new(&l->config,
                         &(struct kube_manager_options){.name = "lab",
                                                        .version = "1",
                                                        .lease = lease,
                                                        .lease_ns = "sys",
                                                        .metrics_address = "127.0.0.1:0",
                                                        .probe_address = "0",
                                                        .ctx = l,
                                                        .report = tell,
                                                        .metrics = own_metrics},
                         &err);

    assert_non_null(m);
    cleanup_kube_reconciler struct kube_reconciler *r =
        kube_reconciler_new(kube_manager_loop(m), kube_manager_transport(m),
                            &(struct kube_reconciler_options){
                                .name = "lab", .ctx = l, .reconcile = reconciler, .problem = problem});
    l->m = m;
    l->r = r;
    l->step = step;
    kube_reconciler_watch(r, &(struct kube_reconciler_source){.watch = {.resource = KUBE_PODS}});
    kube_manager_add(m, r);
    kube_loop_timer_set(kube_manager_loop(m), &l->tick, 0);
    assert_int_equal(kube_manager_run(m, &err), 0);
    kube_loop_timer_cancel(kube_manager_loop(m), &l->tick);
}

static void record(struct lab *l)
{
    kube_recorder_event(kube_manager_recorder(l->m),
                        &(struct kube_recorder_object){
                            .api_version = "v1", .kind = "Pod", .ns = "ns", .name = "p", .uid = "u"},
                        false, "Happened", "once");
}

/* Where in the log the last request of this kind stands; -1: nowhere. */
static int last_of(struct lab *l, const char *method, const char *part)
{
    struct fake_request q;
    int at = -1;

    for (int i = 0; fake_log_at(l->server, i, &q); i++)
        if (strcmp(q.method, method) == 0 && strstr(q.path, part))
            at = i;
    return at;
}

static bool lease_is_free(struct lab *l)
{
    cleanup_json cJSON *lease = fake_json(l->server, LEASE);
    const char *holder = json_str(json_child(lease, "spec"), "holderIdentity");

    return !holder || !holder[0];
}

/* Once it leads and works: an event that fails at first, then SIGTERM before its next try. */
static void stop_while_an_event_waits(struct lab *l)
{
    if (l->stage == 0 && l->works > 0) {
        record(l);
        l->stage = 1;
    } else if (l->stage == 1 && fake_faults_done(l->server) > 0) {
        l->stage = 2;
        raise(SIGTERM);
    }
}

static void test_events_go_before_the_lease(void **ctx)
{
    struct lab *l = *ctx;

    fake_plan_fault(
        l->server,
        &(struct fake_fault_plan){
            .request = 1, .method = "POST", .path_part = "/events", .fault = FAKE_STATUS, .status = 500});
    run(l, "l", reconcile, stop_while_an_event_waits);
    assert_string_equal(l->news, "started leads stops:SIGTERM leads-no-more ");
    assert_int_equal(fake_count(l->server, EVENTS), 1);
    assert_true(lease_is_free(l));
    assert_true(last_of(l, "POST", "/events") < last_of(l, "PUT", "/leases/"));
}

/* A work that ends after SIGTERM, and its event, still have their time; a second signal changes nothing. */
static void stop_while_working(struct lab *l)
{
    if (l->stage == 0 && l->held) {
        l->stage = 1;
        raise(SIGTERM);
    } else if (l->stage == 1 && strstr(l->news, "stops:SIGTERM")) {
        l->stage = 2;
        raise(SIGINT);
    } else if (l->stage == 2 && strstr(l->news, "stops:SIGINT")) {
        l->stage = 3;
        assert_false(lease_is_free(l));
        record(l);
        kube_work_done(l->held);
    }
}

static void test_work_is_finished_first(void **ctx)
{
    struct lab *l = *ctx;

    run(l, "l", hold, stop_while_working);
    assert_int_equal(l->stage, 3);
    assert_int_equal(l->works, 1);
    assert_int_equal(fake_count(l->server, EVENTS), 1);
    assert_true(lease_is_free(l));
}

/* Its time runs out: it leaves, and the lease is not given away while something may still be under way. */
static void stop_without_finishing(struct lab *l)
{
    if (l->stage == 0 && l->held) {
        l->stage = 1;
        raise(SIGTERM);
    }
}

static void test_work_that_does_not_end(void **ctx)
{
    struct lab *l = *ctx;

    run(l, "l", hold, stop_without_finishing);
    assert_false(lease_is_free(l));
}

static void stop_when_another_leads(struct lab *l)
{
    if (l->stage == 0 && strstr(l->news, "waits:") && kube_reconciler_synced(l->r)) {
        l->stage = 1;
        raise(SIGINT);
    }
}

static void test_waits_while_another_leads(void **ctx)
{
    struct lab *l = *ctx;

    assert_true(fake_put(l->server, LEASE,
                         "{\"spec\":{\"holderIdentity\":\"other\",\"leaseDurationSeconds\":15,\"renewTime\":"
                         "\"2026-01-01T00:00:00.000000Z\"}}"));
    run(l, "l", reconcile, stop_when_another_leads);
    assert_string_equal(l->news, "started waits:other stops:SIGINT ");
    assert_int_equal(l->works, 0);
    assert_false(lease_is_free(l));
}

/* ---- pages */

static int ask(int port, const char *path)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    char text[128];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(send(fd, text, (size_t)n, 0), n);
    return fd;
}

static void read_metrics(struct lab *l)
{
    if (l->stage == 0 && l->works > 0) {
        l->fd = ask(l->port, "/metrics");
        l->stage = 1;
    } else if (l->stage == 1) {
        ssize_t n = recv(l->fd, l->page + l->page_len, sizeof(l->page) - 1 - l->page_len, MSG_DONTWAIT);
        l->page_len += n > 0 ? (size_t)n : 0;
        if (n != 0)
            return;
        close(l->fd);
        l->stage = 2;
        raise(SIGTERM);
    }
}

static void test_metrics(void **ctx)
{
    static const char *const LINES[] = {
        "\nleader_election_master_status{name=\"l\"} 1\n", "\nworkqueue_adds_total{name=\"lab\"} 1\n",
        "\nreflector_lists_total{name=\"lab\",resource=\"pods\"} 2\n", "\nown_works_total 1\n"};
    struct lab *l = *ctx;

    run(l, "l", reconcile, read_metrics);
    for (size_t i = 0; i < ARRAY_LEN(LINES); i++)
        if (!strstr(l->page, LINES[i]))
            fail_msg("expected \"%s\" in:\n%s", LINES[i], l->page);
}

/* Page after page; l->asked of them in all. */
static void read_metrics_often(struct lab *l)
{
    char some[4096];

    if (l->asked == PAGES && l->fd < 0) {
        raise(SIGTERM);
    } else if (l->works > 0 && l->fd < 0) {
        l->fd = ask(l->port, "/metrics");
        l->asked++;
    } else if (l->fd >= 0 && recv(l->fd, some, sizeof(some), MSG_DONTWAIT) == 0) {
        close(l->fd);
        l->fd = -1;
    }
}

/* What visits all that is in the caches is written once a second, however often it is requested. */
static void test_metrics_cost_little(void **ctx)
{
    struct lab *l = *ctx;

    l->fd = -1;
    int64_t began_ms = clock_mono_ms();
    run(l, "l", reconcile, read_metrics_often);
    assert_int_equal(l->asked, PAGES);
    assert_in_range(l->written, 1, 1 + (clock_mono_ms() - began_ms) / 1000);
}

/* An address that cannot be listened on: nothing is left of the rest. */
static void test_bad_address(void **ctx)
{
    struct lab *l = *ctx;
    struct err err;

    assert_null(kube_manager_new(
        &l->config,
        &(struct kube_manager_options){.name = "lab", .version = "1", .probe_address = "nonsense"}, &err));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_non_null(strstr(err.msg, "nonsense"));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_events_go_before_the_lease),
        T(test_work_is_finished_first),
        T(test_work_that_does_not_end),
        T(test_waits_while_another_leads),
        T(test_metrics),
        T(test_metrics_cost_little),
        T(test_bad_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
