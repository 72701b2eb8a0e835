/* test_store.c - what was put is found, by name and by group, and a sweep takes exactly the unseen. */
#include "kube/store.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int freed;

static void count_free(void *value)
{
    freed++;
    free(value);
}

static int group_size(const struct kube_store *s, const char *group)
{
    int n = 0;

    for (const struct kube_store_entry *e = kube_store_group(s, group); e; e = kube_store_group_next(e)) {
        assert_string_equal(e->group, group);
        n++;
    }
    return n;
}

static int total(const struct kube_store *s)
{
    int n = 0;

    for (const struct kube_store_entry *e = kube_store_first(s); e; e = kube_store_next(s, e))
        n++;
    return n;
}

static void test_put_get_remove(void **ctx)
{
    struct kube_store *s = kube_store_new(count_free);

    (void)ctx;
    freed = 0;
    assert_null(kube_store_get(s, "a", "x"));
    assert_null(kube_store_group(s, "g"));
    assert_null(kube_store_first(s));
    assert_false(kube_store_remove(s, "a", "x"));
    kube_store_put(s, "a", "x", "u1", "g", strdup("one"));
    kube_store_put(s, "b", "x", "u2", "g", strdup("two"));
    kube_store_put(s, NULL, "x", NULL, NULL, strdup("three"));
    assert_string_equal(kube_store_get(s, "a", "x")->value, "one");
    assert_string_equal(kube_store_get(s, "", "x")->value, "three");
    assert_string_equal(kube_store_get(s, "b", "x")->uid, "u2");
    assert_int_equal(group_size(s, "g"), 2);
    assert_int_equal(group_size(s, ""), 0);

    /* replaced: another object under the same name, in another group */
    kube_store_put(s, "a", "x", "u9", "h", strdup("nine"));
    assert_int_equal(freed, 1);
    assert_int_equal(kube_store_count(s), 3);
    assert_int_equal(group_size(s, "g"), 1);
    assert_int_equal(group_size(s, "h"), 1);
    assert_true(kube_store_remove(s, "a", "x"));
    assert_int_equal(group_size(s, "h"), 0);
    assert_int_equal(freed, 2);
    kube_store_free(s);
    assert_int_equal(freed, 4);
}

static void test_put_with_its_own_strings(void **ctx)
{
    struct kube_store *s = kube_store_new(NULL);
    const struct kube_store_entry *e = kube_store_put(s, "ns", "name", "uid", "group", NULL);

    (void)ctx;
    e = kube_store_put(s, e->ns, e->name, e->uid, e->group, NULL);
    assert_string_equal(e->name, "name");
    assert_int_equal(group_size(s, "group"), 1);
    kube_store_free(s);
}

static void note_gone(void *ctx, const struct kube_store_entry *e)
{
    strcat(ctx, e->name);
}

static void test_sweep(void **ctx)
{
    struct kube_store *s = kube_store_new(NULL);
    char gone[32] = "";

    (void)ctx;
    kube_store_put(s, "n", "a", "1", "g", NULL);
    kube_store_put(s, "n", "b", "2", "g", NULL);
    kube_store_put(s, "n", "c", "3", "g", NULL);
    kube_store_mark(s);
    assert_int_equal(kube_store_count(s), 3); /* until the sweep nothing is gone */
    kube_store_put(s, "n", "a", "1", "g", NULL);
    kube_store_put(s, "n", "c", "4", "g", NULL);
    kube_store_put(s, "n", "d", "5", "g", NULL);
    assert_int_equal(kube_store_sweep(s, note_gone, gone), 1);
    assert_string_equal(gone, "b");
    assert_int_equal(group_size(s, "g"), 3);
    assert_int_equal(kube_store_sweep(s, NULL, NULL), 0);
    kube_store_mark(s);
    assert_int_equal(kube_store_sweep(s, NULL, NULL), 3);
    assert_int_equal(total(s), 0);
    kube_store_free(s);
}

/* Against a plain array: 300 names, 7 groups, 20000 steps. */
enum { NAMES = 300, GROUPS = 7 };

static void test_random_against_a_model(void **ctx)
{
    struct kube_store *s = kube_store_new(NULL);
    int group_of[NAMES];
    int in_group[GROUPS] = {0};
    int n = 0;
    uint32_t seed = 7;
    char name[16];
    char group[16];

    (void)ctx;
    memset(group_of, -1, sizeof(group_of));
    for (int step = 0; step < 20000; step++) {
        seed = seed * 1664525U + 1013904223U;
        int k = (int)((seed >> 8) % NAMES);
        int g = (int)((seed >> 20) % GROUPS);
        snprintf(name, sizeof(name), "n%d", k);
        snprintf(group, sizeof(group), "g%d", g);
        bool had = group_of[k] >= 0;
        if (had)
            in_group[group_of[k]]--;
        if (seed >> 31) {
            kube_store_put(s, "ns", name, "u", group, NULL);
            group_of[k] = g;
            in_group[g]++;
            n += had ? 0 : 1;
        } else {
            assert_int_equal(kube_store_remove(s, "ns", name), had);
            group_of[k] = -1;
            n -= had ? 1 : 0;
        }
        assert_int_equal(kube_store_count(s), n);
        if (step % 100)
            continue;
        assert_int_equal(total(s), n);
        for (int i = 0; i < GROUPS; i++) {
            snprintf(group, sizeof(group), "g%d", i);
            assert_int_equal(group_size(s, group), in_group[i]);
        }
    }
    kube_store_free(s);
}

/* A value that has its names in itself: the entry shows those, and no copy of them. */
struct named {
    char ns[4], name[4], uid[4], group[4];
};

static struct kube_store_entry view_of(const char *uid, const char *group)
{
    struct named *v = calloc(1, sizeof(*v));

    assert_non_null(v);
    snprintf(v->ns, sizeof(v->ns), "n");
    snprintf(v->name, sizeof(v->name), "x");
    snprintf(v->uid, sizeof(v->uid), "%s", uid);
    snprintf(v->group, sizeof(v->group), "%s", group);
    return (struct kube_store_entry){v->ns, v->name, v->uid, v->group, v};
}

static void test_views(void **ctx)
{
    struct kube_store *s = kube_store_new(count_free);
    struct kube_store_entry first = view_of("1", "g");
    struct kube_store_entry second = view_of("2", "h");

    (void)ctx;
    freed = 0;
    assert_ptr_equal(kube_store_put_view(s, &first)->name, first.name);
    assert_ptr_equal(kube_store_group(s, "g")->value, first.value);
    kube_store_put_view(s, &second); /* the names of the first go with it */
    assert_int_equal(freed, 1);
    assert_null(kube_store_group(s, "g"));
    assert_ptr_equal(kube_store_get(s, "n", "x")->uid, second.uid);
    assert_int_equal(kube_store_count(s), 1);
    assert_true(kube_store_remove(s, second.ns, second.name));
    assert_int_equal(freed, 2);
    kube_store_free(s);
}

static size_t hundred(const void *value)
{
    assert_non_null(value);
    return 100;
}

static void test_bytes(void **ctx)
{
    struct kube_store *s = kube_store_new(free);
    size_t empty = kube_store_bytes(s, NULL);

    (void)ctx;
    assert_true(empty > 0);
    kube_store_put(s, "n", "a", "u", "g", strdup("value"));
    size_t one = kube_store_bytes(s, NULL);
    assert_true(one > empty + 16 * sizeof(void *) * 2); /* the tables */
    assert_int_equal(kube_store_bytes(s, hundred), one + 100);
    kube_store_put(s, "n", "b", "u", "g", NULL);
    assert_true(kube_store_bytes(s, NULL) > one);
    assert_int_equal(kube_store_bytes(s, hundred), kube_store_bytes(s, NULL) + 100);
    kube_store_free(s);
}

/* Either text of a pair leads from one state of FNV-1a to the same next one, as far as its 47 low bits tell: all names of
 * one text from each pair come into the same bucket of a table of up to 32,768. */
static const char *const COLLIDING[][2] = {
    {"52hewv86r0m5", "j3b9wdbwye3x"}, {"o2y7nfflal9i", "x2jpypsjlu0q"}, {"na3oz8e8zicx", "yecfj8cmsce8"},
    {"ojpz42u3ygdi", "0029f22v6jxe"}, {"xmf057mgx8tb", "epl8376tkx8s"}, {"z2czgp8zlzjt", "t07mup6ckm8j"},
    {"7hf7r8dlfwbh", "emsyq4bwbwwe"}, {"rr4dibnz07yj", "8oybznghp7el"}, {"b4i23s9mu1rq", "ysyvge7ym3q8"},
    {"qtbexhx993mi", "wf68jxyi7kv2"}, {"fv9g1ee2384d", "t1y8l9mzjugz"}, {"34kwp7sw0l0l", "5l29h6fx8ryg"},
    {"obosu9o8ld9u", "3sgqpoke81d8"}, {"knl48wl2sudl", "fnbluugs0z7c"}, {"ra8imh71evwn", "5hd2ak9cmtz7"},
};

/* CPU time to put 20,000 names; `colliding`: chosen to collide under FNV-1a, otherwise of the same length. */
static double fill_ms(bool colliding)
{
    cleanup_kube_store struct kube_store *s = kube_store_new(free);
    const clock_t begin = clock();

    for (unsigned i = 0; i < 20000; i++) {
        char name[200] = "";
        for (size_t k = 0; k < ARRAY_LEN(COLLIDING); k++)
            strcat(name, COLLIDING[k][i >> k & 1]);
        if (!colliding)
            snprintf(name + 100, 20, "%019u", i);
        kube_store_put(s, "ns", name, NULL, NULL, NULL);
    }
    assert_int_equal(kube_store_count(s), 20000);
    return (double)(clock() - begin) * 1000 / CLOCKS_PER_SEC;
}

static void test_names_that_collide(void **ctx)
{
    double others = 1e9, chosen = 1e9;

    (void)ctx;
    for (int i = 0; i < 3; i++) {
        const double a = fill_ms(false), b = fill_ms(true);
        others = a < others ? a : others;
        chosen = b < chosen ? b : chosen;
    }
    if (chosen > 4 * others)
        fail_msg("names chosen to collide took %.1f ms, others %.1f ms", chosen, others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_remove),
        cmocka_unit_test(test_put_with_its_own_strings),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_random_against_a_model),
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_names_that_collide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
