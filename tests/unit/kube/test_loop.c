/* test_loop.c - timers in order, tasks once, descriptors and signals, and nothing runs inside anything else. */
#include "kube/loop.h"

#include "test.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A clock that the test moves. */
static int64_t fake_now;

static int64_t read_fake(void *ctx)
{
    (void)ctx;
    return fake_now;
}

static struct kube_loop *fake_loop(void)
{
    struct err err;
    struct kube_loop *l = kube_loop_new((struct clock){read_fake, read_fake, read_fake, NULL, NULL}, &err);

    assert_non_null(l);
    return l;
}

static void turn(struct kube_loop *l)
{
    struct err err;

    assert_int_equal(kube_loop_turn(l, 0, &err), 0);
}

static char seen[200];

struct mark {
    struct kube_loop_timer timer;
    struct kube_loop_task task;
    struct kube_loop *loop;
    struct mark *other;
    char name[4];
    bool again;
};

static void fire(void *ctx)
{
    struct mark *m = ctx;

    strcat(seen, m->name);
    if (m->other)
        kube_loop_timer_cancel(m->loop, &m->other->timer);
    if (m->again)
        kube_loop_timer_set(m->loop, &m->timer, 0);
}

static void run(void *ctx)
{
    struct mark *m = ctx;

    strcat(seen, m->name);
    if (m->other)
        kube_loop_task_cancel(m->loop, &m->other->task);
    if (m->again)
        kube_loop_task_add(m->loop, &m->task);
}

static struct mark mark(struct kube_loop *l, const char *name)
{
    struct mark m = {.loop = l};

    snprintf(m.name, sizeof(m.name), "%s", name);
    return m;
}

static void arm(struct mark *m, int64_t at)
{
    m->timer = (struct kube_loop_timer){.fire = fire, .ctx = m};
    kube_loop_timer_set(m->loop, &m->timer, at);
}

static void test_timers(void **ctx)
{
    cleanup_kube_loop struct kube_loop *l = fake_loop();
    struct mark a = mark(l, "a"), b = mark(l, "b"), c = mark(l, "c"), d = mark(l, "d"), e = mark(l, "e");

    (void)ctx;
    seen[0] = '\0';
    fake_now = 1000;
    arm(&a, 1030);
    arm(&b, 1010);
    arm(&c, 1020);
    arm(&d, 1020); /* equal times: in the order they were set */
    arm(&e, 1040);
    kube_loop_timer_set(l, &e.timer, 1005); /* moved */
    turn(l);
    assert_string_equal(seen, "");
    fake_now = 1020;
    turn(l);
    assert_string_equal(seen, "ebcd");
    assert_false(kube_loop_timer_is_set(&c.timer));
    kube_loop_timer_cancel(l, &a.timer);
    kube_loop_timer_cancel(l, &a.timer);
    fake_now = 5000;
    turn(l);
    assert_string_equal(seen, "ebcd");
}

static void test_timer_that_cancels_or_sets_itself(void **ctx)
{
    cleanup_kube_loop struct kube_loop *l = fake_loop();
    struct mark a = mark(l, "a"), b = mark(l, "b"), c = mark(l, "c");

    (void)ctx;
    seen[0] = '\0';
    fake_now = 100;
    a.other = &b;
    c.again = true;
    arm(&a, 1);
    arm(&b, 2);
    arm(&c, 3);
    turn(l);
    assert_string_equal(seen, "ac"); /* due again at once, but not in this turn */
    turn(l);
    assert_string_equal(seen, "acc");
    kube_loop_timer_cancel(l, &c.timer);
}

static void test_tasks(void **ctx)
{
    cleanup_kube_loop struct kube_loop *l = fake_loop();
    struct mark a = mark(l, "a"), b = mark(l, "b"), c = mark(l, "c"), d = mark(l, "d");
    struct mark *all[] = {&a, &b, &c, &d};

    (void)ctx;
    seen[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        all[i]->task = (struct kube_loop_task){.run = run, .ctx = all[i]};
    b.other = &c;
    d.again = true;
    kube_loop_task_add(l, &a.task);
    kube_loop_task_add(l, &b.task);
    kube_loop_task_add(l, &a.task);
    kube_loop_task_add(l, &c.task);
    kube_loop_task_add(l, &d.task);
    turn(l);
    assert_string_equal(seen, "abd");
    turn(l);
    assert_string_equal(seen, "abdd");
    kube_loop_task_cancel(l, &d.task);
    kube_loop_task_add(l, &a.task); /* the list is whole after the cancel of its last */
    turn(l);
    assert_string_equal(seen, "abdda");
}

/* What the first that is ready does: give each another owner, or let the others wait for nothing. */
enum { REPLACE, SILENCE };

struct crowd {
    struct kube_loop *loop;
    struct crowd_end {
        struct kube_loop_fd fd, next; /* next: of the same number, added by a callback */
        struct crowd *crowd;
        int n, n_next;
    } ends[5];
    int how;
};

static void on_next(void *ctx, short revents)
{
    ((struct crowd_end *)ctx)->n_next++;
    (void)revents;
}

static void on_crowd(void *ctx, short revents)
{
    struct crowd_end *e = ctx;
    struct err err;

    assert_true(revents & POLLIN);
    e->n++;
    for (size_t i = 0; i < ARRAY_LEN(e->crowd->ends); i++) {
        struct crowd_end *o = &e->crowd->ends[i];
        if (e->crowd->how == SILENCE && o != e)
            o->fd.events = 0;
        if (e->crowd->how == SILENCE || o->next.slot)
            continue;
        kube_loop_fd_remove(e->crowd->loop, &o->fd);
        o->next = (struct kube_loop_fd){.ready = on_next, .ctx = o, .fd = o->fd.fd, .events = POLLIN};
        assert_int_equal(kube_loop_fd_add(e->crowd->loop, &o->next, &err), 0);
    }
}

/* All are ready at once: the first that has its turn ends it for all others, and who comes in their place waits for a turn of
 * the loop. */
static void test_descriptors_that_change_under_way(void **ctx)
{
    (void)ctx;
    for (int how = REPLACE; how <= SILENCE; how++) {
        cleanup_kube_loop struct kube_loop *l = fake_loop();
        struct crowd c = {.loop = l, .how = how};
        int pipes[ARRAY_LEN(c.ends)][2];
        struct err err;
        int n = 0;
        int n_next = 0;

        for (size_t i = 0; i < ARRAY_LEN(c.ends); i++) {
            struct crowd_end *e = &c.ends[i];
            assert_int_equal(pipe(pipes[i]), 0);
            assert_int_equal(write(pipes[i][1], "x", 1), 1);
            e->crowd = &c;
            e->fd = (struct kube_loop_fd){.ready = on_crowd, .ctx = e, .fd = pipes[i][0], .events = POLLIN};
            assert_int_equal(kube_loop_fd_add(l, &e->fd, &err), 0);
        }
        turn(l);
        for (size_t i = 0; i < ARRAY_LEN(c.ends); i++) {
            n += c.ends[i].n;
            n_next += c.ends[i].n_next;
        }
        assert_int_equal(n, 1);
        assert_int_equal(n_next, 0);
        if (how == REPLACE)
            turn(l);
        for (size_t i = 0; i < ARRAY_LEN(c.ends); i++) {
            n_next += c.ends[i].n_next;
            kube_loop_fd_remove(l, &c.ends[i].fd);
            kube_loop_fd_remove(l, &c.ends[i].next);
            close(pipes[i][0]);
            close(pipes[i][1]);
        }
        assert_int_equal(n_next, how == REPLACE ? (int)ARRAY_LEN(c.ends) : 0);
    }
}

static void on_error(void *ctx, short revents)
{
    assert_int_not_equal(revents, 0);
    ++*(int *)ctx;
}

/* Who waits for nothing hears of an error all the same: the reader of a pipe that is gone. */
static void test_an_error_that_nobody_asked_for(void **ctx)
{
    cleanup_kube_loop struct kube_loop *l = fake_loop();
    int n = 0, ends[2];
    struct kube_loop_fd f = {.ready = on_error, .ctx = &n};
    struct err err;

    (void)ctx;
    assert_int_equal(pipe(ends), 0);
    f.fd = ends[1];
    assert_int_equal(kube_loop_fd_add(l, &f, &err), 0);
    turn(l);
    assert_int_equal(n, 0);
    close(ends[0]);
    turn(l);
    assert_int_equal(n, 1);
    kube_loop_fd_remove(l, &f);
    close(ends[1]);
}

static void test_too_many_descriptors_is_an_error(void **ctx)
{
    cleanup_kube_loop struct kube_loop *l = fake_loop();
    struct kube_loop_fd fds[200] = {0};
    struct err err = {0};
    size_t n = 0;

    (void)ctx;
    while (n < ARRAY_LEN(fds) && kube_loop_fd_add(l, &fds[n], &err) == 0)
        n++;
    assert_in_range(n, 1, ARRAY_LEN(fds) - 1);
    assert_int_equal(err.kind, ERR_FATAL);
    for (size_t i = 0; i < n; i++)
        kube_loop_fd_remove(l, &fds[i]);
}

static int signals[8];
static int n_signals;

static void on_signal(void *ctx, int signal)
{
    signals[n_signals++] = signal;
    kube_loop_stop(ctx);
}

static void test_signals_stop_the_loop(void **ctx)
{
    struct err err;
    cleanup_kube_loop struct kube_loop *l = kube_loop_new(clock_system(), &err);

    (void)ctx;
    assert_int_equal(kube_loop_signals(l, (const int[]){SIGUSR1, SIGTERM}, 2, on_signal, l, &err), 0);
    raise(SIGUSR1);
    raise(SIGTERM);
    assert_int_equal(kube_loop_run(l, &err), 0);
    assert_int_equal(n_signals, 2);
    assert_int_equal(signals[0] + signals[1], SIGUSR1 + SIGTERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timers),
        cmocka_unit_test(test_timer_that_cancels_or_sets_itself),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_descriptors_that_change_under_way),
        cmocka_unit_test(test_an_error_that_nobody_asked_for),
        cmocka_unit_test(test_too_many_descriptors_is_an_error),
        cmocka_unit_test(test_signals_stop_the_loop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
