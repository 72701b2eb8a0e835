/* test_named.c - the ranks that a deadline names: all that have not come, and none that has done its part. The absent ranks are
 * random, for each kind of call and each layout; all these runs run at the same time.
 */
#include "ranks.h"

#include "../patience.h"
#include "../seed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { WORLD = 6, LARGE = 300000 };

enum kind { BROADCAST, BROADCAST_LARGE, REDUCE, REDUCE_LARGE, BARRIER, GATHER, N_KINDS };

/* What a rank does when its call has ended well: it is in no call, or in a later one, or has left. */
enum after { COMPUTES, RECEIVES, MEETS, LEAVES, N_AFTER };

struct one {
    enum kind kind;
    int root, world;
    bool absent[WORLD];
    enum after after[WORLD];
    _Atomic int passed, ended; /* ranks whose call ended well, and those that are in no call any more */
    char said[WORLD][ERR_MSG_BYTES];
};

static const struct ranks_layout LAYOUTS[] = {
    {.world = 4}, {.world = 6, .per_pod = 1}, {.world = 6, .per_pod = 2}, {.world = 5, .per_pod = 2}};

enum { N_LAYOUTS = sizeof(LAYOUTS) / sizeof(*LAYOUTS), N_RUNS = N_LAYOUTS * N_KINDS };

static struct shared {
    _Atomic int ready, over;
    int64_t deadline_ms;
    struct one runs[N_RUNS];
} * all;

static void nap(void)
{
    usleep(2000);
}

static int call(struct collectives *c, const struct one *o, float *x, float *y, struct err *err)
{
    const bool large = o->kind == BROADCAST_LARGE || o->kind == REDUCE_LARGE;
    const int64_t deadline_ms = all->deadline_ms;

    switch (o->kind) {
    case BROADCAST:
    case BROADCAST_LARGE:
        return c->broadcast(c, x, large ? LARGE * sizeof(*x) : 100, o->root, deadline_ms, err);
    case REDUCE:
    case REDUCE_LARGE:
        return c->all_reduce(c, x, large ? LARGE : 100, NULL, deadline_ms, err);
    case BARRIER:
        return c->barrier(c, deadline_ms, err);
    case GATHER:
    case N_KINDS:
        break;
    }
    return c->all_gather(c, x, 1000, y, deadline_ms, err);
}

static int afterwards(struct collectives *c, struct one *o, float *x, struct err *err)
{
    int from = 0;

    while (!o->absent[from])
        from++;
    switch (o->after[c->rank]) {
    case RECEIVES:
        return c->recv(c, x, 4, from, RANKS_TIMEOUT_MS, err);
    case MEETS:
        return c->barrier(c, RANKS_TIMEOUT_MS, err);
    case COMPUTES:
    case LEAVES:
    case N_AFTER:
        break;
    }
    atomic_fetch_add(&o->ended, 1);
    return 0;
}

static int body(struct collectives *c, void *arg)
{
    struct one *o = arg;
    static float x[LARGE], y[6 * 250];
    struct err err = {0};
    int total = 0;

    for (int i = 0; i < N_RUNS; i++)
        total += all->runs[i].world;
    atomic_fetch_add(&all->ready, 1);
    while (all->ready < total)
        nap();
    int rc = o->absent[c->rank] ? 0 : call(c, o, x, y, &err);
    if (rc == 0 && !o->absent[c->rank]) {
        atomic_fetch_add(&o->passed, 1);
        rc = afterwards(c, o, x, &err);
    }
    if (rc < 0 && !all->over) { /* then others are killed */
        snprintf(o->said[c->rank], sizeof(o->said[c->rank]), "%s", err.msg);
        atomic_fetch_add(&o->ended, 1);
    }
    while (!all->over && (rc < 0 || o->absent[c->rank] || o->after[c->rank] != LEAVES))
        nap();
    return 0;
}

static uint64_t draw(uint64_t *rnd)
{
    *rnd = *rnd * 6364136223846793005u + 1442695040888963407u;
    return *rnd >> 33;
}

static void plan(struct one *o, int number, uint64_t *rnd)
{
    int n = 0;

    o->kind = (enum kind)(number % N_KINDS);
    o->world = LAYOUTS[number / N_KINDS].world;
    while (n == 0 || n == o->world) {
        n = 0;
        for (int r = 0; r < o->world; r++)
            n += o->absent[r] = draw(rnd) % 3 == 0;
    }
    for (int r = 0; r < o->world; r++)
        o->after[r] = (enum after)(draw(rnd) % N_AFTER);
    o->root = (int)(draw(rnd) % (uint64_t)o->world);
}

/* Whether all who are absent are named; others may be as well, who were late. */
static bool are_named(const struct one *o, const char *said)
{
    bool named[WORLD] = {false}, everyone = true;
    const char *at = strstr(said, "waiting for rank ");

    for (at = at ? at + strlen("waiting for rank") : NULL;
         at && at[0] && at[1] >= '0' && at[1] < '0' + o->world; at = strchr(at + 1, ' '))
        named[at[1] - '0'] = true;
    for (int r = 0; r < o->world; r++)
        everyone = everyone && (named[r] || !o->absent[r]);
    return everyone || strstr(said, "which does not answer");
}

/* Returns how many ranks reported who is missing; -1: one named another as well, who was late. */
static int count_named(const struct one *o, int number)
{
    char want[64] = "";
    int n = 0, said = 0;
    bool left = false; /* then no later call can end well */

    for (int r = 0; r < o->world; r++)
        left = left || (!o->absent[r] && o->after[r] == LEAVES);
    for (int r = 0; r < o->world; r++)
        if (o->absent[r])
            snprintf(want + strlen(want), sizeof(want) - strlen(want), "%s%d",
                     n++ ? ", " : "deadline passed while waiting for rank ", r);
    for (int r = 0; r < o->world; r++) {
        const char *at = strstr(o->said[r], "deadline passed");
        const bool unknown =
            !o->absent[0] && o->after[0] == LEAVES && strstr(o->said[r], "; rank 0 has left");
        said += o->said[r][0] != 0;
        if (o->said[r][0] && !unknown &&
            (at ? strcmp(at, want) != 0 : !left || !strstr(o->said[r], " went away"))) {
            print_message("run %d, kind %d, root %d: rank %d says \"%s\", expected \"%s\"\n", number,
                          (int)o->kind, o->root, r, o->said[r], want);
            assert_true(at && are_named(o, at));
            return -1;
        }
    }
    return said;
}

/* False: a rank was so late that it was missing, too. */
static bool only_who_is_missing_is_named(int64_t deadline_ms)
{
    struct ranks r[N_RUNS];
    uint64_t rnd = seed_of_run();
    int said = 0;

    all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    all->deadline_ms = deadline_ms;
    for (int i = 0; i < N_RUNS; i++)
        plan(&all->runs[i], i, &rnd);
    for (int i = 0; i < N_RUNS; i++)
        ranks_start_pods(&r[i], &LAYOUTS[i / N_KINDS], body, &all->runs[i]);
    for (int i = 0; i < N_RUNS; i++) {
        const struct one *o = &all->runs[i];
        int present = o->world;
        for (int k = 0; k < o->world; k++)
            present -= o->absent[k];
        while (o->passed < present && o->ended < present)
            nap();
    }
    all->over = 1;
    for (int i = 0; i < N_RUNS; i++) {
        for (int k = 0; k < r[i].world; k++)
            kill(r[i].pids[k], SIGKILL);
        ranks_wait(&r[i]);
    }
    for (int i = 0; i < N_RUNS && said >= 0; i++) {
        const int n = count_named(&all->runs[i], i);
        said = n < 0 ? n : said + n;
    }
    munmap(all, sizeof(*all));
    assert_true(said < 0 || said > N_RUNS);
    return said > 0;
}

static void test_only_who_is_missing_is_named(void **state)
{
    int64_t deadline_ms = 3000;

    (void)state;
    while (!only_who_is_missing_is_named(deadline_ms))
        deadline_ms = patience_grow(deadline_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_only_who_is_missing_is_named)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
