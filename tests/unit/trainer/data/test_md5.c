/* test_md5.c - the RFC's own examples, and lengths at which the last block is full. */
#include "test.h"

#include "common/cleanup.h"
#include "trainer/data/md5.h"

#include <string.h>

static void known_sums(void **state)
{
    (void)state;
    static const char a[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    static const struct {
        const char *text;
        size_t len; /* 0: all */
        const char *want;
    } cases[] = {
        {"", 0, "d41d8cd98f00b204e9800998ecf8427e"},
        {"abc", 0, "900150983cd24fb0d6963f7d28e17f72"},
        {"abcdefghijklmnopqrstuvwxyz", 0, "c3fcd3d76192e4007dfb496cca67e13b"},
        {"12345678901234567890123456789012345678901234567890123456789012345678901234567890", 0,
         "57edf4a22be3c955ac49da2e2107b67a"},
        {a, 55, "ef1772b6dff9a122358552954ad0df65"},
        {a, 56, "3b0c8ac703f828b04c6c197006d17218"},
        {a, 63, "b06521f39153d618550606be297466d5"},
        {a, 64, "014842d480b571495a4a0363793f7367"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[MD5_TEXT_BYTES];
        md5_text(cases[i].text, cases[i].len ? cases[i].len : strlen(cases[i].text), text);
        assert_string_equal(text, cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
