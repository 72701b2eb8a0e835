/* test_halfopen.c - packets that vanish without a word: no reset, no ICMP, only silence. Watches and kept connections
 * notice, the next request goes over a new connection, and all is well once the network is.
 *
 * In a network namespace of its own, on whose loopback a packet filter drops what it is told to: for TCP that is a pulled
 * cable, and plain http is allowed there. The kernel's timers are the real ones (30 to 45 s), so this test sleeps for a
 * minute and a half. It needs root and iptables; without, it is skipped.
 */
#include "rig.h"

#include "kube/cache.h"
#include "test.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 240000, WARM = 3 };

struct lab {
    struct rig *rig;
    struct cache *pods;
    int problems;
    char problem[ERR_MSG_BYTES];
    struct rig_reply replies[WARM];
};

static void wait_for(struct lab *l, bool (*done)(const struct lab *l))
{
    struct clock clock = clock_system();
    int64_t deadline = clock.mono_ms(clock.ctx) + PATIENCE_MS;
    struct err err;

    while (!done(l)) {
        if (clock.mono_ms(clock.ctx) > deadline)
            fail_msg("it did not happen within %d s", PATIENCE_MS / 1000);
        if (loop_turn(l->rig->loop, 100, &err) < 0)
            fail_msg("loop: %s", err.msg);
    }
}

static void iptables(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void iptables(const char *format, ...)
{
    char command[200] = "iptables ";
    va_list args;

    va_start(args, format);
    vsnprintf(command + 9, sizeof(command) - 9, format, args);
    va_end(args);
    if (system(command) != 0)
        fail_msg("failed: %s", command);
}

/* From now on nothing passes on the connections that there are; new ones are not concerned. */
static void black_hole_connections(const struct rig *r)
{
    unsigned port = (unsigned)atoi(strrchr(fake_apiserver_url(r->server), ':') + 1);
    FILE *f = fopen("/proc/self/net/tcp", "re");
    char line[256];
    int n = 0;

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned local, remote, state;
        if (sscanf(line, " %*d: %*x:%x %*x:%x %x", &local, &remote, &state) != 3 || remote != port ||
            state != 1)
            continue;
        iptables("-A INPUT -p tcp --sport %u -j DROP", local);
        iptables("-A INPUT -p tcp --dport %u -j DROP", local);
        n++;
    }
    fclose(f);
    assert_int_equal(n, WARM + 1); /* the pool's and the watch's */
}

static void on_changed(void *ctx, const struct store_entry *e)
{
    (void)ctx;
    (void)e;
}

static void on_synced(void *ctx)
{
    (void)ctx;
}

static void on_problem(void *ctx, const struct err *err)
{
    struct lab *l = ctx;

    if (!l->problems++)
        snprintf(l->problem, sizeof(l->problem), "%s", err->msg);
}

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct rig_reply *out = ctx;

    out->over = true;
    if (reply->err)
        out->err = *reply->err;
}

static void get_pod(struct lab *l, struct rig_reply *reply)
{
    struct kube_request get = {.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"};
    struct err err;

    *reply = (struct rig_reply){0};
    if (!kube_call_start(&l->rig->api, &get, on_reply, reply, &err))
        fail_msg("start: %s", err.msg);
}

static bool first_is_over(const struct lab *l)
{
    return l->replies[0].over;
}

static bool all_are_over(const struct lab *l)
{
    return l->replies[0].over && l->replies[1].over && l->replies[2].over;
}

static bool is_synced(const struct lab *l)
{
    return cache_stats(l->pods).synced;
}

static bool has_a_problem(const struct lab *l)
{
    return l->problems > 0;
}

static bool has_news(const struct lab *l)
{
    return store_get(cache_store(l->pods), "ns", "news") != NULL;
}

/* A cache that watches, and a pool of warm connections. */
static int setup(void **ctx)
{
    struct lab *l = calloc(1, sizeof(*l));

    rig_setup((void **)&l->rig);
    fake_put(l->rig->server, "/api/v1/namespaces/ns/pods/a", "{}");
    l->pods = cache_new(l->rig->loop, &l->rig->api,
                        &(struct cache_options){.watch = {.resource = KUBE_PODS, .seed = 1},
                                                .ctx = l,
                                                .changed = on_changed,
                                                .synced = on_synced,
                                                .problem = on_problem});
    wait_for(l, is_synced);
    for (int i = 0; i < WARM; i++)
        get_pod(l, &l->replies[i]);
    wait_for(l, all_are_over);
    assert_int_equal(l->problems, 0);
    *ctx = l;
    return 0;
}

static int teardown(void **ctx)
{
    struct lab *l = *ctx;

    iptables("-F INPUT");
    cache_free(l->pods);
    rig_teardown((void **)&l->rig);
    free(l);
    return 0;
}

/* By TCP's own means, long before the watchdog that counts bookmarks would. */
static void assert_the_watch_noticed(const struct lab *l)
{
    if (!strstr(l->problem, "GET /api/v1/pods") || strstr(l->problem, "no byte for"))
        fail_msg("expected an error of the connection, got \"%s\"", l->problem);
}

/* A firewall forgot our connections. */
static void test_old_connections_are_dead_new_ones_work(void **ctx)
{
    struct lab *l = *ctx;

    black_hole_connections(l->rig);
    fake_put(l->rig->server, "/api/v1/namespaces/ns/pods/news", "{}");
    get_pod(l, &l->replies[0]);
    wait_for(l, first_is_over);
    assert_int_equal(l->replies[0].err.kind, ERR_TIMEOUT);
    /* One is enough: this one does not try the next dead connection of the pool. */
    int before = fake_connections(l->rig->server);
    get_pod(l, &l->replies[0]);
    wait_for(l, first_is_over);
    assert_int_equal(l->replies[0].err.kind, ERR_NONE);
    assert_true(fake_connections(l->rig->server) > before);
    wait_for(l, has_news);
    assert_the_watch_noticed(l);
    assert_int_equal(l->problems, 1);
}

/* The whole network is gone for a while. */
static void test_nothing_passes_then_all_does(void **ctx)
{
    struct lab *l = *ctx;

    iptables("-A INPUT -j DROP");
    fake_put(l->rig->server, "/api/v1/namespaces/ns/pods/news", "{}");
    get_pod(l, &l->replies[0]);
    wait_for(l, first_is_over);
    assert_int_equal(l->replies[0].err.kind, ERR_TIMEOUT);
    wait_for(l, has_a_problem);
    assert_the_watch_noticed(l);
    assert_false(has_news(l));
    assert_true(is_synced(l)); /* what we know stays, old as it is */
    iptables("-F INPUT");
    get_pod(l, &l->replies[0]);
    wait_for(l, first_is_over);
    assert_int_equal(l->replies[0].err.kind, ERR_NONE);
    wait_for(l, has_news);
}

static int skip_all(const char *why, const char *more)
{
    printf("skipped: %s%s%s\n", why, more ? ": " : "", more ? more : "");
    return 77;
}

static int loopback_up(void)
{
    struct ifreq ifr = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int rc = fd < 0 ? -1 : ioctl(fd, SIOCSIFFLAGS, &ifr);

    if (fd >= 0)
        close(fd);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_old_connections_are_dead_new_ones_work, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nothing_passes_then_all_does, setup, teardown),
    };

    if (unshare(CLONE_NEWNET) < 0)
        return skip_all("a network namespace needs root", strerror(errno));
    if (loopback_up() < 0)
        return skip_all("the namespace's loopback does not come up", strerror(errno));
    if (system("iptables -A INPUT -s 192.0.2.1 -j DROP && iptables -F INPUT") != 0)
        return skip_all("iptables does not work here", NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
