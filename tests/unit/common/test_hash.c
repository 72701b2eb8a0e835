/* test_hash.c - the seeded hash is SipHash-2-4, and depends on its seed. */
#include "common/hash.h"
#include "test.h"

#include <string.h>

static void test_seeded(void **ctx)
{
    unsigned char bytes[16];
    uint64_t seed[2], h;

    (void)ctx;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)i;
    memcpy(seed, bytes, sizeof(seed));
    memcpy(&h, bytes, sizeof(h));
    const uint64_t plain = hash_seeded(h, bytes + 8, 7);
    hash_seed(seed);
    /* The example of the authors' paper, appendix A: the key and 15 bytes of text, of which h is the first 8. */
    assert_true(hash_seeded(h, bytes + 8, 7) == 0xa129ca6149be45e5ULL);
    assert_true(plain != 0xa129ca6149be45e5ULL);
    assert_true(hash_seeded(0, "ab", 2) != hash_seeded(0, "ab\0", 3));
    assert_true(hash_seeded(hash_seeded(0, "ab", 2), "c", 1) != hash_seeded(hash_seeded(0, "a", 1), "bc", 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_seeded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
