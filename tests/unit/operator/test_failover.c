/* test_failover.c - two processes of the real program and one lease: the leader is stopped (SIGSTOP) with a write under
 * way or just done, the other one takes over, and then the first one goes on. Nothing that it writes after its lease was
 * taken reaches the API server, and the job ends as if there had been no trouble.
 *
 * It is stopped where it waits: between the last look at the clock and the kernel's send() lie microseconds that no lease
 * can guard; what arrives late then is harmless by the versions and UIDs that it names (test_takeover).
 *
 * usage: test_failover <ptj-operator> [share of [seed]]     share 0 of 4: trials 0, 4, 8 ...
 */
#include "converge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/fsutil.h"
#include "faults.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TRIALS = 12,
    TRIALS_IN_FULL = 100,
    TICK_US = 20000,
    PATIENCE_MS = 240000,
    STOPS_MAX = 2000,
    QUIET_TICKS = 20,
};

static const char *program;
static unsigned seed = 20261121;

/* The stories, and how many writes each of them surely takes. */
static const struct {
    const char *scenario;
    int writes;
} STORIES[] = {{"success", 6}, {"killed-once", 10}};

struct trial {
    int number;
    unsigned dice;
    const struct scenario *scenario;
    int writes;
    struct lab lab; /* without operators: the server, kubelet and garbage collector */
    char dir[64];
    pid_t pids[2];
};

static int64_t now_ms(void)
{
    struct clock c = clock_system();

    return c.mono_ms(c.ctx);
}

static unsigned roll(struct trial *t, unsigned below)
{
    t->dice = t->dice * 1103515245 + 12345;
    return (t->dice >> 16) % below;
}

static void path_of(const struct trial *t, const char *name, int i, char *out, size_t size)
{
    snprintf(out, size, "%s/%s-%d", t->dir, name, i);
}

static void write_kubeconfig(const struct trial *t, int i)
{
    char path[128];
    char text[512];
    struct err err;
    int n = snprintf(
        text, sizeof(text),
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: "
        "k, user: u}\nclusters:\n- name: k\n  cluster: {server: \"%s\"}\nusers:\n- name: u\n  user: "
        "{token: operator-%d}\n",
        fake_apiserver_url(t->lab.server), i);

    path_of(t, "kubeconfig", i, path, sizeof(path));
    assert_int_equal(fs_write_atomic(path, text, (size_t)n, &err), 0);
}

static void start_operator(struct trial *t, int i)
{
    char log[128];
    char config[128];
    char flag[160];

    write_kubeconfig(t, i);
    path_of(t, "log", i, log, sizeof(log));
    path_of(t, "kubeconfig", i, config, sizeof(config));
    snprintf(flag, sizeof(flag), "--kubeconfig=%s", config);
    t->pids[i] = fork();
    assert_true(t->pids[i] >= 0);
    if (t->pids[i] == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        execl(program, "ptj-operator", flag, "--metrics-bind-address=0", "--health-probe-bind-address=0",
              "--leader-elect-namespace=sys", "--leader-elect-lease-duration=3", (char *)NULL);
        _exit(127);
    }
}

/* Which operator sent it; -1: none. */
static int sender(const struct fake_request *r)
{
    const char *who = strstr(r->authorization, "operator-");

    return who ? atoi(who + strlen("operator-")) : -1;
}

static bool takes_lease(const struct fake_request *r)
{
    return strstr(r->path, "/leases") && (strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0) &&
           r->status >= 200 && r->status < 300;
}

/* Who wrote the lease last; -1: nobody. */
static int holder(struct fake_apiserver *s)
{
    struct fake_request r;
    int who = -1;

    for (int i = 0; fake_log_at(s, i, &r); i++)
        if (takes_lease(&r))
            who = sender(&r);
    return who;
}

static bool says(const struct trial *t, int i, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    char path[128];
    struct err err;

    path_of(t, "log", i, path, sizeof(path));
    return fs_read(path, &text, &err) == 0 && strstr(buf_str(&text), want);
}

static void wait_for(struct trial *t, bool (*done)(struct trial *t), const char *what)
{
    int64_t deadline = now_ms() + PATIENCE_MS;

    while (!done(t)) {
        if (now_ms() > deadline)
            fail_msg("trial %d of seed %u: %s did not happen", t->number, seed, what);
        lab_cluster(&t->lab);
        usleep(TICK_US);
    }
}

static bool first_leads(struct trial *t)
{
    return says(t, 0, "\"leading\"");
}

static bool second_waits(struct trial *t)
{
    return says(t, 1, "waiting for the lease");
}

static bool second_leads(struct trial *t)
{
    return holder(t->lab.server) == 1;
}

static bool has_struck(struct trial *t)
{
    return fake_faults_done(t->lab.server) > 0;
}

static bool is_finished(struct trial *t)
{
    cleanup_json cJSON *job = lab_get(&t->lab, LAB_JOB);

    return json_str(json_find(job, (const char *[]){"status", NULL}), "completionTime") != NULL;
}

static bool first_waits(struct trial *t)
{
    return says(t, 0, "waiting for the lease");
}

/* Whether a stopped process was in a system call that waits. */
static bool is_waiting(pid_t pid)
{
    char path[64];
    char text[64] = "";
    long call = -1;

    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    cleanup_fclose FILE *f = fopen(path, "re");
    if (f && fgets(text, sizeof(text), f))
        call = strtol(text, NULL, 10);
    return strncmp(text, "running", 7) != 0 &&
           (call == SYS_poll || call == SYS_ppoll || call == SYS_restart_syscall);
}

static void stop_where_it_waits(struct trial *t)
{
    for (int i = 0; i < STOPS_MAX; i++) {
        int status;
        assert_int_equal(kill(t->pids[0], SIGSTOP), 0);
        assert_int_equal(waitpid(t->pids[0], &status, WUNTRACED), t->pids[0]);
        assert_true(WIFSTOPPED(status));
        if (is_waiting(t->pids[0]))
            return;
        assert_int_equal(kill(t->pids[0], SIGCONT), 0);
        usleep(50 + roll(t, 500));
    }
    fail_msg("it never waits");
}

static void end(struct trial *t, int i)
{
    int status = 0;

    assert_int_equal(kill(t->pids[i], SIGTERM), 0);
    assert_int_equal(waitpid(t->pids[i], &status, 0), t->pids[i]);
    t->pids[i] = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Every write but those of the lease was sent by who held it. Returns how many the first one made. */
static int judge_writers(struct trial *t)
{
    struct fake_request r;
    int who = -1;
    int of_first = 0;

    for (int i = 0; fake_log_at(t->lab.server, i, &r); i++) {
        if (takes_lease(&r))
            who = sender(&r);
        if (!fake_log_is_write(t->lab.server, i))
            continue;
        if (sender(&r) != who)
            fail_msg("trial %d of seed %u: operator %d sent %s %s while operator %d held the lease",
                     t->number, seed, sender(&r), r.method, r.path, who);
        of_first += who == 0;
    }
    return of_first;
}

static void trial(void **state)
{
    static const enum fake_fault WAYS[] = {FAKE_HANG_BEFORE, FAKE_HANG_AFTER, FAKE_NOTHING};
    struct trial *t = *state;
    struct fake_fault_plan plan = {.request = 1 + t->number / 6 % t->writes, .writes = true};
    struct lab *l = &t->lab;
    char ending[CONVERGE_TEXT_BYTES];
    int at;

    start_operator(t, 0);
    wait_for(t, first_leads, "leading");
    start_operator(t, 1);
    wait_for(t, second_waits, "waiting");
    plan.fault = WAYS[t->number % (int)ARRAY_LEN(WAYS)];
    fake_plan_fault(l->server, &plan);
    converge_submit(l, t->scenario);
    wait_for(t, has_struck, "the write");
    usleep(roll(t, 3000));
    stop_where_it_waits(t);
    bool led = holder(l->server) == 0; /* a machine may be too slow for so short a lease */
    wait_for(t, second_leads, "the takeover");
    fake_plan_fault(l->server, NULL);
    usleep(roll(t, 300000));
    assert_int_equal(kill(t->pids[0], SIGCONT), 0);
    wait_for(t, is_finished, "the job's end");
    wait_for(t, first_waits, "the first one's insight");
    for (int i = 0; i < QUIET_TICKS; i++) {
        lab_cluster(l);
        usleep(TICK_US);
    }
    end(t, 0);
    end(t, 1);
    int of_first = judge_writers(t);
    assert_true(of_first >= plan.request || !led);
    const char *broken = fake_broken_rule(l->server, FAKE_RULES_ALL, &at);
    if (broken)
        fail_msg("trial %d of seed %u: %s, at change %d", t->number, seed, broken, at);
    lab_ending(l, true, ending, sizeof(ending));
    assert_string_equal(ending, t->scenario->want);
    print_message("%s: stopped at write %d, %d writes by the first in all\n", t->scenario->name, plan.request,
                  of_first);
}

static int setup(void **state)
{
    struct trial *t = *state;

    t->dice = seed + (unsigned)t->number;
    snprintf(t->dir, sizeof(t->dir), "/tmp/test_failover.XXXXXX");
    assert_non_null(mkdtemp(t->dir));
    t->scenario = converge_scenario(STORIES[t->number % 2].scenario);
    t->writes = STORIES[t->number % 2].writes;
    t->lab = (struct lab){.server = fake_apiserver_start(), .script = t->scenario->script, .collects = true};
    t->lab.gang = t->scenario->replicas;
    fake_add_kind(t->lab.server, "/apis/" TRAINJOB_API_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    fake_pods_linger(t->lab.server, true);
    return 0;
}

static int teardown(void **state)
{
    struct trial *t = *state;
    char path[128];

    for (int i = 0; i < 2; i++) {
        if (t->pids[i] > 0) {
            kill(t->pids[i], SIGKILL);
            waitpid(t->pids[i], NULL, 0);
        }
        path_of(t, "log", i, path, sizeof(path));
        unlink(path);
        path_of(t, "kubeconfig", i, path, sizeof(path));
        unlink(path);
    }
    rmdir(t->dir);
    fake_apiserver_stop(t->lab.server);
    return 0;
}

int main(int argc, char **argv)
{
    static struct trial trials[TRIALS_IN_FULL];
    static struct CMUnitTest tests[TRIALS_IN_FULL];
    static char names[TRIALS_IN_FULL][32];
    int share = argc > 3 ? atoi(argv[2]) : 0;
    int of = argc > 3 ? atoi(argv[3]) : 1;
    size_t n = 0;

    if (argc < 2 || of < 1) {
        fprintf(stderr, "usage: test_failover <ptj-operator> [share of [seed]]\n");
        return 2;
    }
    program = argv[1];
    seed = argc > 4 ? (unsigned)strtoul(argv[4], NULL, 10) : seed;
    for (int i = share; i < (faults_in_full() ? TRIALS_IN_FULL : TRIALS); i += of) {
        trials[i].number = i;
        snprintf(names[n], sizeof(names[n]), "trial-%d", i);
        tests[n] = (struct CMUnitTest){names[n], trial, setup, teardown, &trials[i]};
        n++;
    }
    printf("seed %u\n", seed);
    int failed = _cmocka_run_group_tests("failover", tests, n, NULL, NULL);
    faults_report("F7", (int)n, (int)n - failed);
    return failed;
}
