/* test_options_pytorch.c - every option of PyTorch's torchrun, as recorded from PyTorch itself: it is in the table under
 * each of its names, takes a value where PyTorch's does, knows PyTorch's choices (or refuses them by the option's name),
 * and is in the real program's help and completions. */
#include "launcher/options.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char RECORDED[] = TK_SOURCE_DIR "/tests/golden/torch/torchrun_options.txt";
static const char *torchrun;

static char *nothing(const char *name)
{
    (void)name;
    return NULL;
}

static const struct options_host host = {.get = nothing, .cpus = 2};

/* The option that this name reads as, or -1. */
static int parse(char *word, char *value, struct arena *a)
{
    char program[] = "torchrun", script[] = "p",
         *words[] = {program, word, value ? value : script, script, NULL};
    struct option_values v;
    struct err err = {0};

    if (option_values_parse(4, words, &host, a, &v, &err) < 0)
        fail_msg("%s", err.msg);
    for (int i = 0; i < N_OPTIONS; i++)
        if (v.text[i])
            return i;
    return -1;
}

/* "--name --other_name VALUE" or "--name one two three" or "--flag". */
static void check_line(char *line, struct arena *a)
{
    char *names[8], *values[8], *save;
    int n = 0, choices = 0, id = -1;

    for (char *word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
        assert_true(n < 8 && choices < 8);
        if (*word == '-')
            names[n++] = word;
        else
            values[choices++] = word;
    }
    for (int i = 0; i < n; i++) {
        int found = parse(names[i], choices ? values[0] : NULL, a);
        assert_true(found >= 0 && (id < 0 || found == id));
        id = found;
        assert_true((option_rows[id].value != NULL) == (choices > 0));
    }
    for (int i = 0; choices > 1 && i < choices; i++) {
        char program[] = "torchrun", script[] = "p", *words[] = {program, names[0], values[i], script, NULL};
        struct options o;
        struct err err = {0};
        if (id == OPT_NUMA_BINDING) {
            assert_int_equal(options_parse(4, words, &host, a, &o, &err), -1);
            assert_non_null(strstr(err.msg, "--numa-binding"));
        } else if (options_parse(4, words, &host, a, &o, &err) < 0)
            fail_msg("%s %s: %s", names[0], values[i], err.msg);
    }
}

static void test_every_option_is_there(void **state)
{
    cleanup_fclose FILE *f = fopen(RECORDED, "re");
    cleanup_arena struct arena a = {0};
    char line[300];
    int n = 0;

    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        assert_non_null(strchr(line, '\n'));
        check_line(line, &a);
        n++;
    }
    assert_true(n >= 30);
}

/* What `command` prints about torchrun holds each option's name. */
static void expect_all_in(const char *arguments, const char *before)
{
    static char text[64 * 1024];
    char command[4200], want[80];

    snprintf(command, sizeof(command), "'%s' %s", torchrun, arguments);
    FILE *out = popen(command, "re");
    assert_non_null(out);
    size_t n = fread(text, 1, sizeof(text) - 1, out);
    text[n] = '\0';
    assert_int_equal(pclose(out), 0);
    for (int i = 0; i < N_OPTIONS; i++) {
        snprintf(want, sizeof(want), "%s%s", before, option_rows[i].name);
        if (!strstr(text, want))
            fail_msg("%s: no %s", arguments, want);
    }
}

static void test_help_and_completions(void **state)
{
    (void)state;
    expect_all_in("--help", "--");
    expect_all_in("--print-completion bash", "--");
    expect_all_in("--print_completion=zsh", "--");
    expect_all_in("--print-completion tcsh", "");
    expect_all_in("--print-completion fish", "complete -c torchrun -l ");
}

/* The only line that `command` prints, in which $TORCHRUN is the program. */
static void expect_line(const char *command, const char *want)
{
    char line[100] = "";

    assert_int_equal(setenv("TORCHRUN", torchrun, 1), 0);
    FILE *out = popen(command, "re");
    assert_non_null(out);
    assert_non_null(fgets(line, sizeof(line), out));
    assert_string_equal(line, want);
    assert_null(fgets(line, sizeof(line), out));
    assert_int_equal(pclose(out), 0);
}

/* "--virtual" has one completion. */
static void test_bash_completes(void **state)
{
    (void)state;
    expect_line("bash -c 'source <(\"$TORCHRUN\" --print-completion bash); eval \"$(complete -p torchrun | "
                "sed \"s/^complete/compgen/; s/torchrun$/-- --virtual/\")\"'",
                "--virtual-local-rank\n");
}

static void test_errors_have_the_name_of_the_program(void **state)
{
    (void)state;
    expect_line("bash -c '(exec -a launch \"$TORCHRUN\" --no-such) 2>&1 || true'",
                "launch: --no-such: unknown option (launch --help)\n");
    expect_line("\"$TORCHRUN\" --no-such 2>&1 || true",
                "torchrun: --no-such: unknown option (torchrun --help)\n");
}

static void test_fish_completes(void **state)
{
    (void)state;
    if (system("fish --no-config -c true >/dev/null 2>&1") != 0)
        skip();
    expect_line("fish --no-config -c '\"$TORCHRUN\" --print-completion fish | source; complete -C \"torchrun "
                "--virtual\"'",
                "--virtual-local-rank\tEvery rank gets LOCAL_RANK=0 and sees its own GPU only.\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_option_is_there),
        cmocka_unit_test(test_help_and_completions),
        cmocka_unit_test(test_bash_completes),
        cmocka_unit_test(test_errors_have_the_name_of_the_program),
        cmocka_unit_test(test_fish_completes),
    };

    if (argc != 2)
        return 2;
    torchrun = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
