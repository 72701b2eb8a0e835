/* test_group.c - some ranks as a table of their own: values, order of sums, two groups at once, disagreement, loss. */
#include "ranks.h"

#include "collectives/group.h"
#include "collectives/noted.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Every `step`-th rank from `rank % step` on: `step` groups side by side. */
static struct collectives *every(struct collectives *c, int step)
{
    int member[RANKS_MAX];
    int n = 0;
    struct err err = {0};

    for (int r = c->rank % step; r < c->world; r += step)
        member[n++] = r;
    struct collectives *g = collectives_group(c, member, n, &err);
    RANK_CHECK(g && g->world == n && member[g->rank] == c->rank);
    return g;
}

/* Numbers of very different size, so that another order of additions gives other bits. */
static double value(int rank, size_t i)
{
    uint32_t z = ((uint32_t)rank * 2654435761u) ^ ((uint32_t)i * 2246822519u + 374761393u);

    z = (z ^ (z >> 15)) * 2246822519u;
    z ^= z >> 13;
    return ((double)z / 4294967296.0 - 0.5) * (z & 1 ? 1e6 : 1e-3);
}

static const size_t sizes[] = {0, 1, 15, 17, 2049, 131073, 600001};
enum { MOST = 600001 };

static int sums_body(struct collectives *c, void *arg)
{
    const int step = *(const int *)arg;
    cleanup_collectives struct collectives *g = every(c, step);
    cleanup_free double *d = malloc(MOST * sizeof(*d));
    struct err err = {0};
    float *x = g->shared(g, MOST, RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(d && x && (uintptr_t)x % 64 == 0 && x[MOST - 1] == 0.0f);
    for (size_t k = 0; k < 2 * ARRAY_LEN(sizes); k++) {
        bool scatter = k % 2;
        size_t n = sizes[k / 2];
        size_t begin = 0;
        size_t end = n;
        uint32_t flags = 1u << c->rank;
        for (size_t i = 0; i < n; i++) {
            x[i] = (float)value(c->rank, i);
            d[i] = value(c->rank, i);
        }
        if (scatter) {
            collectives_part(n, g->rank, g->world, &begin, &end);
            RANK_OK(g->reduce_scatter(g, x, n, RANKS_TIMEOUT_MS, &err));
        } else {
            uint32_t all = 0;
            for (int r = c->rank % step; r < c->world; r += step)
                all |= 1u << r;
            RANK_CHECK(!g->all_reduce(g, x, n, &flags, RANKS_TIMEOUT_MS, &err) && flags == all);
        }
        RANK_CHECK(!g->all_reduce_f64(g, d, n, RANKS_TIMEOUT_MS, &err));
        for (size_t i = begin; i < end; i++) {
            float f = (float)value(c->rank % step, i);
            double sum = value(c->rank % step, i);
            for (int r = c->rank % step + step; r < c->world; r += step) {
                f += (float)value(r, i);
                sum += value(r, i);
            }
            RANK_CHECK(memcmp(&x[i], &f, sizeof(f)) == 0 && memcmp(&d[i], &sum, sizeof(sum)) == 0);
        }
    }
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err)); /* the other groups may still be at work */
    return 0;
}

static void sums_have_the_order_of_members(void **state)
{
    (void)state;
    for (int step = 1; step <= 3; step++) {
        ranks_run(4, sums_body, &step);
        ranks_run(8, sums_body, &step);
    }
    ranks_run(1, sums_body, &(int){1});
}

/* The same over TCP: members of one group lie in several pods. */
static void sums_between_pods(void **state)
{
    (void)state;
    for (int step = 1; step <= 3; step++)
        ranks_run_pods(&(struct ranks_layout){.world = 6, .per_pod = step}, sums_body, &step);
}

static int moves_body(struct collectives *c, void *arg)
{
    cleanup_collectives struct collectives *g = every(c, 2);
    cleanup_free uint8_t *all = malloc(400000u * RANKS_MAX);
    struct err err = {0};
    int seen = 0;

    (void)arg;
    RANK_CHECK(all);
    for (int root = 0; root < g->world; root++) {
        memset(all, c->rank, 400000);
        RANK_CHECK(!g->broadcast(g, all, 400000, root, RANKS_TIMEOUT_MS, &err));
        RANK_CHECK(all[0] == c->rank % 2 + 2 * root && all[399999] == all[0]);
    }
    memset(all, c->rank, 400000);
    RANK_CHECK(!g->all_gather(g, all, 400000, all, RANKS_TIMEOUT_MS, &err));
    for (int r = 0; r < g->world; r++)
        RANK_CHECK(all[r * 400000] == c->rank % 2 + 2 * r && all[r * 400000 + 399999] == all[r * 400000]);
    RANK_CHECK(!g->barrier(g, RANKS_TIMEOUT_MS, &err));
    if (g->rank == 0)
        RANK_CHECK(!g->send(g, &c->rank, sizeof(int), g->world - 1, RANKS_TIMEOUT_MS, &err));
    if (g->rank == g->world - 1)
        RANK_CHECK(!g->recv(g, &seen, sizeof(int), 0, RANKS_TIMEOUT_MS, &err) && seen == c->rank % 2);
    /* The parent is still whole. */
    float one = 1;
    RANK_CHECK(!c->all_reduce(c, &one, 1, NULL, RANKS_TIMEOUT_MS, &err) && one == (float)c->world);
    return 0;
}

static void bytes_move_inside_a_group(void **state)
{
    (void)state;
    ranks_run(4, moves_body, NULL);
    ranks_run(7, moves_body, NULL);
}

static int bad_arguments_body(struct collectives *c, void *arg)
{
    static const int lists[][3] = {{0, 1, 1}, {1, 0, 2}, {0, 1, 3}, {-1, 0, 1}};
    const int others[] = {(c->rank + 1) % 3};
    cleanup_collectives struct collectives *g = every(c, 1);
    struct err err = {0};
    float x = 1;

    (void)arg;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        RANK_CHECK(!collectives_group(c, lists[i], 3, &err) && err.kind == ERR_INVALID);
    RANK_CHECK(!collectives_group(c, others, 1, &err) && err.kind == ERR_INVALID);
    /* What a rank can refuse by itself leaves the group as it was. */
    RANK_CHECK(g->all_reduce(g, &x, 1, NULL, -1, &err) && err.kind == ERR_INVALID);
    RANK_CHECK(g->broadcast(g, &x, sizeof(x), 3, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
    RANK_CHECK(g->send(g, &x, sizeof(x), g->rank, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
    RANK_CHECK(!g->all_reduce(g, &x, 1, NULL, RANKS_TIMEOUT_MS, &err) && x == 3.0f);
    return 0;
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    ranks_run(3, bad_arguments_body, NULL);
}

static int disagree_body(struct collectives *c, void *arg)
{
    cleanup_collectives struct collectives *g = every(c, 1);
    float x[4] = {0};
    struct err err = {0};
    int rc = c->rank == 1 ? g->reduce_scatter(g, x, 4, RANKS_TIMEOUT_MS, &err)
                          : g->all_reduce(g, x, (size_t) * (int *)arg, NULL, RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(rc && err.kind == ERR_INVALID && strstr(err.msg, "ranks disagree: rank "));
    RANK_CHECK(g->barrier(g, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_INVALID);
    return 0;
}

static void ranks_that_disagree_are_told(void **state)
{
    (void)state;
    ranks_run(3, disagree_body, &(int){4});
    ranks_run(2, disagree_body, &(int){3});
}

/* The last member leaves in the middle of a sum. */
static int lost_body(struct collectives *c, void *arg)
{
    cleanup_collectives struct collectives *g = every(c, 1);
    cleanup_free float *x = calloc(MOST, sizeof(*x));
    struct err err = {0};

    (void)arg;
    RANK_CHECK(x && !g->barrier(g, RANKS_TIMEOUT_MS, &err));
    if (c->rank == c->world - 1)
        _exit(0);
    RANK_CHECK(g->all_reduce(g, x, MOST, NULL, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_PEER);
    RANK_CHECK(g->barrier(g, RANKS_TIMEOUT_MS, &err) && err.kind == ERR_PEER);
    return 0;
}

static void a_lost_member_ends_the_group(void **state)
{
    (void)state;
    ranks_run(2, lost_body, NULL);
    ranks_run(4, lost_body, NULL);
}

/* A rank waits in its first exchange and in each call, and says so; a group's calls are no collectives of all ranks. */
static int noted_body(struct collectives *c, void *arg)
{
    struct rank_slot *slot = c->slot;
    struct err err = {0};
    float x = 1;

    (void)arg;
    RANK_CHECK(slot && slot->begun == 1 && slot->ended == 1 && c->of_all);
    cleanup_collectives struct collectives *g = every(c, 2);
    RANK_OK(collectives_all_reduce(c, &x, 1, NULL, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(slot->begun == 2 && slot->ended == 2 && slot->signs == 0);
    RANK_OK(collectives_all_reduce(g, &x, 1, NULL, RANKS_TIMEOUT_MS, &err));
    RANK_OK(collectives_barrier(g, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(slot->begun == 2 && slot->ended == 2 && slot->signs == 2);
    RANK_OK(collectives_barrier(c, RANKS_TIMEOUT_MS, &err));
    RANK_CHECK(slot->begun == 3 && slot->ended == 3 && slot->call == RANK_CALL_NONE);
    return 0;
}

static void calls_are_noted(void **state)
{
    const struct ranks_layout pods = {.world = 4, .per_pod = 2};

    (void)state;
    ranks_run(4, noted_body, NULL);
    ranks_run_pods(&pods, noted_body, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_order_of_members), cmocka_unit_test(sums_between_pods),
        cmocka_unit_test(bytes_move_inside_a_group),      cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(ranks_that_disagree_are_told),   cmocka_unit_test(calls_are_noted),
        cmocka_unit_test(a_lost_member_ends_the_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
