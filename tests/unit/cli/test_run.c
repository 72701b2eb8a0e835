/* test_run.c - kubectl ptj run as a process: exit statuses, several pods, signals, and what it says is missing.
 *
 * usage: test_run <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "common/fsutil.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    snprintf(folder, sizeof(folder), "/tmp/ptj-run.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    *state = &p;
    return 0;
}

static int end(void **state)
{
    static const char *const FILES[] = {"job.yaml", "ready-0", "ready-1", "ended-0", "ended-1"};

    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        unlink(FILES[i]);
    assert_int_equal(chdir("/"), 0);
    rmdir(folder);
    ptj_end(*state);
    return 0;
}

/* A job whose pods run this script with sh. */
static void write_job(int replicas, const char *script)
{
    char text[2048];
    struct err err;

    snprintf(
        text, sizeof(text),
        "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n---\n"
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\nspec:\n"
        "  replicaSpecs:\n  - type: node\n    replicas: %d\n    template:\n      spec:\n        containers:\n"
        "        - name: pytorch\n          image: i\n          workingDir: /elsewhere\n          command: "
        "[sh, -c]\n"
        "          args:\n          - |\n            %s\n          env:\n          - name: TOKEN\n"
        "            valueFrom: {secretKeyRef: {name: hf, key: token}}\n",
        replicas, script);
    assert_int_equal(fs_write_atomic("job.yaml", text, strlen(text), &err), 0);
}

static void test_one_pod(void **state)
{
    struct ptj *p = *state;

    write_job(1, "echo $MASTER_ADDR $RANK $PTJ_JOB_UID in `pwd`; exit 7");
    ptj_expect(p, RUN("run", "job.yaml"), 7, "127.0.0.1 0 local-j in /tmp/ptj-run.",
               "TOKEN comes from key token of the secret hf: not set");
    ptj_expect(p, RUN("run", "job.yaml"), 7, "local-j", "/elsewhere is not used");
    setenv("TOKEN", "x", 1);
    ptj_expect(p, RUN("run", "job.yaml", "--dry-run"), 0, "TOKEN=x", "taken from this shell");
    unsetenv("TOKEN");
    write_job(1, "kill -9 $$$$");
    ptj_expect(p, RUN("run", "job.yaml"), 128 + 9, NULL, "");
}

static void test_several_pods(void **state)
{
    struct ptj *p = *state;

    write_job(2, "echo rank $RANK of $WORLD_SIZE");
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "rank 0 of 2\n"));
    assert_non_null(strstr(r.out, "rank 1 of 2\n"));
    ptj_forget(&r);
    ptj_expect(p, RUN("run", "job.yaml", "--index=1"), 0, "rank 1 of 2", "");
    /* The failure of one ends the other, which would run for ever. */
    write_job(2, "test $RANK = 0 || exit 3; while :; do sleep 1; done");
    ptj_expect(p, RUN("run", "job.yaml"), 3, NULL, "");
    write_job(2, "test $RANK = 0 || kill -9 $$$$; while :; do sleep 1; done");
    ptj_expect(p, RUN("run", "job.yaml"), 128 + 9, NULL, "");
    /* The success of the first decides. A process that has not been waited for still takes signals. */
    write_job(
        2, "test $RANK = 1 || { echo $$$$ > ended-0; exit 0; }; until test -s ended-0; do sleep 0.01; done; "
           "while kill -0 `cat ended-0`; do sleep 0.01; done; exit 9");
    ptj_expect(p, RUN("run", "job.yaml"), 0, NULL, "");
    write_job(17, "true");
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, "at most 16 run on one machine");
    ptj_expect(p, RUN("run", "job.yaml", "--index", "16"), 0, NULL, "");
}

static void wait_for(const char *file)
{
    while (access(file, F_OK) < 0)
        usleep(2000);
}

static void test_signals_are_passed_on(void **state)
{
    struct ptj *p = *state;

    write_job(2, "trap 'touch ended-$RANK; exit 5' TERM; touch ready-$RANK; while :; do sleep 0.01; done");
    pid_t pid = ptj_start(p, RUN("run", "job.yaml"));
    wait_for("ready-0");
    wait_for("ready-1");
    assert_int_equal(kill(pid, SIGTERM), 0);
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 5);
    assert_int_equal(access("ended-0", F_OK), 0);
    assert_int_equal(access("ended-1", F_OK), 0);
    ptj_forget(&r);
}

static void test_mistakes(void **state)
{
    struct ptj *p = *state;
    struct err err;
    static const char BAD[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
        "spec: {replicaSpecs: [{type: node, replicas: x}]}\n";
    static const char IMAGES[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
        "spec: {replicaSpecs: [{type: node, template: {spec: {containers: [{name: c, image: i}]}}}]}\n";
    static const char GONE[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
        "spec: {replicaSpecs: [{type: node, template: {spec: {containers: [{name: c, image: i, "
        "command: [no-such-program]}]}}}]}\n";

    /* A path that is there is this machine's; of a name that only begins alike nothing is said. */
    static const char MOUNTS[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {generateName: j-}\n"
        "spec: {replicaSpecs: [{type: node, template: {spec: {containers: [{name: c, image: i, command: ["
        "echo, /ptj-run/code/a.py, /ptj-run/codebase, --in=/ptj-run/data/a, /tmp], volumeMounts: [{name: "
        "a, mountPath: "
        "/ptj-run/code}, {name: b, mountPath: /ptj-run/data/}, {name: t, mountPath: /tmp}]}], volumes: "
        "[{name: a, emptyDir: {}}, "
        "{name: b, emptyDir: {}}, {name: t, emptyDir: {}}]}}}]}\n";

    write_job(1, "true");
    ptj_expect(p, RUN("run", "job.yaml", "--name", "k"), 1, NULL,
               "expected one PyTorchTrainingJob named k, found 0");
    ptj_expect(p, RUN("run", "job.yaml", "--type", "ps"), 1, NULL, "the job has no type \"ps\"");
    ptj_expect(p, RUN("run", "job.yaml", "--index", "1"), 1, NULL, "expected 0..0");
    assert_int_equal(fs_write_atomic("job.yaml", BAD, strlen(BAD), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL,
               "job.yaml:1: spec.replicaSpecs[0].replicas: expected an integer");
    assert_int_equal(fs_write_atomic("job.yaml", IMAGES, strlen(IMAGES), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, "has no command: that of its image is not known here");
    assert_int_equal(fs_write_atomic("job.yaml", GONE, strlen(GONE), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 127, NULL, "no-such-program: No such file or directory");
    assert_int_equal(fs_write_atomic("job.yaml", MOUNTS, strlen(MOUNTS), &err), 0);
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.err, " --in=/ptj-run/data/a lies on the volume mounted at /ptj-run/data:"));
    assert_non_null(strstr(r.err, " /ptj-run/code/a.py lies on the volume mounted at /ptj-run/code:"));
    assert_null(strstr(r.err, "codebase"));
    assert_null(strstr(r.err, "mounted at /tmp"));
    ptj_forget(&r);
}

#define HOSTILE                                                                                              \
    "\x1b[2J\x1b]0;title\a\xc2\x9b"                                                                          \
    "2J"

/* A manifest of others: into a pipe it comes as it is, since that is pasted; no terminal gets its escape sequences. */
static void test_hostile_values(void **state)
{
    static const char JOB[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
        "spec: {replicaSpecs: [{type: node, template: {spec: {containers: [{name: c, image: i, "
        "command: [\"\\e[2Jno-such\", \"a\\tb\"], env: [{name: X, value: "
        "\"first\\n<\\e[2J\\e]0;title\\a\\x9b2J>\"}]}]}}}]}\n";
    struct ptj *p = *state;
    struct onpty t;
    struct err err;

    assert_int_equal(fs_write_atomic("job.yaml", JOB, strlen(JOB), &err), 0);
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml", "--dry-run"));
    assert_int_equal(r.status, 0);
    assert_string_equal(r.err, "");
    assert_non_null(strstr(r.out, "'X=first\n<" HOSTILE ">'"));
    ptj_forget(&r);
    onpty_shell(&t, p, 120, 40);
    onpty_keys(&t, "$PTJ run job.yaml --dry-run; echo status $?\n");
    onpty_until(&t, "status 0");
    onpty_until(&t, "<?2J>'");
    onpty_until(&t, "'no-such' 'a b'");
    onpty_until(&t, "not all of it is shown");
    onpty_keys(&t, "$PTJ run job.yaml; echo second $?\n");
    onpty_until(&t, "second 127");
    assert_int_equal(t.vt.cleared, 0);
    onpty_end(&t);
}

/* So does the message of a pod that does not start beside another. */
static void test_hostile_program(void **state)
{
    static const char JOB[] =
        "apiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
        "spec: {replicaSpecs: [{type: node, replicas: 2, template: {spec: {containers: [{name: c, image: i, "
        "command: [\"<\\e[2J>no-such\"]}]}}}]}\n";
    struct ptj *p = *state;
    struct err err;

    assert_int_equal(fs_write_atomic("job.yaml", JOB, strlen(JOB), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 127, NULL, "<>no-such: No such file or directory");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_pod, begin, end),
        cmocka_unit_test_setup_teardown(test_several_pods, begin, end),
        cmocka_unit_test_setup_teardown(test_signals_are_passed_on, begin, end),
        cmocka_unit_test_setup_teardown(test_mistakes, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_values, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_program, begin, end),
    };

    if (argc != 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
