/* test_secret.c - two secrets are equal when all their bytes are, wherever they differ; and none is left out. */
#include "common/secret.h"
#include "test.h"

#include <string.h>

static void test_each_byte_counts(void **state)
{
    unsigned char a[32], b[32];

    (void)state;
    for (size_t i = 0; i < sizeof(a); i++)
        a[i] = b[i] = (unsigned char)(i * 37);
    assert_true(secret_equal(a, b, sizeof(a)));
    for (size_t i = 0; i < sizeof(a); i++) {
        for (int bit = 1; bit < 256; bit <<= 1) {
            b[i] ^= (unsigned char)bit;
            assert_false(secret_equal(a, b, sizeof(a)));
            assert_true(secret_equal(a, b, i));
            b[i] ^= (unsigned char)bit;
        }
    }
    b[0] ^= 1; /* differences do not cancel out */
    b[1] ^= 1;
    assert_false(secret_equal(a, b, sizeof(a)));
    assert_true(secret_equal(a, b, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_byte_counts)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
