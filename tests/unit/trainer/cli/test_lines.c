/* test_lines.c - lines with words in them: printed as they are meant, refused with the word that is wrong. */
#include "test.h"

#include "trainer/cli/lines.h"

#include <stdlib.h>
#include <string.h>

static const struct lines_values VALUES = {.rank = 3,
                                           .world = 4,
                                           .epoch = 12,
                                           .epochs = 50,
                                           .batch_size = 32,
                                           .steps = 938,
                                           .save_every = 10,
                                           .save_path = "w.pt",
                                           .loss = 1.23456};

static void prints(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "\n"},
        {"plain %d %s", "plain %d %s\n"},
        {"[GPU{rank}] Epoch {epoch} | Batchsize: {batch_size} | Steps: {steps}",
         "[GPU3] Epoch 12 | Batchsize: 32 | Steps: 938\n"},
        {"{world}{epochs}{save_every}{save_path}", "45010w.pt\n"},
        {"GPU {rank} Loss: {loss}", "GPU 3 Loss: 1.235\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *text = NULL;
        size_t len = 0;
        struct err err;
        assert_int_equal(lines_check(cases[i].text, &err), 0);
        FILE *out = open_memstream(&text, &len);
        lines_print(out, cases[i].text, &VALUES);
        fclose(out);
        assert_string_equal(text, cases[i].want);
        free(text);
    }
}

static void refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"{ranks}", "\"{ranks}\": expected one of {rank}, {world}, {epoch}"},
        {"{}", "\"{}\": expected one of"},
        {"a {rank", "a '{' without a '}'"},
        {"a {rank {epoch}", "a '{' without a '}'"},
        {"a } b", "a '}' without a '{'"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = {0};
        assert_int_equal(lines_check(cases[i].text, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, cases[i].says))
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err.msg, cases[i].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints),
        cmocka_unit_test(refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
