/* test_run_id.c - which starts are the same run. */
#include "test.h"

#include "common/contract.h"
#include "host/rank_contract.h"
#include "trainer/state/run_id.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
    const char *job, *launch, *restarts, *errors, *attempt;
} environment;

static char *get(const char *name)
{
    const char *value = strcmp(name, CONTRACT_ENV_JOB_UID) == 0         ? environment.job
                        : strcmp(name, CONTRACT_ENV_RUN_ID) == 0        ? environment.launch
                        : strcmp(name, CONTRACT_ENV_RESTART_COUNT) == 0 ? environment.restarts
                        : strcmp(name, CONTRACT_ENV_ERROR_FILE) == 0    ? environment.errors
                        : strcmp(name, CONTRACT_ENV_ATTEMPT) == 0       ? environment.attempt
                                                                        : NULL;
    return (char *)value;
}

static struct run_id found(const char *job, const char *launch, const char *restarts)
{
    struct run_id id;
    struct err err = {0};

    environment.job = job;
    environment.launch = launch;
    environment.restarts = restarts;
    if (run_id_find(get, &id, &err))
        fail_msg("%s", err.msg);
    return id;
}

static void a_given_name_is_taken(void **state)
{
    (void)state;
    static const struct {
        const char *job, *launch, *restarts, *text;
        bool later;
    } cases[] = {
        {"uid", NULL, NULL, "uid", true},  {"uid", "id", "0", "uid", true},
        {"", "id", "0", "id", false},      {NULL, "id", "2", "id", true},
        {"none", "x", NULL, "none", true}, {NULL, "nonesuch", NULL, "nonesuch", false},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run_id id = found(cases[i].job, cases[i].launch, cases[i].restarts);
        assert_string_equal(id.text, cases[i].text);
        assert_int_equal(id.later_attempt, cases[i].later);
        assert_false(id.made_up);
    }
}

/* The attempt of a job; -1: there is no mark. */
static void the_attempt_is_known_in_a_job(void **state)
{
    (void)state;
    static const struct {
        const char *job, *launch, *attempt;
        int number;
    } cases[] = {
        {"uid", "uid-0", NULL, 0},   {"uid", "uid-12", "3", 12},
        {"uid", NULL, "3", 3},       {"uid", "mine", "3", 3},
        {"uid", "uid-", "3", -1},    {"uid", "uid-x", NULL, -1},
        {"uid", "uid--1", NULL, -1}, {"uid", "uid-9999999999", NULL, -1},
        {"uid", NULL, NULL, -1},     {NULL, "uid-4", "4", -1},
        {"", "-4", "4", -1},         {"uid", "uid2-4", NULL, -1},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        environment.attempt = cases[i].attempt;
        const struct run_id id = found(cases[i].job, cases[i].launch, "0");
        environment.attempt = NULL;
        assert_int_equal(id.mark.known ? id.mark.number : -1, cases[i].number);
        assert_int_equal(id.mark.launch, id.launch);
        assert_false(id.mark.held);
    }
}

/* What the file of a checkpoint cannot hold is cut, the same each time. */
static void a_long_name_is_cut(void **state)
{
    (void)state;
    char name[2 * MANIFEST_RUN_ID_BYTES];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(strlen(found(name, NULL, NULL).text), MANIFEST_RUN_ID_BYTES - 1);
}

static void a_nameless_launch_is_named_by_its_process(void **state)
{
    (void)state;
    struct run_id first = found(NULL, "none", "0");
    struct run_id again = found(NULL, "none", "1");
    int pipes[2];
    char other[MANIFEST_RUN_ID_BYTES] = "";
    int status;

    assert_string_equal(first.text, again.text);
    assert_false(first.made_up);
    assert_false(first.later_attempt);
    assert_true(again.later_attempt);
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct run_id id = found(NULL, "none", "0");
        _exit(write(pipes[1], id.text, sizeof(id.text)) == (ssize_t)sizeof(id.text) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(pipes[0], other, sizeof(other)), sizeof(other));
    close(pipes[0]);
    close(pipes[1]);
    assert_true(other[0] != '\0');
    assert_string_not_equal(first.text, other);
}

/* Also by a wrapper script, which is another process for each attempt: the folder of error files is the launch's. */
static void a_launch_is_known_by_its_folder(void **state)
{
    (void)state;
    static const char *const files[] = {"/tmp/a/none_x/attempt_0/0/error.json",
                                        "/tmp/a/none_x/attempt_1/3/error.json",
                                        "/tmp/a/none_y/attempt_0/0/error.json", "/elsewhere/error.json"};
    struct run_id id[ARRAY_LEN(files)], named[ARRAY_LEN(files)];

    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        environment.errors = files[i];
        id[i] = found(NULL, "none", "0");
        named[i] = found(NULL, "name", "0");
        assert_string_equal(named[i].text, "name");
        assert_int_equal(named[i].launch, id[i].launch);
        assert_int_not_equal(id[i].launch, 0);
    }
    environment.errors = "/home/attempt_3/none_x/attempt_0/0/error.json";
    assert_false(found(NULL, "none", "0").later_attempt);
    environment.errors = NULL;
    assert_string_equal(id[0].text, id[1].text);
    assert_int_equal(id[0].launch, id[1].launch);
    assert_false(id[0].later_attempt);
    assert_true(id[1].later_attempt); /* of several nodes a later round, which counts no restart */
    for (int i = 2; i < 4; i++) {
        assert_string_not_equal(id[0].text, id[i].text);
        assert_int_not_equal(id[0].launch, id[i].launch);
    }
    assert_int_equal(found(NULL, NULL, NULL).launch, 0);
}

static void a_start_by_hand_is_a_run_of_its_own(void **state)
{
    (void)state;
    struct run_id a = found(NULL, NULL, NULL);
    struct run_id b = found("", "", NULL);
    struct run_id job = found("uid", NULL, NULL);
    struct run_id given = b;

    assert_true(a.made_up && b.made_up);
    assert_false(a.later_attempt);
    assert_string_not_equal(a.text, b.text);
    /* Names pass from one such run to the next, and to and from nobody else. */
    assert_true(run_id_take_over(&b, a.text));
    assert_string_equal(a.text, b.text);
    assert_false(run_id_take_over(&given, "uid"));
    assert_string_not_equal(given.text, "uid");
    assert_false(run_id_take_over(&job, a.text));
    assert_string_equal(job.text, "uid");
}

/* Ids that are no names of folders have folders, too, and two of them two, as has each configuration. */
static void every_run_has_a_folder_of_its_own(void **state)
{
    static const char *const ids[] = {"a", "a/b", "../c", ".d", "", "step-0000000001", "e f", "\xc3\xa4"};
    char dir[2 * ARRAY_LEN(ids)][PATH_MAX];
    char longest[MANIFEST_RUN_ID_BYTES], there[PATH_MAX];
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(dir); i++) {
        assert_int_equal(run_id_dir("d", ids[i / 2], i % 2 ? 0xabc : 0x1234abcd, dir[i], &err), 0);
        assert_true(strncmp(dir[i], "d/", 2) == 0 && dir[i][2] != '.' && !strchr(dir[i] + 2, '/'));
        assert_int_not_equal(strncmp(dir[i], "d/step-", 7), 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(dir[i], dir[k]);
    }
    assert_string_equal(dir[0], "d/a-1234abcd");
    assert_string_equal(dir[1], "d/a-00000abc");
    assert_string_equal(dir[2], "d/run-e620c3190468cf61-1234abcd");
    memset(longest, 'x', sizeof(longest));
    for (size_t len = RUN_ID_PLAIN_BYTES - 1; len < RUN_ID_PLAIN_BYTES + 1; len++) {
        longest[len] = '\0';
        assert_int_equal(run_id_dir("d", longest, 1, there, &err), 0);
        assert_int_equal(strncmp(there, "d/run-", 6) == 0, len == RUN_ID_PLAIN_BYTES);
        longest[len] = 'x';
    }
    memset(there, 'y', sizeof(there) - 1);
    there[sizeof(there) - 1] = '\0';
    assert_int_equal(run_id_dir(there, "a", 1, dir[0], &err), -1);
    assert_non_null(strstr(err.msg, "--ckpt_dir: yyy"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_given_name_is_taken),
        cmocka_unit_test(the_attempt_is_known_in_a_job),
        cmocka_unit_test(a_long_name_is_cut),
        cmocka_unit_test(a_nameless_launch_is_named_by_its_process),
        cmocka_unit_test(a_launch_is_known_by_its_folder),
        cmocka_unit_test(a_start_by_hand_is_a_run_of_its_own),
        cmocka_unit_test(every_run_has_a_folder_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
