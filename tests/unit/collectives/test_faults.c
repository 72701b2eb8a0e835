/* test_faults.c - peers that die, stop, leave early, never come or are not ranks of the run. */
#include "collectives/host.h"
#include "common/clock.h"
#include "ranks.h"

#include <dirent.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

/* What the survivors are in when it happens. */
enum call { IN_SMALL, IN_LARGE, IN_SHARED, IN_BROADCAST, IN_GATHER, IN_BARRIER, IN_RECV, N_CALLS };

struct fault {
    enum call call;
    int signal;
    int64_t timeout_ms;
    int exit_code; /* of the survivors */
    int victim;
};

static _Atomic int *judged; /* survivors that have their verdict, in memory of all ranks */

static int do_call(struct collectives *c, enum call call, float *x, float *shared, int64_t timeout_ms,
                   struct err *err)
{
    const size_t n = 200000;
    int rc = -1;

    switch (call) {
    case IN_SMALL:
        rc = c->all_reduce(c, x, 100, NULL, timeout_ms, err);
        break;
    case IN_LARGE:
        rc = c->all_reduce(c, x, n, NULL, timeout_ms, err);
        break;
    case IN_SHARED:
        rc = c->all_reduce(c, shared, n, NULL, timeout_ms, err);
        break;
    case IN_BROADCAST:
        rc = c->broadcast(c, x, n * sizeof(*x), c->world - 1, timeout_ms, err);
        break;
    case IN_GATHER:
        rc = c->all_gather(c, x, 1000, shared, timeout_ms, err);
        break;
    case IN_BARRIER:
        rc = c->barrier(c, timeout_ms, err);
        break;
    case IN_RECV:
        rc = c->recv(c, x, 4000, c->world - 1, timeout_ms, err);
        break;
    case N_CALLS:
        break;
    }
    return rc;
}

/* The victim goes when all have left the first round: before, they would be right to fail in it. */
static void wait_for_the_others(struct collectives *c, int victim)
{
    struct err err = {0};
    char byte = 'x';

    for (int r = 0; r < c->world && c->rank == victim; r++)
        if (r != victim)
            RANK_OK(c->recv(c, &byte, 1, r, RANKS_TIMEOUT_MS, &err));
    if (c->rank != victim)
        RANK_OK(c->send(c, &byte, 1, victim, RANKS_TIMEOUT_MS, &err));
}

/* Who left with its verdict would be another lost rank to a survivor that the machine held up. */
static void wait_for_the_verdicts(const struct collectives *c)
{
    const int64_t end_ms = clock_mono_ms() + RANKS_TIMEOUT_MS;

    ++*judged;
    while (*judged < c->world - 1 && clock_mono_ms() < end_ms)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* The last rank takes part in one round and is gone (or stopped) in the second. The verdict must come from what
 * happened and not from a clock: a death long before the deadline, a stop not before it. */
static int fault_body(struct collectives *c, void *arg)
{
    const struct fault *f = arg;
    struct err err = {0};
    static float x[200000];
    float *shared = c->shared(c, 200000, RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(shared);
    if (f->call != IN_RECV)
        RANK_CHECK(do_call(c, f->call, x, shared, RANKS_TIMEOUT_MS, &err) == 0);
    wait_for_the_others(c, f->victim);
    if (c->rank == f->victim)
        raise(f->signal);
    int64_t start = clock_mono_ms();
    RANK_CHECK(do_call(c, f->call, x, shared, f->timeout_ms, &err) < 0);
    int64_t took = clock_mono_ms() - start;
    wait_for_the_verdicts(c);
    if (f->signal == SIGKILL)
        RANK_CHECK(took < f->timeout_ms / 4);
    else if (c->world == 2)
        RANK_CHECK(took >= f->timeout_ms);
    char name[32], after[32]; /* at the deadline it may not be the only one: others may be slow */
    snprintf(name, sizeof(name), "rank %d", f->victim);
    snprintf(after, sizeof(after), ", %d", f->victim);
    if (!strstr(err.msg, name) && !strstr(err.msg, after) && strcmp(c->transport, "pods") == 0) {
        fprintf(stderr, "rank %d: expected %s to be named: %s\n", c->rank, name, err.msg);
        return RANK_FAILED;
    }
    return collectives_exit_code(&err);
}

static void survive(struct fault f, struct ranks_layout l)
{
    struct ranks r;

    judged = mmap(NULL, sizeof(*judged), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(judged, MAP_FAILED);
    ranks_start_pods(&r, &l, fault_body, &f);
    for (int i = 0; i < l.world; i++)
        if (i != f.victim)
            assert_int_equal(waitpid(r.pids[i], &r.status[i], 0), r.pids[i]);
    kill(r.pids[f.victim], SIGKILL);
    assert_int_equal(waitpid(r.pids[f.victim], &r.status[f.victim], 0), r.pids[f.victim]);
    for (int i = 0; i < l.world; i++)
        if (i != f.victim) {
            assert_true(WIFEXITED(r.status[i]));
            assert_int_equal(WEXITSTATUS(r.status[i]), f.exit_code);
        }
    assert_int_equal(munmap(judged, sizeof(*judged)), 0);
}

static void test_killed_peer(void **state)
{
    (void)state;
    for (int call = 0; call < N_CALLS; call++)
        for (int world = 2; world <= 4; world++)
            survive((struct fault){(enum call)call, SIGKILL, RANKS_TIMEOUT_MS, 140, world - 1},
                    (struct ranks_layout){.world = world});
}

static const struct ranks_layout pods[] = {
    {.world = 2, .per_pod = 1}, {.world = 4, .per_pod = 2}, {.world = 6, .per_pod = 2}};

/* A rank that waits for something else than its table, a GPU say, looks now and then. */
static int look_body(struct collectives *c, void *arg)
{
    const struct fault *f = arg;
    struct err err = {0};

    wait_for_the_others(c, f->victim);
    if (c->rank == f->victim)
        raise(f->signal);
    const int64_t deadline_ms = clock_mono_ms() + f->timeout_ms;
    while (c->look(c, "step", &err) == 0) {
        RANK_CHECK(clock_mono_ms() < deadline_ms);
        usleep(1000);
    }
    RANK_CHECK(strstr(err.msg, "step: ") == err.msg);
    return collectives_exit_code(&err);
}

static void test_killed_peer_is_seen_by_looking(void **state)
{
    const struct ranks_layout layouts[] = {{.world = 2}, {.world = 4, .per_pod = 2}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct fault f = {IN_BARRIER, SIGKILL, RANKS_TIMEOUT_MS, 140, layouts[i].world - 1};
        struct ranks r;
        ranks_start_pods(&r, &layouts[i], look_body, &f);
        ranks_wait(&r);
        for (int rank = 0; rank < f.victim; rank++)
            assert_true(WIFEXITED(r.status[rank]) && WEXITSTATUS(r.status[rank]) == f.exit_code);
    }
}

/* While all are there a look finds nothing, whatever calls lie around it. */
static int look_in_vain_body(struct collectives *c, void *arg)
{
    struct err err = {0};

    (void)arg;
    for (int i = 0; i < 20; i++) {
        RANK_OK(c->look(c, "step", &err));
        RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    }
    return 0;
}

static void test_looking_in_vain(void **state)
{
    (void)state;
    ranks_run(3, look_in_vain_body, NULL);
    ranks_run_pods(&pods[1], look_in_vain_body, NULL);
}

/* Every rank of every pod notices and names it; the loss is that of rank 0, which would inform the others. */
static void test_killed_peer_in_another_pod(void **state)
{
    (void)state;
    for (int call = 0; call < N_CALLS; call++)
        for (size_t i = 0; i < ARRAY_LEN(pods); i++) {
            const struct fault last = {(enum call)call, SIGKILL, RANKS_TIMEOUT_MS, 140, pods[i].world - 1};
            survive(last, pods[i]);
        }
    for (int call = 0; call <= IN_SHARED; call++)
        for (int victim = 0; victim < 6; victim++)
            survive((struct fault){(enum call)call, SIGKILL, RANKS_TIMEOUT_MS, 140, victim}, pods[2]);
}

static void test_stopped_peer(void **state)
{
    (void)state;
    for (int call = 0; call < N_CALLS; call++)
        survive((struct fault){(enum call)call, SIGSTOP, 300, 138, 1}, (struct ranks_layout){.world = 2});
}

static void test_stopped_peer_in_another_pod(void **state)
{
    (void)state;
    for (int call = 0; call < N_CALLS; call++)
        for (size_t i = 0; i < 2; i++)
            if (call != IN_RECV || i == 0) /* elsewhere a third one may leave first, whom nobody waits for */
                survive((struct fault){(enum call)call, SIGSTOP, 500, 138, pods[i].world - 1}, pods[i]);
    survive((struct fault){IN_BARRIER, SIGSTOP, 500, 138, 0}, pods[1]);
}

/* Killed at any moment of a stream of reductions, not only between two. arg: how many ranks have begun, shared by all. */
static int stream_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    static float x[200000];

    atomic_fetch_add((atomic_int *)arg, 1);
    for (;;)
        if (c->all_reduce(c, x, ARRAY_LEN(x), NULL, RANKS_TIMEOUT_MS, &err) < 0)
            return collectives_exit_code(&err);
}

static void test_killed_in_the_middle(void **state)
{
    atomic_int *begun = mmap(NULL, sizeof(*begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(begun, MAP_FAILED);
    for (int round = 0; round < 15; round++) {
        struct ranks r;

        *begun = 0;
        ranks_start(&r, 4, stream_body, begun);
        while (*begun < 4) /* before, they wait for it as long as they may */
            usleep(1000);
        usleep(20000 + (useconds_t)round * 700);
        kill(r.pids[round % 4], SIGKILL);
        ranks_wait(&r);
        for (int i = 0; i < 4; i++) {
            if (i == round % 4)
                assert_true(WIFSIGNALED(r.status[i]));
            else
                assert_true(WIFEXITED(r.status[i]) && WEXITSTATUS(r.status[i]) == 140);
        }
    }
    munmap(begun, sizeof(*begun));
}

static int leave_body(struct collectives *c, void *arg)
{
    struct err err = {0};

    (void)arg;
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &err) == 0);
    if (c->rank == 0)
        return 0;
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0 && err.kind == ERR_PEER &&
               strstr(err.msg, "rank 0"));
    return 0;
}

static void test_peer_that_leaves_early(void **state)
{
    (void)state;
    ranks_run(2, leave_body, NULL);
}

static void test_rank_that_never_comes(void **state)
{
    char run_id[64];
    struct err err = {0};
    struct collectives_config cfg = ranks_config(-1, 3, run_id);

    (void)state;
    cfg.rank = cfg.local_rank = 0;
    assert_null(collectives_open(&cfg, 50, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(err.msg, "rank 1"));
    assert_int_equal(collectives_exit_code(&err), 138);
    cfg.rank = cfg.local_rank = 2;
    assert_null(collectives_open(&cfg, 50, &err));
    assert_int_equal(err.kind, ERR_TIMEOUT);
    assert_non_null(strstr(err.msg, "rank 0"));
}

/* The inode of a socket that `pid` holds at descriptor `fd`, or 0. */
static unsigned long socket_inode(pid_t pid, int fd)
{
    char path[64], target[64] = "";
    unsigned long inode = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    if (readlink(path, target, sizeof(target) - 1) < 0 || sscanf(target, "socket:[%lu]", &inode) != 1)
        return 0;
    return inode;
}

/* The abstract name that process `pid` listens at; false when there is none (yet). */
static bool find_listener(pid_t pid, struct sockaddr_un *addr, socklen_t *len)
{
    char line[512];
    cleanup_fclose FILE *f = fopen("/proc/net/unix", "re");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        unsigned long inode;
        char *at = strstr(line, "@collectives-");
        if (!at || !strstr(line, " 00010000 ") || /* listening */
            sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode) != 1)
            continue;
        at[strcspn(at, "\n")] = '\0';
        for (int fd = 0; fd < 64; fd++)
            if (socket_inode(pid, fd) == inode) {
                *addr = (struct sockaddr_un){.sun_family = AF_UNIX};
                memcpy(addr->sun_path + 1, at + 1, strlen(at + 1));
                *len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(at));
                return true;
            }
    }
    return false;
}

/* Has someone connected to the abstract name? */
static bool has_client(const struct sockaddr_un *addr)
{
    char line[512];
    unsigned st;
    cleanup_fclose FILE *f = fopen("/proc/net/unix", "re");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        const char *at = strstr(line, "@collectives-");
        if (at && strncmp(at + 1, addr->sun_path + 1, strlen(addr->sun_path + 1)) == 0 &&
            sscanf(line, "%*s %*s %*s %*s %*s %x", &st) == 1 && (st == 2 || st == 3))
            return true;
    }
    return false;
}

/* Rank 2 has met rank 0 and still looks for rank 1, who never comes, when rank 0 dies. */
static void test_dead_peer_while_connecting(void **state)
{
    char run_id[64];
    struct sockaddr_un addr;
    socklen_t len;
    pid_t pids[2];
    int status;

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct collectives_config cfg = ranks_config(2 * i, 3, run_id);
        if ((pids[i] = fork()) == 0) {
            struct err err = {0};
            _exit(collectives_open(&cfg, RANKS_TIMEOUT_MS, &err) ? RANK_FAILED : collectives_exit_code(&err));
        }
    }
    while (!find_listener(pids[0], &addr, &len) || !has_client(&addr))
        sched_yield();
    kill(pids[0], SIGKILL);
    assert_int_equal(waitpid(pids[0], &status, 0), pids[0]);
    assert_int_equal(waitpid(pids[1], &status, 0), pids[1]);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 140);
}

static int open_body(struct collectives *c, void *arg)
{
    struct err err = {0};

    (void)arg;
    return c->barrier(c, RANKS_TIMEOUT_MS, &err) == 0 ? 0 : RANK_FAILED;
}

/* Unauthenticated connections reach a rank that waits: one sends garbage, one nothing at all, many only connect. The ranks meet. */
static void test_unauthenticated_while_meeting(void **state)
{
    char run_id[64];
    struct ranks r = {.world = 2};
    struct sockaddr_un addr;
    socklen_t len;
    int fds[40];

    (void)state;
    for (int rank = 0; rank < 2; rank++) {
        if ((r.pids[rank] = fork()) == 0) {
            struct err err = {0};
            struct collectives_config cfg = ranks_config(rank, 2, run_id);
            if (rank == 1)
                raise(SIGSTOP);
            struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
            int rc = c ? open_body(c, NULL) : RANK_FAILED;
            collectives_close(c);
            _exit(rc);
        }
    }
    while (!find_listener(r.pids[0], &addr, &len))
        sched_yield();
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fds[i], (struct sockaddr *)&addr, len), 0);
        if (i % 2)
            send(fds[i], "0123456789012345678901234567890123456789", 40, MSG_NOSIGNAL);
    }
    assert_int_equal(waitpid(r.pids[1], &r.status[1], WUNTRACED), r.pids[1]);
    kill(r.pids[1], SIGCONT);
    ranks_wait(&r);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    assert_int_equal(r.status[0], 0);
    assert_int_equal(r.status[1], 0);
}

static int count_fds(void)
{
    int n = 0;
    cleanup_closedir DIR *d = opendir("/proc/self/fd");

    while (d && readdir(d))
        n++;
    return n;
}

static int loop_rank(int rank, const char *run_id)
{
    int before = count_fds();

    for (int i = 0; i < 200; i++) {
        struct err err = {0};
        const struct collectives_config cfg = {.rank = rank,
                                               .world = 2,
                                               .local_rank = rank,
                                               .local_world = 2,
                                               .restart_count = i,
                                               .run_id = run_id};
        struct collectives *c = collectives_open(&cfg, RANKS_TIMEOUT_MS, &err);
        if (!c || !c->shared(c, 1000, RANKS_TIMEOUT_MS, &err)) {
            fprintf(stderr, "round %d: %s\n", i, err.msg);
            return RANK_FAILED;
        }
        collectives_close(c);
    }
    return count_fds() == before ? 0 : RANK_FAILED;
}

/* Names and shared memory live as long as a descriptor of theirs: none is left. */
static void test_200_rounds_leave_nothing(void **state)
{
    char run_id[64];
    struct ranks r = {.world = 2};

    (void)state;
    snprintf(run_id, sizeof(run_id), "loop-%d", (int)getpid());
    for (int rank = 0; rank < 2; rank++)
        if ((r.pids[rank] = fork()) == 0)
            _exit(loop_rank(rank, run_id));
    ranks_wait(&r);
    assert_int_equal(r.status[0], 0);
    assert_int_equal(r.status[1], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_peer),
        cmocka_unit_test(test_killed_peer_is_seen_by_looking),
        cmocka_unit_test(test_looking_in_vain),
        cmocka_unit_test(test_killed_peer_in_another_pod),
        cmocka_unit_test(test_stopped_peer),
        cmocka_unit_test(test_stopped_peer_in_another_pod),
        cmocka_unit_test(test_killed_in_the_middle),
        cmocka_unit_test(test_peer_that_leaves_early),
        cmocka_unit_test(test_rank_that_never_comes),
        cmocka_unit_test(test_dead_peer_while_connecting),
        cmocka_unit_test(test_unauthenticated_while_meeting),
        cmocka_unit_test(test_200_rounds_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
