/* test_hashtable.c - nodes are found by hash and by walks, however many there are and whichever go. */
#include "common/hashtable.h"

#include "test.h"

#include <stdbool.h>

enum { N = 5000 };

struct thing {
    int number;
    struct hashtable_node node;
    bool in;
};

static struct thing *of(struct hashtable_node *n)
{
    return n ? (void *)((char *)n - offsetof(struct thing, node)) : NULL;
}

static struct thing things[N];

/* Few hashes, so that each is many things'. */
static uint32_t hash_of(int number)
{
    return (uint32_t)number % 701 * 2654435761u;
}

static bool is_found(const struct hashtable *t, int number)
{
    struct hashtable_node *n = hashtable_first_of(t, hash_of(number));

    while (n && of(n)->number != number)
        n = hashtable_next_of(n);
    return n != NULL;
}

static void check(const struct hashtable *t)
{
    size_t want = 0, walked = 0;

    for (int i = 0; i < N; i++) {
        want += things[i].in ? 1 : 0;
        assert_int_equal(is_found(t, i), things[i].in);
    }
    for (struct hashtable_node *n = hashtable_first(t); n; n = hashtable_next(t, n)) {
        assert_true(of(n)->in);
        walked++;
    }
    assert_int_equal(walked, want);
    assert_int_equal(t->count, want);
}

static void test_random_changes(void **state)
{
    struct hashtable t = {0};
    uint32_t random = 1;

    (void)state;
    check(&t);
    for (int round = 0; round < 20; round++) {
        for (int k = 0; k < N / 2; k++) {
            random = random * 1664525u + 1013904223u;
            struct thing *x = &things[random % N];
            x->number = (int)(random % N);
            if (x->in)
                hashtable_remove(&t, &x->node);
            else
                hashtable_add(&t, &x->node, hash_of(x->number));
            x->in = !x->in;
        }
        check(&t);
    }
    /* The node that a walk has left may go. */
    for (struct hashtable_node *n = hashtable_first(&t); n;) {
        struct hashtable_node *next = hashtable_next(&t, n);
        of(n)->in = false;
        hashtable_remove(&t, n);
        n = next;
    }
    check(&t);
    hashtable_release(&t);
    assert_null(hashtable_first(&t));
    assert_null(hashtable_first_of(&t, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
