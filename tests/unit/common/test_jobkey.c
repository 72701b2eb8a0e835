/* test_jobkey.c - which texts are a key, and that proofs and nonces are those of the words of PROTOCOL.md, computed elsewhere. */
#include "common/cleanup.h"
#include "common/jobkey.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const char DIGITS[] = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";

static void test_what_is_a_key(void **state)
{
    static const char *const bad[] = {"0", "secret",
                                      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1g",
                                      "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20"};
    struct jobkey key;
    struct err err = {0};
    char text[80];

    (void)state;
    assert_int_equal(jobkey_read(NULL, &key, &err), 0);
    assert_false(key.has);
    assert_int_equal(jobkey_read(" \n", &key, &err), 0);
    assert_false(key.has);
    snprintf(text, sizeof(text), " %s\n", DIGITS);
    assert_int_equal(jobkey_read(text, &key, &err), 0);
    assert_true(key.has);
    for (int i = 0; i < JOBKEY_BYTES; i++)
        assert_int_equal(key.bytes[i], i);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        assert_int_equal(jobkey_read(bad[i], &key, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_null(strstr(err.msg, bad[i]));
    }
}

static void prove(uint8_t proof[static JOBKEY_PROOF_BYTES], const char *purpose, const char *a, const char *b,
                  const char *c)
{
    struct jobkey key;
    struct err err;

    assert_int_equal(jobkey_read(DIGITS, &key, &err), 0);
    jobkey_prove(&key, purpose, (struct jobkey_field[]){{a, strlen(a)}, {b, strlen(b)}, {c, strlen(c)}}, 3,
                 proof);
}

static void expect(const uint8_t got[static 32], const char *want)
{
    char text[65];

    for (int i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", got[i]);
    assert_string_equal(text, want);
}

static void test_proofs(void **state)
{
    uint8_t one[JOBKEY_PROOF_BYTES], two[JOBKEY_PROOF_BYTES];

    (void)state;
    prove(one, "a purpose", "one", "", "three");
    expect(one, "dba7e06ca76aba4de75d8c3461f4ff0bc530ed04dfe665bc254bc2ba2f4b8b79");
    prove(two, "a purpose", "on", "e", "three"); /* where a field ends counts */
    assert_memory_not_equal(one, two, sizeof(one));
    prove(two, "b purpose", "one", "", "three");
    assert_memory_not_equal(one, two, sizeof(one));
}

static void test_nonces(void **state)
{
    const struct jobkey key = {.has = true};
    uint8_t seed[JOBKEY_NONCE_BYTES], nonce[JOBKEY_NONCE_BYTES];

    (void)state;
    for (int i = 0; i < JOBKEY_NONCE_BYTES; i++)
        seed[i] = (uint8_t)i;
    jobkey_nonce(&key, seed, 258, nonce);
    expect(nonce, "fc0aeb363717d0548bff6de025bfb74320389a6cddbdf91b21971953c01a5019");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_a_key),
        cmocka_unit_test(test_proofs),
        cmocka_unit_test(test_nonces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
