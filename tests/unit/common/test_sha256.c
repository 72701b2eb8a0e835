/* test_sha256.c - the vectors of FIPS 180-4 and RFC 4231, and texts of every length around a block, in pieces of every size. */
#include "common/sha256.h"
#include "test.h"

#include <stdio.h>
#include <string.h>

static const char *hex(const uint8_t bytes[static SHA256_BYTES])
{
    static char text[2 * SHA256_BYTES + 1];

    for (int i = 0; i < SHA256_BYTES; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return text;
}

static const char *hash(const char *text, size_t times)
{
    uint8_t out[SHA256_BYTES];
    struct sha256 s;

    sha256_begin(&s);
    for (size_t i = 0; i < times; i++)
        sha256_add(&s, text, strlen(text));
    sha256_end(&s, out);
    return hex(out);
}

static void test_fips_180_4(void **state)
{
    (void)state;
    assert_string_equal(hash("", 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_string_equal(hash("abc", 1), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1),
                        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    assert_string_equal(hash("a", 1000000),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The hash of the hashes of 0 to 299 bytes, each added in pieces of all sizes: where the padding begins does not matter, nor where
 * the caller cuts. */
static void test_lengths_and_pieces(void **state)
{
    uint8_t text[300], once[SHA256_BYTES], out[SHA256_BYTES];
    struct sha256 all, s;

    (void)state;
    sha256_begin(&all);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * 7 + 1);
    for (size_t len = 0; len < sizeof(text); len++) {
        for (size_t piece = 1; piece < 130; piece += 43) {
            sha256_begin(&s);
            for (size_t at = 0; at < len; at += piece)
                sha256_add(&s, text + at, len - at < piece ? len - at : piece);
            sha256_end(&s, out);
            if (piece == 1)
                memcpy(once, out, sizeof(once));
            assert_memory_equal(out, once, sizeof(once));
        }
        sha256_add(&all, once, sizeof(once));
    }
    sha256_end(&all, out);
    assert_string_equal(hex(out), "5ebbf7b17a4f2bbb50cae3f26da221c90542499a6b4cbc177190a5e8cf00710d");
}

static const char *mac(const char *key, size_t key_len, const char *text, size_t len)
{
    uint8_t out[SHA256_BYTES];
    struct hmac h;

    hmac_begin(&h, key, key_len);
    sha256_add(&h.inner, text, len);
    hmac_end(&h, out);
    return hex(out);
}

/* Cases 1 to 4: 5 is a cut one, and the others' keys are longer than ours. */
static void test_rfc_4231(void **state)
{
    static const char what[] = "what do ya want for nothing?";
    char key[20], counted[25], text[50];

    (void)state;
    memset(key, 0x0b, 20);
    assert_string_equal(mac(key, 20, "Hi There", 8),
                        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_string_equal(mac("Jefe", 4, what, strlen(what)),
                        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    memset(text, 0xdd, sizeof(text));
    assert_string_equal(mac(key, 20, text, sizeof(text)),
                        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    memset(text, 0xcd, sizeof(text));
    for (size_t i = 0; i < sizeof(counted); i++)
        counted[i] = (char)(i + 1);
    assert_string_equal(mac(counted, sizeof(counted), text, sizeof(text)),
                        "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fips_180_4),
        cmocka_unit_test(test_lengths_and_pieces),
        cmocka_unit_test(test_rfc_4231),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
