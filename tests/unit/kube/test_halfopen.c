/* test_halfopen.c - packets that are dropped silently: no reset, no ICMP. Watches and kept connections notice it, the next
 * request uses a new connection, and everything works again with the network.
 *
 * Each way to drop packets has a process and a network namespace of its own, on whose loopback a packet filter drops
 * them: for TCP that is a pulled cable, and plain http is allowed there. The timeouts are the real ones, but
 * that a watch gives up silence after a sixth of its 150 s, where only that ends it; in full (FAULTS=full, `make faults`) after
 * all of them.
 * It needs root and iptables; without, it is skipped.
 */
#include "rig.h"

#include "faults.h"
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

enum { PATIENCE_MS = 400000, WARM = 3, SOONER = 6 };

struct way;

struct lab {
    const struct way *way;
    struct rig *rig;
    struct kube_transport http;
    struct kube_cache *pods;
    unsigned watch_port; /* the client's */
    int problems;
    char problem[ERR_MSG_BYTES];
    struct rig_reply replies[WARM];
};

#define WAIT_FOR(l, condition)                                                                               \
    for (int64_t limit_ms = clock_mono_ms() + PATIENCE_MS; !(condition);)                                    \
    turn(l, limit_ms)

static void turn(struct lab *l, int64_t limit_ms)
{
    struct err err;

    if (clock_mono_ms() > limit_ms)
        fail_msg("it did not happen within %d s", PATIENCE_MS / 1000);
    if (kube_loop_turn(l->rig->loop, 100, &err) < 0)
        fail_msg("loop: %s", err.msg);
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

enum scope { EVERYTHING, THE_CONNECTIONS, THE_WATCH, THE_POOL };

/* What is dropped, and who notices. */
static const struct way {
    const char *name;
    enum scope scope; /* all but EVERYTHING: new connections are not concerned */
    bool requests, answers;
    bool large_only; /* the kernels still hear of each other */
    bool get_fails;
    const char *watch; /* what its problem says, or what it does not say after a "!"; NULL: it has none */
} WAYS[] = {
    {"a-firewall-forgot", THE_CONNECTIONS, true, true, false, true, "!no data for"},
    {"answers-on-old-ones", THE_CONNECTIONS, false, true, false, true, "!no data for"},
    {"requests-on-old-ones", THE_CONNECTIONS, true, false, false, true, "!no data for"},
    {"the-watch-alone", THE_WATCH, true, true, false, false, "!no data for"},
    {"the-pool-alone", THE_POOL, true, true, false, true, NULL},
    {"nothing-passes", EVERYTHING, true, true, false, true, "!no data for"},
    {"no-answers", EVERYTHING, false, true, false, true, "!no data for"},
    {"no-requests", EVERYTHING, true, false, false, true, "!no data for"},
    {"no-large-requests", EVERYTHING, true, false, true, true, NULL},
    {"no-large-answers", EVERYTHING, false, true, true, true, "no data for"},
};

static void drop(const struct way *way, unsigned server, unsigned client)
{
    const char *large = way->large_only ? "-m length --length 100:65535" : "";
    char at[32] = "";

    for (int side = 0; side < 2; side++) {
        const char *to = side ? "--sport" : "--dport";
        if (client)
            snprintf(at, sizeof(at), "%s %u", side ? "--dport" : "--sport", client);
        if (side ? way->answers : way->requests)
            iptables("-A INPUT -p tcp %s %u %s %s -j DROP", to, server, at, large);
    }
}

static void begin_dropping(const struct lab *l)
{
    const struct way *way = l->way;
    unsigned ports[WARM + 1];
    int n = rig_client_ports(l->rig, ports, WARM + 1);

    assert_int_equal(n, WARM + 1); /* the pool's and the watch's */
    if (way->scope == EVERYTHING)
        drop(way, rig_server_port(l->rig), 0);
    for (int i = 0; i < n && way->scope != EVERYTHING; i++)
        if (way->scope == THE_CONNECTIONS || (ports[i] == l->watch_port) == (way->scope == THE_WATCH))
            drop(way, rig_server_port(l->rig), ports[i]);
}

static void on_changed(void *ctx, const struct kube_store_entry *e)
{
    (void)ctx, (void)e;
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

static void get_pod(struct lab *l, struct rig_reply *reply)
{
    struct kube_request get = {.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"};
    struct err err;

    *reply = (struct rig_reply){0};
    if (!kube_request_start(&l->rig->api, &get, rig_on_reply, reply, &err))
        fail_msg("start: %s", err.msg);
}

/* The connection that is none of the pool's. */
static unsigned new_port(const struct lab *l, const unsigned pool[static WARM])
{
    unsigned ports[WARM + 1], sum = 0;

    assert_int_equal(rig_client_ports(l->rig, ports, WARM + 1), WARM + 1);
    for (int i = 0; i <= WARM; i++)
        sum += ports[i] - (i < WARM ? pool[i] : 0);
    return sum;
}

static struct kube_transfer *start_sooner(void *ctx, const struct kube_http_request *req,
                                          const struct kube_http_handler *handler, struct err *err)
{
    struct kube_http_request sooner = *req;

    sooner.idle_timeout_ms /= SOONER;
    return kube_transport_start(&((struct lab *)ctx)->http, &sooner, handler, err);
}

static void cancel(void *ctx, struct kube_transfer *transfer)
{
    kube_transport_cancel(&((struct lab *)ctx)->http, transfer);
}

static void hold(void *ctx, struct kube_transfer *transfer, bool held)
{
    kube_transport_hold(&((struct lab *)ctx)->http, transfer, held);
}

/* A cache that watches, and a pool of warm connections. */
static void start(struct lab *l)
{
    unsigned pool[WARM + 1];

    rig_setup((void **)&l->rig);
    l->http = l->rig->api;
    if (l->way->large_only && l->way->answers && !faults_in_full())
        l->rig->api = (struct kube_transport){start_sooner, cancel, l, NULL, hold};
    fake_put(l->rig->server, "/api/v1/namespaces/ns/pods/a", "{}");
    for (int i = 0; i < WARM; i++)
        get_pod(l, &l->replies[i]);
    WAIT_FOR(l, l->replies[0].over && l->replies[1].over && l->replies[2].over);
    assert_int_equal(rig_client_ports(l->rig, pool, WARM + 1), WARM);
    l->pods = kube_cache_new(l->rig->loop, &l->rig->api,
                             &(struct kube_cache_options){.watch = {.resource = KUBE_PODS, .seed = 1},
                                                          .ctx = l,
                                                          .changed = on_changed,
                                                          .synced = on_synced,
                                                          .problem = on_problem});
    WAIT_FOR(l, fake_open_watches(l->rig->server) == 1);
    l->watch_port = new_port(l, pool);
    assert_int_equal(l->problems, 0);
}

static enum err_kind get(struct lab *l)
{
    get_pod(l, &l->replies[0]);
    WAIT_FOR(l, l->replies[0].over);
    return l->replies[0].err.kind;
}

/* By TCP's own means, long before the watchdog that counts bookmarks would; by that one only where TCP sees nothing. */
static void check_problem(const struct lab *l)
{
    const char *want = l->way->watch;
    bool not = want && want[0] == '!';

    if (!strstr(l->problem, "GET /api/v1/pods") || (strstr(l->problem, want + not ) == NULL) != not )
        fail_msg("expected a problem of the watch%s \"%s\", got \"%s\"", not ? " without" : ":", want + not,
                 l->problem);
}

static void vanish(void **state)
{
    struct lab *l = &(struct lab){.way = *state};

    start(l);
    begin_dropping(l);
    int64_t from_ms = clock_mono_ms();
    fake_put(l->rig->server, "/api/v1/namespaces/ns/pods/news", "{}");
    assert_int_equal(get(l), l->way->get_fails ? ERR_TIMEOUT : ERR_NONE);
    int64_t get_ms = clock_mono_ms() - from_ms;
    if (l->way->watch) {
        WAIT_FOR(l, l->problems > 0);
        check_problem(l);
    }
    int64_t watch_ms = clock_mono_ms() - from_ms;
    assert_true(kube_cache_stats(l->pods).synced); /* what we know stays, old as it is */
    if (l->way->scope == EVERYTHING)
        iptables("-F INPUT");
    /* One failure was enough: this does not try the next dead connection of the pool. */
    assert_int_equal(get(l), ERR_NONE);
    WAIT_FOR(l, kube_store_get(kube_cache_store(l->pods), "ns", "news"));
    if (!l->way->watch)
        assert_int_equal(l->problems, 0);
    print_message("%s: request %lld s, watch %lld s\n", l->way->name, (long long)get_ms / 1000,
                  l->way->watch ? (long long)watch_ms / 1000 : -1);
    kube_cache_free(l->pods);
    rig_teardown((void **)&l->rig);
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

/* In a process of its own. */
static int try(const struct way *way)
{
    const struct CMUnitTest test = {way->name, vanish, NULL, NULL, (void *)(uintptr_t)way};

    if (unshare(CLONE_NEWNET) < 0)
        return skip_all("a network namespace needs root", strerror(errno));
    if (loopback_up() < 0)
        return skip_all("the namespace's loopback does not come up", strerror(errno));
    if (system("iptables -A INPUT -s 192.0.2.1 -m length --length 100:200 -j DROP && iptables -F INPUT") != 0)
        return skip_all("iptables does not work here", NULL);
    return _cmocka_run_group_tests(way->name, &test, 1, NULL, NULL);
}

int main(int argc, char **argv)
{
    enum { N = sizeof(WAYS) / sizeof(WAYS[0]) };
    pid_t pids[N] = {0};
    int cases = 0;
    int passed = 0;
    int skipped = 0;

    for (int i = 0; i < N; i++) {
        if (argc > 1 && strcmp(argv[1], WAYS[i].name) != 0)
            continue;
        fflush(stdout);
        pids[i] = fork();
        if (pids[i] == 0)
            exit(try(&WAYS[i]));
        cases += pids[i] > 0;
    }
    for (int i = 0; i < N; i++) {
        int status = -1;
        if (pids[i] > 0 && waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status)) {
            passed += WEXITSTATUS(status) == 0;
            skipped += WEXITSTATUS(status) == 77;
        }
    }
    if (cases > 0 && skipped == cases)
        return 77;
    faults_report("F6", cases, passed);
    return passed == cases && cases > 0 ? 0 : 1;
}
