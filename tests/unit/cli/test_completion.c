/* test_completion.c - completion as the shells and kubectl call it, and the man page.
 *
 * usage: test_completion <kubectl-ptj> <kubectl_complete-ptj>
 */
#include "test.h"

#include "ptj.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *plugin;

enum { OUT_MAX = 1 << 16 };

#define COMPLETE(...) RUN("__complete", "--", __VA_ARGS__)

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    /* A machine that is busy may take longer than a person would wait. */
    assert_int_equal(setenv("PTJ_COMPLETION_SECONDS", "600", 1), 0);
    ptj_put_job(&p, "bert", "{}", "{\"phase\":\"Running\"}");
    ptj_put_job(&p, "bart", "{}", "{}");
    ptj_put_job(&p, "llama", "{}", "{\"phase\":\"Failed\"}");
    *state = &p;
    return 0;
}

static void expect(struct ptj *p, const char *const *args, const char *want)
{
    struct ptj_result r = ptj_run(p, args);

    assert_string_equal(r.out, want);
    assert_string_equal(r.err, "");
    assert_int_equal(r.status, 0);
    ptj_forget(&r);
}

static void test_words(void **state)
{
    struct ptj *p = *state;

    expect(p, COMPLETE("susp"), "suspend\tdelete a job's pods, and keep the job\n:4\n");
    expect(p, COMPLETE("watch", "--unt"),
           "--until\tend when the job is running, or finished (succeeded or failed)\n:4\n");
    expect(p, COMPLETE("watch", "--until", "r"), "running\t\n:4\n");
    expect(p, COMPLETE("watch", "--until=f"), "--until=finished\t\n:4\n");
    expect(p, COMPLETE("watch", "--until=x"), ":4\n");
    expect(p, COMPLETE("--kubeconfig", "/e"), ":0\n");
    expect(p, COMPLETE("run", "--volume", "/e"), ":4\n"); /* a name comes first */
    expect(p, COMPLETE("nonsense", "--unknown", "x"), ":4\n");
    expect(p, COMPLETE("__com"), ":4\n");
    assert_int_equal(fake_log_count(p->server, NULL, NULL), 0);
}

static void test_jobs(void **state)
{
    struct ptj *p = *state;

    expect(p, COMPLETE("watch", "ber"), "bert\tRunning\n:4\n");
    expect(p, COMPLETE("suspend", "-n", "team", "l"), "llama\tFailed\n:4\n");
    expect(p, COMPLETE("watch", "-n", "other", ""), ":4\n");
    expect(p, COMPLETE("watch", "bert", ""), ":4\n");
}

/* Nobody who presses a key reads an error, or waits for a server. */
static void test_quiet(void **state)
{
    struct ptj *p = *state;

    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_STATUS, .status = 403});
    expect(p, COMPLETE("watch", ""), ":4\n");
    fake_plan_fault(p->server, &(struct fake_fault_plan){.fault = FAKE_HANG_BEFORE});
    assert_int_equal(unsetenv("PTJ_COMPLETION_SECONDS"), 0);
    expect(p, COMPLETE("watch", ""), ":4\n");
    assert_int_equal(ptj_folders(p), 0);
    expect(p, COMPLETE("watch", "--context", "none", ""), ":4\n");
}

/* What a shell prints that has both programs in its PATH. */
static void expect_shell(const struct ptj *p, const char *shell, const char *script, const char *want)
{
    char line[4096], out[OUT_MAX], of_program[512], of_plugin[512];

    snprintf(of_program, sizeof(of_program), "%s", ptj_program);
    snprintf(of_plugin, sizeof(of_plugin), "%s", plugin);
    snprintf(line, sizeof(line), "PATH='%s:%s':$PATH KUBECTL=%s/kubectl %s 2>&1 <<'END'\n%s\nEND\n",
             dirname(of_program), dirname(of_plugin), p->dir, shell, script);
    FILE *f = popen(line, "r");
    assert_non_null(f);
    const size_t n = fread(out, 1, sizeof(out) - 1, f);
    out[n] = '\0';
    assert_int_equal(pclose(f), 0);
    assert_string_equal(out, want);
}

#define BASH(words, at)                                                                                      \
    "source <(kubectl-ptj completion bash); COMP_WORDS=(kubectl-ptj " words "); COMP_CWORD=" at              \
    "; _kubectl_ptj; printf '%s\\n' \"${COMPREPLY[@]}\" | sort"

static void test_bash(void **state)
{
    struct ptj *p = *state;

    expect_shell(p, "bash --norc", BASH("wat", "1"), "watch\n");
    expect_shell(p, "bash --norc", BASH("suspend b", "2"), "bart\nbert\n");
    expect_shell(p, "bash --norc", BASH("watch --until = f", "4"), "finished\n");
    expect_shell(p, "bash --norc", BASH("watch --until = ''", "4"), "finished\nrunning\n");
    expect_shell(p, "bash --norc", BASH("watch bert --timeout 5 --until r x", "6"), "running\n");
    expect_shell(p, "bash --norc", "cd /; " BASH("--kubeconfig et", "2"), "etc\n");
    expect_shell(p, "bash --norc", "source <(kubectl-ptj completion bash); complete -p kubectl-ptj",
                 "complete -F _kubectl_ptj kubectl-ptj\n");
}

#define ZSH(line, at)                                                                                        \
    "source <(kubectl-ptj completion zsh); _describe() { print -l -- ${(P)2} }; _files() { print files };"   \
    "compset() { }; words=(kubectl-ptj " line "); CURRENT=" at "; _kubectl_ptj"

static void test_zsh(void **state)
{
    struct ptj *p = *state;

    if (system("zsh -c true >/dev/null 2>&1") != 0)
        skip();
    expect_shell(p, "zsh -f", ZSH("susp", "2"), "suspend:delete a job's pods, and keep the job\n");
    expect_shell(p, "zsh -f", ZSH("suspend ber", "3"), "bert:Running\n");
    expect_shell(p, "zsh -f", ZSH("--kubeconfig et", "3"), "files\n");
}

#define FISH(line) "kubectl-ptj completion fish | source; complete -C 'kubectl-ptj " line "'"

static void test_fish(void **state)
{
    struct ptj *p = *state;

    if (system("fish --no-config -c true >/dev/null 2>&1") != 0)
        skip();
    expect_shell(p, "fish --no-config", FISH("susp"), "suspend\tdelete a job\'s pods, and keep the job\n");
    expect_shell(p, "fish --no-config", FISH("suspend b"), "bart\nbert\tRunning\n");
    expect_shell(p, "fish --no-config", FISH("watch --until r"), "running\n");
    expect_shell(p, "fish --no-config", FISH("watch --until=f"), "--until=finished\n");
    expect_shell(p, "fish --no-config", FISH("suspend bert "), "");
    expect_shell(p, "fish --no-config", "cd /; " FISH("--kubeconfig et"), "etc/\n");
    expect_shell(p, "fish --no-config", "cd /; " FISH("--kubeconfig=et"), "--kubeconfig=etc/\n");
}

static void test_kubectl(void **state)
{
    expect_shell(*state, "sh", "kubectl_complete-ptj watch ''; kubectl_complete-ptj -n",
                 "bart\t\nbert\tRunning\nllama\tFailed\n:4\n:4\n");
}

static void test_man(void **state)
{
    struct ptj *p = *state;

    expect_shell(p, "sh", "kubectl-ptj man | groff -man -ww -Tutf8 >/dev/null", "");
    expect_shell(p, "sh",
                 "kubectl-ptj man | groff -man -Tascii -P-cbou | grep -c -e '--timeout=TIME' -e '^NAME'",
                 "2\n");
    ptj_expect(p, RUN("completion", "csh"), 2, NULL, "expected bash, zsh or fish, got \"csh\"");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_words, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_jobs, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_quiet, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_bash, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_zsh, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_fish, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_kubectl, begin, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_man, begin, ptj_teardown),
    };

    if (argc < 3)
        return 2;
    ptj_program = argv[1];
    plugin = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
