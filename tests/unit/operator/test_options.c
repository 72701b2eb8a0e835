/* test_options.c - the command line. */
#include "examples.h"
#include "operator/api/pod.h"
#include "operator/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse(struct options *o, struct err *err, const char *a, const char *b)
{
    char name[] = "ptj-operator";
    char first[128];
    char second[128];
    char *argv[] = {name, first, second, NULL};
    int argc = 1;

    if (a)
        argv[argc++] = strcpy(first, a);
    if (b)
        argv[argc++] = strcpy(second, b);
    argv[argc] = NULL;
    return options_parse(o, argc, argv, err);
}

static void test_defaults(void **state)
{
    struct options o;
    struct err err;

    (void)state;
    assert_int_equal(parse(&o, &err, NULL, NULL), 0);
    assert_null(o.controller.ns);
    assert_null(o.api.server);
    assert_string_equal(o.manager.metrics_address, ":8080");
    assert_string_equal(o.manager.probe_address, ":8081");
    assert_int_equal(o.log_level, LOG_INFO);
    assert_true(o.leader_elect);
    assert_null(o.manager.lease_ns);
}

static void test_values(void **state)
{
    struct options o;
    struct err err;

    (void)state;
    assert_int_equal(parse(&o, &err, "--namespace=team-a", "--launcher-image=l:1"), 0);
    assert_string_equal(o.controller.ns, "team-a");
    assert_string_equal(o.controller.launcher_image, "l:1");
    assert_int_equal(parse(&o, &err, "--gang-scheduler=volcano", NULL), 0);
    assert_int_equal(o.controller.gangs.scheduler, GANG_VOLCANO);
    assert_string_equal(o.controller.gangs.scheduler_name, "volcano");
    assert_int_equal(parse(&o, &err, "--gang-scheduler=coscheduling", "--gang-scheduler-name=mine"), 0);
    assert_string_equal(o.controller.gangs.scheduler_name, "mine");
    assert_int_equal(parse(&o, &err, "--gang-scheduler=native", NULL), 0);
    assert_null(o.controller.gangs.scheduler_name);
    assert_int_equal(parse(&o, &err, "--gang-scheduler=kueue", NULL), -1);
    assert_int_equal(parse(&o, &err, "--log-level", "debug"), 0);
    assert_int_equal(o.log_level, LOG_DEBUG);
    assert_int_equal(parse(&o, &err, "--leader-elect=false", "--metrics-bind-address=0"), 0);
    assert_string_equal(o.manager.metrics_address, "0");
    assert_false(o.leader_elect);
    assert_int_equal(parse(&o, &err, "--leader-elect", "--leader-elect-namespace=system"), 0);
    assert_true(o.leader_elect);
    assert_string_equal(o.manager.lease_ns, "system");
    assert_int_equal(parse(&o, &err, "--leader-elect=true", "--leader-elect-namespace="), 0);
    assert_true(o.leader_elect);
    assert_null(o.manager.lease_ns);
    assert_int_equal(o.lease_duration_s, 15);
    assert_int_equal(parse(&o, &err, "--leader-elect-lease-duration=3", NULL), 0);
    assert_int_equal(o.lease_duration_s, 3);
    assert_int_equal(parse(&o, &err, "--server=https://h", "--token-file=/t"), 0);
    assert_string_equal(o.api.server, "https://h");
    assert_string_equal(o.api.token_file, "/t");
    assert_true(o.tensorboard);
    assert_int_equal(parse(&o, &err, "--tensorboard=false", NULL), 0);
    assert_false(o.tensorboard);
    assert_int_equal(parse(&o, &err, "--ca-file=/ca", "--server="), 0);
    assert_string_equal(o.api.ca_file, "/ca");
    assert_null(o.api.server);
    assert_int_equal(parse(&o, &err, "--log_level=warn", NULL), 0);
    assert_int_equal(o.log_level, LOG_WARN);
    assert_int_equal(parse(&o, &err, "--help", NULL), 0);
    assert_true(o.help);
}

static void test_refusals(void **state)
{
    static const struct {
        const char *a, *b, *want;
    } rows[] = {
        {"--nope", NULL, "--nope: unknown option (ptj-operator --help)"},
        {"--namespaces=x", NULL,
         "--namespaces: unknown option; did you mean --namespace? (ptj-operator --help)"},
        {"--kube-api-qps=1", NULL, "--kube-api-qps: unknown option (ptj-operator --help)"},
        {"--version=1", NULL, "--version takes no value"},
        {"-v", NULL, "-v: unknown option (ptj-operator --help)"},
        {"--namespace", NULL, "--namespace: expected a value: --namespace=NAME"},
        {"--namespace=A_b", NULL, "--namespace: expected the name of a namespace, got \"A_b\""},
        {"--log-level=loud", NULL, "--log-level: expected debug, info, warn or error, got \"loud\""},
        {"--log-level=warning", NULL,
         "--log-level: expected debug, info, warn or error, got \"warning\"; did you mean warn?"},
        {"--leader-elect=maybe", NULL, "--leader-elect: expected true or false, got \"maybe\""},
        {"--leader-elect=", NULL, "--leader-elect: expected true or false, got \"\""},
        {"--leader-elect-namespace=A/b", NULL,
         "--leader-elect-namespace: expected the name of a namespace, got \"A/b\""},
        {"--leader-elect-lease-duration=1", NULL,
         "--leader-elect-lease-duration: expected an integer 2..3600, got \"1\""},
        {"--tensorboard-image=", NULL, "--tensorboard-image: expected an image, got nothing"},
        {"--launcher-image=", NULL, "--launcher-image: expected an image, got nothing"},
        {"run", NULL, "run: expected options only (ptj-operator --help)"},
        {"--", "run", "run: expected options only (ptj-operator --help)"},
        {"-namespace=a", NULL, "-namespace: unknown option; did you mean --namespace? (ptj-operator --help)"},
    };
    struct options o;
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_int_equal(parse(&o, &err, rows[i].a, rows[i].b), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_string_equal(err.msg, rows[i].want);
    }
}

static void test_help(void **state)
{
    char *text = NULL;
    size_t len;

    (void)state;
    FILE *f = open_memstream(&text, &len);
    options_help(f);
    fclose(f);
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 120);
    for (const struct option_row *o = options_rows; o->name; o++)
        assert_non_null(o->help);
    assert_non_null(
        strstr(text, "\n    --log-level=LEVEL\n        debug, info, warn or error (default info).\n"));
    assert_non_null(strstr(text, "\nEXAMPLES\n    ptj-operator\n"));
    free(text);
}

static void test_examples_work(void **state)
{
    struct options o;
    struct err err;

    (void)state;
    expect_examples(options_examples);
    for (const struct option_example *e = options_examples; e->command; e++) {
        struct example_words *w = example_split(e->command, "ptj-operator");
        if (options_parse(&o, w->argc, w->argv, &err) < 0)
            fail_msg("%s: %s", e->command, err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),      cmocka_unit_test(test_values),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_help),
        cmocka_unit_test(test_examples_work),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
