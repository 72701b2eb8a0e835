/* test_host_alarm.c - the thread that wakes sleeping ranks of a host when a peer dies, and ranks without one. */
#include "collectives/pods.h"
#include "ranks.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* How the alarm of the survivors is, and when the victim is killed. */
struct notice {
    void (*lame)(struct host *h); /* the alarm cannot be had; NULL: it can */
    bool asleep;                  /* killed once both others sleep */
};

enum { HOUR_MS = 3600 * 1000, VICTIM = 1, SURVIVORS = 2 };

/* An alarm wakes a rank that would sleep for an hour; without one it looks by itself, after every slice. */
static int notice_body(struct collectives *c, void *arg)
{
    const struct notice *n = arg;
    struct host *h = ((struct pods *)c->state)->host;
    struct err err = {0};

    if (n->lame) {
        host_alarm_stop(h);
        n->lame(h);
    }
    RANK_CHECK(h->alarm.runs == !n->lame);
    h->slice_ms = n->lame ? 1 : HOUR_MS;
    RANK_OK(c->barrier(c, HOUR_MS, &err));
    if (c->rank == VICTIM) {
        while (n->asleep && atomic_load(&host_head(h)->sleepers) < SURVIVORS)
            sched_yield();
        raise(SIGKILL);
    }
    RANK_CHECK(c->barrier(c, HOUR_MS, &err) < 0);
    return collectives_exit_code(&err);
}

static void notice(struct notice n)
{
    struct ranks r;

    ranks_start(&r, 1 + SURVIVORS, notice_body, &n);
    ranks_wait(&r);
    for (int rank = 0; rank < r.world; rank++)
        if (rank != VICTIM)
            assert_true(WIFEXITED(r.status[rank]) && WEXITSTATUS(r.status[rank]) == 140);
}

static void test_killed_peer_ends_the_sleep(void **state)
{
    (void)state;
    notice((struct notice){.asleep = true});
    notice((struct notice){0});
}

/* Of the files that are open, none below 1 can be had. */
static void start_without_descriptor(struct host *h)
{
    struct rlimit old, one;

    if (getrlimit(RLIMIT_NOFILE, &old) < 0)
        _exit(RANK_FAILED);
    one = (struct rlimit){.rlim_cur = 1, .rlim_max = old.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &one) < 0)
        _exit(RANK_FAILED);
    host_alarm_start(h);
    if (h->alarm.stop >= 0 || setrlimit(RLIMIT_NOFILE, &old) < 0)
        _exit(RANK_FAILED);
}

/* A stack that no machine has room for. */
static void start_without_thread(struct host *h)
{
    pthread_attr_t attr;

    if (pthread_attr_init(&attr) || pthread_attr_setstacksize(&attr, SIZE_MAX / 4) ||
        pthread_setattr_default_np(&attr))
        _exit(RANK_FAILED);
    pthread_attr_destroy(&attr);
    host_alarm_start(h);
    if (h->alarm.stop < 0)
        _exit(RANK_FAILED);
}

static void test_killed_peer_is_noticed_without_an_alarm(void **state)
{
    (void)state;
    notice((struct notice){.lame = start_without_descriptor, .asleep = true});
    notice((struct notice){.lame = start_without_thread, .asleep = true});
}

/* Linux lets nobody poll more descriptors than it may have open: the alarm's poll then fails, at once or after the death that
 * it was to notice. */
static int deaf_body(struct collectives *c, void *arg)
{
    struct host *h = ((struct pods *)c->state)->host;
    struct err err = {0};
    struct rlimit limit;
    struct timespec end;

    (void)arg;
    RANK_CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
    limit.rlim_cur = 1;
    RANK_CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    if (c->rank == VICTIM)
        raise(SIGKILL);
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0 && err.kind == ERR_PEER);
    RANK_CHECK(h->alarm.runs && !clock_gettime(CLOCK_REALTIME, &end));
    end.tv_sec += RANKS_TIMEOUT_MS / 1000;
    RANK_CHECK(pthread_timedjoin_np(h->alarm.thread, NULL, &end) == 0);
    h->alarm.runs = false;
    return 0;
}

static void test_an_alarm_that_cannot_poll_ends(void **state)
{
    struct ranks r;

    (void)state;
    ranks_start(&r, 2, deaf_body, NULL);
    ranks_wait(&r);
    assert_int_equal(r.status[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_peer_ends_the_sleep),
        cmocka_unit_test(test_killed_peer_is_noticed_without_an_alarm),
        cmocka_unit_test(test_an_alarm_that_cannot_poll_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
