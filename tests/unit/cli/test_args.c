/* test_args.c - the command line of kubectl-ptj. */
#include "examples.h"

#include "cli/args.h"
#include "cli/help.h"
#include "common/wrap.h"

#include <stdlib.h>
#include <string.h>

static void expect_refused(const char *want, char **argv)
{
    cleanup_args struct args a = {0};
    struct err err = {0};
    int argc = 0;

    while (argv[argc])
        argc++;
    assert_int_equal(args_parse(&a, argc, argv, &err), -1);
    if (!strstr(err.msg, want))
        fail_msg("expected \"%s\" in: %s", want, err.msg);
}

static void expect_namespace(char **argv)
{
    cleanup_args struct args a = {0};
    struct err err = {0};
    int argc = 0;

    while (argv[argc])
        argc++;
    assert_int_equal(args_parse(&a, argc, argv, &err), 0);
    assert_ptr_equal(a.verb, &VERB_SCALE);
    assert_int_equal(a.n_operands, 2);
    assert_string_equal(a.operands[1], "3");
    assert_string_equal(args_text(&a, "namespace", NULL), "team");
    assert_false(args_has(&a, "context"));
}

/* The words of a command line. */
#define LINE(...) ((char *[]){(char *)(uintptr_t) "ptj", __VA_ARGS__, NULL})
#define W(text) ((char[]){text})

static void test_where_options_stand(void **state)
{
    (void)state;
    expect_namespace(LINE(W("scale"), W("job"), W("3"), W("--namespace=team")));
    expect_namespace(LINE(W("scale"), W("--namespace"), W("team"), W("job"), W("3")));
    expect_namespace(LINE(W("-n"), W("team"), W("scale"), W("job"), W("3")));
    expect_namespace(LINE(W("-nteam"), W("scale"), W("job"), W("3")));
    expect_namespace(LINE(W("-n=team"), W("scale"), W("--"), W("job"), W("3")));
    expect_namespace(LINE(W("-n"), W("old"), W("scale"), W("job"), W("3"), W("-n"), W("team")));
}

static void test_options_that_repeat(void **state)
{
    (void)state;
    cleanup_args struct args a = {0};
    struct err err;
    char **argv =
        LINE(W("submit"), W("s"), W("-e"), W("A=1"), W("--image=i"), W("--env=B=2"), W("--image=j"));

    assert_int_equal(args_parse(&a, 8, argv, &err), 0);
    assert_string_equal(args_each(&a, "env", 0), "A=1");
    assert_string_equal(args_each(&a, "env", 1), "B=2");
    assert_null(args_each(&a, "env", 2));
    assert_null(args_each(&a, "claim", 0));
    assert_string_equal(args_text(&a, "image", NULL), "j");
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("unknown verb; did you mean resume?", LINE(W("resmue")));
    expect_refused("list: unknown verb; type kubectl get ptj", LINE(W("list")));
    expect_refused("ls: unknown verb; type kubectl get ptj", LINE(W("ls")));
    expect_refused("delete: unknown verb; type kubectl delete ptj NAME", LINE(W("delete"), W("a")));
    expect_refused("status: unknown verb; type kubectl ptj why NAME", LINE(W("status"), W("a")));
    expect_refused("cancel: unknown verb; type kubectl ptj suspend NAME, or kubectl delete ptj NAME",
                   LINE(W("cancel"), W("a")));
    expect_refused("create: unknown verb; type kubectl ptj submit SCRIPT",
                   LINE(W("create"), W("-f"), W("job.yaml")));
    expect_refused("wait: unknown verb; type kubectl ptj watch NAME --until=finished",
                   LINE(W("wait"), W("a")));
    expect_refused("--namespcae: unknown option; did you mean --namespace?",
                   LINE(W("scale"), W("--namespcae=a")));
    expect_refused("-x: unknown option (kubectl ptj scale --help)", LINE(W("scale"), W("-x")));
    expect_refused("--epochs: unknown option (kubectl ptj submit --help; write -- before options to pass on)",
                   LINE(W("submit"), W("a.py"), W("--epochs"), W("3")));
    expect_refused("expected a value: --namespace=NAME", LINE(W("scale"), W("-n")));
    expect_refused("--help takes no value", LINE(W("scale"), W("--help=yes")));
    expect_refused("suspend: expected NAME", LINE(W("suspend")));
    expect_refused("b is one argument too many", LINE(W("suspend"), W("a"), W("b")));
}

static void test_help_needs_no_operands(void **state)
{
    cleanup_args struct args a = {0};
    struct err err = {0};

    (void)state;
    assert_int_equal(args_parse(&a, 3, LINE(W("suspend"), W("-h")), &err), 0);
    assert_true(a.help);
}

/* Every "kubectl ptj ..." in it: a command may run two of them. */
static void take(const struct option_example *list)
{
    expect_examples(list);
    for (; list->command; list++)
        for (const char *at = list->command; (at = strstr(at, "kubectl ptj ")); at++) {
            cleanup_args struct args a = {0};
            struct example_words *w = example_split(at, "ptj ");
            struct err err = {0};
            if (args_parse(&a, w->argc, w->argv, &err) < 0)
                fail_msg("%s: %s", list->command, err.msg);
        }
}

/* Nothing stands behind its EXAMPLES, and each line fits a terminal. */
static void test_help(void **state)
{
    (void)state;
    for (int i = -1; i < 0 || (VERBS[i] && !VERBS[i]->hidden); i++) { /* the hidden one is the last */
        char *text = NULL;
        size_t len;
        FILE *out = open_memstream(&text, &len);
        help_print(out, i < 0 ? NULL : VERBS[i]);
        fclose(out);
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            if (strcspn(line, "\n") > WRAP_WIDTH)
                fail_msg("%d columns: %.*s", WRAP_WIDTH, (int)strcspn(line, "\n"), line);
        const char *at = strstr(text, "\nEXAMPLES\n");
        assert_non_null(at);
        for (at += strlen("\nEXAMPLES\n"); *at; at += strcspn(at, "\n") + 1)
            assert_true(strncmp(at, "    ", 4) == 0);
        free(text);
    }
}

static void test_examples_are_taken(void **state)
{
    (void)state;
    take(VERBS_EXAMPLES);
    for (int i = 0; VERBS[i]; i++)
        if (!VERBS[i]->hidden)
            take(VERBS[i]->examples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_options_stand),
        cmocka_unit_test(test_options_that_repeat),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_help_needs_no_operands),
        cmocka_unit_test(test_help),
        cmocka_unit_test(test_examples_are_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
