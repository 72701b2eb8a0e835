/* test_md5.c - the RFC's own examples, and every way of cutting a text in two. */
#include "test.h"

#include "trainer/data/md5.h"

#include <string.h>

static void the_rfcs_examples(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "d41d8cd98f00b204e9800998ecf8427e"},
        {"a", "0cc175b9c0f1b6a831c399e269772661"},
        {"abc", "900150983cd24fb0d6963f7d28e17f72"},
        {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
        {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
        {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
         "d174ab98d277d9f5a5611c2c9f419d9f"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
         "57edf4a22be3c955ac49da2e2107b67a"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t len = strlen(cases[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            struct md5 m;
            char text[MD5_TEXT_BYTES];
            md5_begin(&m);
            md5_add(&m, cases[i].text, cut);
            md5_add(&m, cases[i].text + cut, len - cut);
            md5_text(&m, text);
            assert_string_equal(text, cases[i].want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rfcs_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
