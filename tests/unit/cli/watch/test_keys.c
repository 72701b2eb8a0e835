/* test_keys.c - keys in the bytes that terminals send. */
#include "test.h"

#include "cli/watch/keys.h"

#include <string.h>

static void expect(const char *bytes, const enum key *want, size_t n)
{
    struct sv rest = sv_from(bytes);

    for (size_t i = 0; i < n; i++) {
        assert_true(rest.len);
        assert_int_equal(keys_next(&rest), want[i]);
    }
    assert_int_equal(rest.len, 0);
}

#define EXPECT(bytes, ...)                                                                                   \
    expect(bytes, (const enum key[]){__VA_ARGS__}, sizeof((const enum key[]){__VA_ARGS__}) / sizeof(enum key))

static void test_keys(void **state)
{
    (void)state;
    EXPECT("j", KEY_DOWN);
    EXPECT("kq", KEY_UP, KEY_QUIT);
    EXPECT("\r", KEY_WHY);
    EXPECT("\nwlQ", KEY_WHY, KEY_WHY, KEY_LOGS, KEY_QUIT);
    EXPECT("xJ", KEY_OTHER, KEY_OTHER);
}

static void test_sequences(void **state)
{
    (void)state;
    EXPECT("\x1b[A\x1b[B", KEY_UP, KEY_DOWN);
    EXPECT("\x1bOA\x1bOBj", KEY_UP, KEY_DOWN, KEY_DOWN);              /* application mode */
    EXPECT("\x1b[5~q", KEY_OTHER, KEY_QUIT);                          /* page up: its '~' is no key */
    EXPECT("\x1b[1;5A\x1b[<0;3;4Mq", KEY_OTHER, KEY_OTHER, KEY_QUIT); /* Ctrl-arrow, a mouse */
    EXPECT("\x1b", KEY_ESCAPE);
    EXPECT("\x1b\x1b", KEY_ESCAPE, KEY_ESCAPE);
    EXPECT("\x1bq", KEY_ESCAPE, KEY_QUIT);
    EXPECT("\x1b[", KEY_ESCAPE);
    EXPECT("\x1b[12", KEY_ESCAPE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys), cmocka_unit_test(test_sequences)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
