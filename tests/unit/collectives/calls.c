/* calls.c - every collective between real processes: values, order of sums, disagreement. */
#include "calls.h"

#include "seed.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct ranks_layout *layouts;
static size_t n_layouts;

static void run_everywhere(int (*body)(struct collectives *c, void *arg))
{
    for (size_t i = 0; i < n_layouts; i++)
        ranks_run_pods(&layouts[i], body, NULL);
}

/* Those with at least so many ranks. */
static void run_together(int least, int (*body)(struct collectives *c, void *arg), void *arg)
{
    for (size_t i = 0; i < n_layouts; i++)
        if (layouts[i].world >= least)
            ranks_run_pods(&layouts[i], body, arg);
}

/* Numbers of very different size, so that another order of additions gives other bits. */
static double value(int rank, size_t i)
{
    uint64_t z = (uint64_t)rank * 0x9e3779b97f4a7c15u + (i + 1) * 0xbf58476d1ce4e5b9u;

    z = (z ^ (z >> 30)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    double unit = (double)(z >> 11) / 9007199254740992.0 - 0.5;
    return unit * (z & 1 ? 1e6 : 1e-3);
}

static float wanted(int world, size_t i)
{
    float sum = (float)value(0, i);

    for (int r = 1; r < world; r++)
        sum += (float)value(r, i);
    return sum;
}

static void fill(float *x, size_t n, int rank)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)value(rank, i);
}

static const size_t sizes[] = {0, 1, 15, 16, 17, 2048, 2049, 4096, 4097, 93322, 131072, 131073, 300001};

static void check_sums(struct collectives *c, float *x, size_t n)
{
    struct err err = {0};
    uint32_t flags = 1u << c->rank % 32;

    fill(x, n, c->rank);
    RANK_OK(c->all_reduce(c, x, n, &flags, RANKS_TIMEOUT_MS, &err));
    if (c->world > 1)
        RANK_CHECK(flags == (c->world < 32 ? (1u << c->world) - 1 : UINT32_MAX));
    for (size_t i = 0; i < n; i++) {
        float want = wanted(c->world, i);
        RANK_CHECK(memcmp(&x[i], &want, sizeof(want)) == 0);
    }
}

static int sums_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    const size_t most = sizes[ARRAY_LEN(sizes) - 1];
    cleanup_free float *own = malloc(most * sizeof(*own));
    float *shared = c->shared(c, most, RANKS_TIMEOUT_MS, &err);

    (void)arg;
    RANK_CHECK(own && shared && (uintptr_t)shared % 64 == 0);
    for (size_t i = 0; i < most; i++)
        RANK_CHECK(shared[i] == 0.0f);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        check_sums(c, own, sizes[i]);
        check_sums(c, shared, sizes[i]);
    }
    check_sums(c, shared + 3, most - 3);
    return 0;
}

static void test_all_reduce_is_bit_equal(void **state)
{
    (void)state;
    run_everywhere(sums_body);
}

static int f64_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    static double x[70000];
    const size_t n_all[] = {0, 1, 3, 1024, 1025, ARRAY_LEN(x)};

    (void)arg;
    for (size_t k = 0; k < ARRAY_LEN(n_all); k++) {
        for (size_t i = 0; i < n_all[k]; i++)
            x[i] = value(c->rank, i);
        RANK_OK(c->all_reduce_f64(c, x, n_all[k], RANKS_TIMEOUT_MS, &err));
        for (size_t i = 0; i < n_all[k]; i++) {
            double want = value(0, i);
            for (int r = 1; r < c->world; r++)
                want += value(r, i);
            RANK_CHECK(memcmp(&x[i], &want, sizeof(want)) == 0);
        }
    }
    return 0;
}

static void test_all_reduce_f64(void **state)
{
    (void)state;
    run_everywhere(f64_body);
}

static int spread_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    enum { MOST = 3 * 512 * 1024 / 2 + 7 };
    static unsigned char x[MOST];
    cleanup_free unsigned char *all = malloc((size_t)c->world * MOST);
    const size_t lens[] = {0, 1, 4096, 512 * 1024, MOST};

    (void)arg;
    RANK_CHECK(all);
    for (size_t k = 0; k < ARRAY_LEN(lens); k++)
        for (int root = 0; root < c->world; root++) {
            memset(x, c->rank == root ? root + 1 : 0xee, sizeof(x));
            RANK_OK(c->broadcast(c, x, lens[k], root, RANKS_TIMEOUT_MS, &err));
            for (size_t i = 0; i < lens[k]; i++)
                RANK_CHECK(x[i] == root + 1);
        }
    for (size_t k = 0; k < ARRAY_LEN(lens); k++) {
        memset(x, c->rank + 1, sizeof(x));
        RANK_OK(c->all_gather(c, x, lens[k], all, RANKS_TIMEOUT_MS, &err));
        for (size_t i = 0; i < lens[k] * (size_t)c->world; i++)
            RANK_CHECK(all[i] == i / lens[k] + 1);
    }
    return 0;
}

static void test_broadcast_and_all_gather(void **state)
{
    (void)state;
    run_everywhere(spread_body);
}

/* A token of 1 MiB, over any socket buffer, goes round the ring twice; barriers in between must not mix with it. */
static int ring_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    static unsigned char x[1 << 20];
    const int next = (c->rank + 1) % c->world, last = (c->rank + c->world - 1) % c->world;

    (void)arg;
    for (int round = 0; round < 2; round++) {
        if (c->rank == 0) {
            memset(x, 5, sizeof(x));
            RANK_OK(c->send(c, x, sizeof(x), next, RANKS_TIMEOUT_MS, &err));
        }
        RANK_OK(c->recv(c, x, sizeof(x), last, RANKS_TIMEOUT_MS, &err));
        for (size_t i = 0; i < sizeof(x); i++)
            RANK_CHECK(x[i] == (c->rank == 0 ? 4 + c->world : 4 + c->rank));
        memset(x, 5 + c->rank, sizeof(x));
        if (c->rank != 0)
            RANK_OK(c->send(c, x, sizeof(x), next, RANKS_TIMEOUT_MS, &err));
        RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    }
    return 0;
}

static void test_send_and_recv(void **state)
{
    (void)state;
    run_together(2, ring_body, NULL);
}

static int disagree_body(struct collectives *c, void *arg)
{
    struct err err = {0}, again = {0};
    float x[8] = {0};
    const int kind = *(const int *)arg;
    int rc;

    if (c->rank != 1)
        rc = c->all_reduce(c, x, 8, NULL, RANKS_TIMEOUT_MS, &err);
    else if (kind == 0)
        rc = c->all_reduce(c, x, 7, NULL, RANKS_TIMEOUT_MS, &err);
    else
        rc = c->broadcast(c, x, 8, 0, RANKS_TIMEOUT_MS, &err);
    RANK_CHECK(rc < 0 && err.kind == ERR_INVALID && strstr(err.msg, "disagree"));
    RANK_CHECK(collectives_exit_code(&err) == 1);
    /* It stays broken, with the same error. */
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &again) < 0 && strcmp(again.msg, err.msg) == 0);
    return 0;
}

static void test_ranks_that_disagree(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++)
        run_together(3, disagree_body, &kind);
}

static int unequal_body(struct collectives *c, void *arg)
{
    struct err err = {0};
    char x[16] = "";

    (void)arg;
    if (c->rank == 0)
        RANK_OK(c->send(c, x, 16, 1, RANKS_TIMEOUT_MS, &err));
    else if (c->rank == 1)
        RANK_CHECK(c->recv(c, x, 8, 0, RANKS_TIMEOUT_MS, &err) < 0 && err.kind == ERR_INVALID &&
                   strstr(err.msg, "16 bytes") && strstr(err.msg, "expects 8"));
    return 0;
}

static void test_message_of_another_length(void **state)
{
    (void)state;
    run_together(2, unequal_body, NULL);
}

/* What the system refuses to one of them ends the table for all, the same way each time. */
static int no_growth_body(struct collectives *c, void *arg)
{
    const struct rlimit none = {1 << 20, 1 << 20};
    struct err err = {0}, again = {0};

    (void)arg;
    signal(SIGXFSZ, SIG_IGN);
    RANK_CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
    RANK_CHECK(!c->shared(c, 1 << 20, RANKS_TIMEOUT_MS, &err));
    /* Another pod may have got the message first, and its ranks have ended. */
    RANK_CHECK(err.kind == ERR_FATAL || (err.kind == ERR_PEER && strstr(err.msg, "failed: ")));
    RANK_CHECK(c->barrier(c, RANKS_TIMEOUT_MS, &again) < 0 && again.kind == err.kind);
    RANK_CHECK(strcmp(err.msg, again.msg) == 0);
    return 0;
}

static void test_shared_memory_that_cannot_grow(void **state)
{
    (void)state;
    for (size_t i = 0; i < n_layouts; i++) /* a rank that is alone in its pod has no file that could grow */
        if (layouts[i].world > 1 && layouts[i].per_pod != 1 && !layouts[i].before)
            ranks_run_pods(&layouts[i], no_growth_body, NULL);
}

/* Sizes that are no whole number of anything. */
static int odd_pieces_body(struct collectives *c, void *arg)
{
    const size_t floats[] = {1, 17, 1023, 4097, 70001};
    struct err err = {0};

    (void)arg;
    for (size_t k = 0; k < sizeof(floats) / sizeof(*floats); k++) {
        float *x = c->shared(c, floats[k], RANKS_TIMEOUT_MS, &err);
        RANK_CHECK(x && (uintptr_t)x % (uintptr_t)sysconf(_SC_PAGESIZE) == 0);
        for (size_t i = 0; i < floats[k]; i++)
            x[i] = (float)value(c->rank, i);
        RANK_OK(c->all_reduce(c, x, floats[k], NULL, RANKS_TIMEOUT_MS, &err));
        RANK_CHECK(x[floats[k] - 1] == wanted(c->world, floats[k] - 1));
    }
    return 0;
}

static void test_pieces_start_at_pages(void **state)
{
    (void)state;
    run_together(2, odd_pieces_body, NULL);
}

/* Sizes around every border between two ways, private and shared, from a seed that is printed. */
static int random_body(struct collectives *c, void *arg)
{
    enum { MOST = 300001 };
    struct err err = {0};
    uint64_t rnd = *(const uint64_t *)arg;
    cleanup_free float *own = malloc(MOST * sizeof(*own));
    float *shared = c->shared(c, MOST, RANKS_TIMEOUT_MS, &err);

    RANK_CHECK(own && shared);
    for (int i = 0; i < 12; i++) {
        rnd = rnd * 6364136223846793005u + 1442695040888963407u;
        const size_t n = (size_t)(rnd >> 33) % (MOST >> (rnd >> 60)), at = (size_t)(rnd >> 20) % (MOST - n);
        check_sums(c, rnd >> 59 & 1 ? shared + at : own, n);
    }
    return 0;
}

static void test_random_sizes(void **state)
{
    uint64_t seed = seed_of_run();

    (void)state;
    run_together(2, random_body, &seed);
}

int calls_body(struct collectives *c)
{
    int (*const bodies[])(struct collectives * c, void *arg) = {sums_body, f64_body, spread_body,
                                                                odd_pieces_body};
    uint64_t seed = 1;
    int kind = 0;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        if (bodies[i](c, NULL) != 0)
            return RANK_FAILED;
    if (c->world >= 2 && (random_body(c, &seed) != 0 || ring_body(c, NULL) != 0))
        return RANK_FAILED;
    return c->world >= 2 ? disagree_body(c, &kind) : 0;
}

int calls_main(const struct ranks_layout *all, size_t n)
{
    layouts = all;
    n_layouts = n;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce_is_bit_equal),
        cmocka_unit_test(test_random_sizes),
        cmocka_unit_test(test_all_reduce_f64),
        cmocka_unit_test(test_broadcast_and_all_gather),
        cmocka_unit_test(test_send_and_recv),
        cmocka_unit_test(test_ranks_that_disagree),
        cmocka_unit_test(test_message_of_another_length),
        cmocka_unit_test(test_shared_memory_that_cannot_grow),
        cmocka_unit_test(test_pieces_start_at_pages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
