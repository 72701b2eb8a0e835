/* test_nearest.c - what somebody meant who mistyped it. */
#include "common/nearest.h"
#include "test.h"

#include <string.h>

static const char *const WORDS[] = {"epochs", "batch_size", "lr", "nproc-per-node", "node-rank", "gloo",
                                    "nccl",   "lap",        NULL};

static void test_what_is_meant(void **state)
{
    static const struct {
        const char *given, *want; /* NULL: nothing */
    } cases[] = {
        {"epoch", "epochs"},                   /* missing */
        {"epochss", "epochs"},                 /* too many */
        {"opochs", "epochs"},                  /* wrong */
        {"ncll", "nccl"},                      /* wrong, in the middle */
        {"golo", "gloo"},                      /* swapped */
        {"NCCL", "nccl"},                      /* case alone */
        {"rl", "lr"},                          /* two letters, swapped */
        {"batch-size", "batch_size"},          /* the other dash */
        {"batchsize", "batch_size"},           /* no dash */
        {"nproc", "nproc-per-node"},           /* the beginning */
        {"nproc_per_nodes", "nproc-per-node"}, /* of a long word */
        {"ndoe_rnak", "node-rank"},            /* two swaps */
        {"lap_or_so", "lap"},                  /* begins with it */
        {"lr_rate", NULL},
        {"xx", NULL},    /* two of two */
        {"epics", NULL}, /* two of five */
        {"ep", NULL},    /* too short a beginning */
        {"x", NULL},
        {"", NULL},
        {"learning_rate", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct nearest n = nearest_to(sv_from(cases[i].given));
        nearest_offer_all(&n, WORDS);
        if (cases[i].want ? !n.word || strcmp(n.word, cases[i].want) != 0 : n.word != NULL)
            fail_msg("\"%s\": got %s", cases[i].given, n.word ? n.word : "nothing");
    }
}

static void test_the_nearest_of_several(void **state)
{
    struct nearest n = nearest_to(sv_from("max_step"));
    char buf[NEAREST_HINT_BYTES];

    (void)state;
    assert_string_equal(nearest_hint(&n, "--", buf), "");
    nearest_offer(&n, "max_step_count"); /* begins with it */
    nearest_offer(&n, "mix_steps");
    assert_string_equal(n.word, "mix_steps");
    nearest_offer(&n, "max_steps");
    nearest_offer(&n, "max_stop"); /* as near: the first counts */
    assert_string_equal(nearest_hint(&n, "--", buf), "; did you mean --max_steps?");
    assert_string_equal(nearest_hint(&n, "", buf), "; did you mean max_steps?");
}

/* Words beyond the bound are neither read nor written beyond it. */
static void test_long_words(void **state)
{
    char given[200], word[NEAREST_BYTES + 1], hint[NEAREST_HINT_BYTES];

    (void)state;
    memset(given, 'a', sizeof(given));
    memset(word, 'a', sizeof(word));
    word[NEAREST_BYTES] = '\0';
    struct nearest n = nearest_to((struct sv){given, sizeof(given)});
    nearest_offer(&n, word);
    assert_null(n.word);
    n = nearest_to((struct sv){given, NEAREST_BYTES});
    nearest_offer(&n, word);
    assert_non_null(n.word);
    assert_int_equal(strlen(nearest_hint(&n, "--", hint)), strlen("; did you mean --?") + NEAREST_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_meant),
        cmocka_unit_test(test_the_nearest_of_several),
        cmocka_unit_test(test_long_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
