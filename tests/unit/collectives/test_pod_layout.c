/* test_pod_layout.c - which ranks share a pod, from their own descriptions. */
#include "collectives/pod_layout.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_pods_of_unlike_size(void **state)
{
    const struct rank_member members[] = {
        {.group = 7, .local = 0, .per_group = 1}, {.group = 2, .local = 0, .per_group = 3},
        {.group = 2, .local = 1, .per_group = 3}, {.group = 2, .local = 2, .per_group = 3},
        {.group = 3, .local = 0, .per_group = 2}, {.group = 3, .local = 1, .per_group = 2},
    };
    const int pod_of[] = {0, 1, 1, 1, 2, 2};
    struct pod_layout l;
    struct err err = {0};

    (void)state;
    assert_int_equal(pod_layout_make(&l, members, 6, &err), 0);
    assert_int_equal(l.n_pods, 3);
    assert_int_equal(l.lanes, 1);
    assert_true(l.first[0] == 0 && l.first[1] == 1 && l.first[2] == 4 && l.first[3] == 6);
    for (int r = 0; r < 6; r++)
        assert_int_equal(pod_layout_of(&l, r), pod_of[r]);
    pod_layout_release(&l);
}

/* A rank that cannot share memory, or is in another network namespace, makes all of its pod stand alone. */
static void test_pods_that_share_nothing(void **state)
{
    struct rank_member members[6];
    struct pod_layout l;
    struct err err = {0};

    (void)state;
    for (int r = 0; r < 6; r++)
        members[r] = (struct rank_member){.group = r / 2, .local = r % 2, .per_group = 2, .net = 7};
    members[2].net = members[3].net = 8; /* one pod's own namespace is nothing unusual */
    assert_int_equal(pod_layout_make(&l, members, 6, &err), 0);
    assert_true(l.n_pods == 3 && l.lanes == 2);
    pod_layout_release(&l);
    members[3].alone = 1;
    members[5].net = 9;
    assert_int_equal(pod_layout_make(&l, members, 6, &err), 0);
    assert_true(l.n_pods == 5 && l.lanes == 1);
    assert_true(l.first[0] == 0 && l.first[1] == 2 && l.first[2] == 3 && l.first[4] == 5 && l.first[5] == 6);
    pod_layout_release(&l);
    members[4].group = 0; /* a wrong description is still wrong */
    assert_int_equal(pod_layout_make(&l, members, 6, &err), -1);
}

static void test_lanes_are_bounded(void **state)
{
    struct rank_member members[24];
    struct pod_layout l;
    struct err err = {0};

    (void)state;
    for (int r = 0; r < 24; r++)
        members[r] = (struct rank_member){.group = r / 12, .local = r % 12, .per_group = 12};
    assert_int_equal(pod_layout_make(&l, members, 24, &err), 0);
    assert_int_equal(l.lanes, POD_LANES_MAX);
    pod_layout_release(&l);
}

static void test_refuses_what_does_not_fit(void **state)
{
    static const struct {
        struct rank_member members[4];
        const char *names;
    } cases[] = {
        /* dealt in turn instead of in blocks */
        {{{.group = 0, .local = 0, .per_group = 2},
          {.group = 1, .local = 0, .per_group = 2},
          {.group = 0, .local = 1, .per_group = 2},
          {.group = 1, .local = 1, .per_group = 2}},
         "rank 1 has GROUP_RANK 1, expected 0"},
        {{{.group = 0, .local = 0, .per_group = 2},
          {.group = 0, .local = 0, .per_group = 2},
          {.group = 1, .local = 0, .per_group = 2},
          {.group = 1, .local = 1, .per_group = 2}},
         "rank 1 has LOCAL_RANK 0"},
        {{{.group = 0, .local = 0, .per_group = 2},
          {.group = 0, .local = 1, .per_group = 4},
          {.group = 1, .local = 0, .per_group = 2},
          {.group = 1, .local = 1, .per_group = 2}},
         "of LOCAL_WORLD_SIZE 4"},
        {{{.group = 0, .local = 0, .per_group = 3},
          {.group = 0, .local = 1, .per_group = 3},
          {.group = 0, .local = 2, .per_group = 3},
          {.group = 1, .local = 0, .per_group = 2}},
         "rank 3"},
        {{{.group = 0, .local = 0, .per_group = 2},
          {.group = 0, .local = 1, .per_group = 2},
          {.group = 0, .local = 0, .per_group = 2},
          {.group = 0, .local = 1, .per_group = 2}},
         "ranks 0 and 2 have GROUP_RANK 0"},
        {{{.group = 0, .local = 0, .per_group = 0}}, "LOCAL_WORLD_SIZE 0"},
        {{{.group = 0, .local = 0, .per_group = -5}}, "LOCAL_WORLD_SIZE -5"},
        {{{.group = 0, .local = 0, .per_group = INT32_MAX}}, "LOCAL_WORLD_SIZE"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pod_layout l;
        struct err err = {0};
        assert_int_equal(pod_layout_make(&l, cases[i].members, 4, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, cases[i].names));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_of_unlike_size),
        cmocka_unit_test(test_pods_that_share_nothing),
        cmocka_unit_test(test_lanes_are_bounded),
        cmocka_unit_test(test_refuses_what_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
