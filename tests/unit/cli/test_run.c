/* test_run.c - kubectl ptj run as a process: exit statuses, several pods, signals, and its report of what is missing.
 *
 * usage: test_run <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "common/fsutil.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64], tmp[80];

static int begin(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    snprintf(folder, sizeof(folder), "/tmp/ptj-run.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(mkdir("tmp", 0700), 0);
    snprintf(tmp, sizeof(tmp), "%s/tmp", folder);
    setenv("TMPDIR", tmp, 1);
    *state = &p;
    return 0;
}

static int end(void **state)
{
    static const char *const FILES[] = {"job.yaml", "ready-0",  "ready-1", "ended-0",
                                        "ended-1",  "train.py", "torchrun"};

    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        unlink(FILES[i]);
    assert_int_equal(rmdir("tmp"), 0); /* nothing is left in it */
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

/* Wait until the process has made the file. */
static void wait_for(pid_t pid, const char *file)
{
    enum { POLLS_MAX = 100000 }; /* of 2 ms each */
    siginfo_t info = {0};

    for (int i = 0; access(file, F_OK) < 0; i++, usleep(2000)) {
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        if (info.si_pid || i == POLLS_MAX)
            fail_msg("%s never came%s", file, info.si_pid ? ": the program has ended" : "");
    }
}

static void test_signals_are_passed_on(void **state)
{
    struct ptj *p = *state;

    write_job(2, "trap 'touch ended-$RANK; exit 5' TERM; touch ready-$RANK; while :; do sleep 0.01; done");
    pid_t pid = ptj_start(p, RUN("run", "job.yaml"));
    wait_for(pid, "ready-0");
    wait_for(pid, "ready-1");
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

    write_job(1, "true");
    ptj_expect(p, RUN("run", "job.yaml", "--name", "k"), 1, NULL,
               "expected one PyTorchTrainingJob named k, found 0");
    ptj_expect(p, RUN("run", "job.yaml", "--type", "ps"), 1, NULL, "the job has no type \"ps\"");
    ptj_expect(p, RUN("run", "job.yaml", "--index", "1"), 1, NULL, "expected 0..0");
    assert_int_equal(fs_write_atomic("job.yaml", BAD, strlen(BAD), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL,
               "job.yaml:1: spec.replicaSpecs[0].replicas: expected an integer");
    assert_int_equal(fs_write_atomic("job.yaml", IMAGES, strlen(IMAGES), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, "has no command, and that of its image is not known here");
    assert_int_equal(fs_write_atomic("job.yaml", GONE, strlen(GONE), &err), 0);
    ptj_expect(p, RUN("run", "job.yaml"), 127, NULL, "no-such-program: No such file or directory");
}

/* A job whose pods run this script of sh, with these lists of volumes and mounts, behind these objects. */
static void write_volumes(const char *objects, int replicas, const char *volumes, const char *mounts,
                          const char *script)
{
    char text[4096];
    struct err err;

    snprintf(text, sizeof(text),
             "%sapiVersion: batch.tensorstack.dev/v1beta1\nkind: PyTorchTrainingJob\nmetadata: {name: j}\n"
             "spec: {replicaSpecs: [{type: node, replicas: %d, template: {spec: {volumes: [%s], containers: "
             "[{name: c, image: i, volumeMounts: [%s], env: [{name: DATA, value: '/data/x:/mnt/data'}],\n"
             "command: [sh, -c, '%s', /code/run]}]}}}]}\n",
             objects, replicas, volumes, mounts, script);
    assert_int_equal(fs_write_atomic("job.yaml", text, strlen(text), &err), 0);
}

#define MAP                                                                                                  \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other, namespace: elsewhere}\ndata: {a: "             \
    "wrong}\n---\n"                                                                                          \
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\n"                                                 \
    "data: {a: text, run.sh: \"#!/bin/sh\\necho ran\\n\"}\nbinaryData: {b: \"AAH\\n/\"}\n---\n"
#define OF_MAP "{name: v, configMap: {name: m, defaultMode: 0555}}"
#define AT_CODE "{name: v, mountPath: /code/}"

static size_t folders(void)
{
    glob_t found = {0};
    const size_t n = glob("tmp/ptj-run-??????", 0, NULL, &found) == 0 ? found.gl_pathc : 0;

    globfree(&found);
    return n;
}

/* ConfigMaps of the file are files, whatever in the command names them; afterwards they are gone. */
static void test_config_maps(void **state)
{
    struct ptj *p = *state;
    const size_t before = folders();

    write_volumes(MAP, 1, OF_MAP, AT_CODE,
                  "cat /code/a; /code/run.sh; od -An -tx1 /code/b; echo /codes x/code -I=/code $0; exit 3");
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(r.status, 3);
    assert_non_null(strstr(r.out, "textran\n 00 01 ff\n/codes x/code -I=/tmp/ptj-run."));
    assert_non_null(strstr(r.out, "/j-node-0-0 /tmp/ptj-run."));
    assert_string_equal(r.err, "");
    ptj_forget(&r);
    write_volumes(
        MAP, 2,
        "{name: v, configMap: {name: m, items: [{key: a, path: x/y/z, mode: 0600}, {key: b, path: b}]}}",
        "{name: v, mountPath: /code/deep/er, subPath: x/y}, {name: v, mountPath: /code}",
        "echo $(cat /code/deep/er/z; ls /code; stat -c %a /code/x/y/z)");
    r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(r.status, 0);
    assert_string_equal(r.out, "textb x 600\ntextb x 600\n");
    ptj_forget(&r);
    assert_int_equal(folders(), before);
    ptj_expect(p, RUN("run", "job.yaml", "--dry-run"), 0, "cat /code/deep/er/z",
               "pod j-node-0: /code is on the volume v, for which a run makes a temporary folder\n");
    assert_int_equal(folders(), before);
}

/* A list without items is none: all keys are files. */
static void test_no_items(void **state)
{
    static const char *const VOLUMES[] = {"{name: v, configMap: {name: m, items: }}",
                                          "{name: v, configMap: {name: m, items: []}}"};

    for (size_t i = 0; i < ARRAY_LEN(VOLUMES); i++) {
        write_volumes(MAP, 1, VOLUMES[i], AT_CODE, "echo $(ls /code)");
        ptj_expect(*state, RUN("run", "job.yaml"), 0, "a b run.sh\n", NULL);
    }
}

/* What `submit --dry-run` prints runs here. */
static void test_submitted(void **state)
{
    static const char SCRIPT[] = "#!/bin/sh\necho \"trained $1\"\n";
    static const char TORCHRUN[] =
        "#!/bin/sh\nwhile case $1 in --*) ;; *) false ;; esac; do shift; done\nexec \"$@\"\n";
    struct ptj *p = *state;
    char path[4200];
    struct err err;

    assert_int_equal(fs_write_atomic("train.py", SCRIPT, strlen(SCRIPT), &err), 0);
    ptj_script("torchrun", TORCHRUN);
    struct ptj_result r =
        ptj_run(p, RUN("submit", "train.py", "--image=i", "--dry-run", "--", "$(PATH)$$ well"));
    assert_int_equal(fs_write_atomic("job.yaml", r.out, strlen(r.out), &err), 0);
    ptj_forget(&r);
    const char *old = getenv("PATH");
    snprintf(path, sizeof(path), "%s:%s", folder, old);
    cleanup_free char *kept = strdup(old);
    setenv("PATH", path, 1);
    ptj_expect(p, RUN("run", "job.yaml"), 0, "trained $(PATH)$$ well\n", NULL);
    setenv("PATH", kept, 1);
}

static void test_other_volumes(void **state)
{
    static const struct {
        const char *volume, *want;
    } REFUSED[] = {
        {"{name: v, persistentVolumeClaim: {claimName: c}}",
         "pod j-node-0: /code is on the volume v (persistentVolumeClaim c), which is not on this machine: "
         "give it a folder: --volume v=FOLDER\n"},
        {"{name: v, secret: {secretName: s}}", "(secret s)"},
        {"{name: v, hostPath: {path: /}}", "(hostPath /)"},
        {"{name: v, nfs: {server: s, path: /export}}", "(nfs /export)"},
        {"{name: v, projected: {sources: []}}", "(projected)"},
        {"{name: v, downwardAPI: {items: []}}", "(downwardAPI)"},
        {"{name: v, configMap: {name: n}}", "(configMap n), which is not in the manifest"},
        {"{name: v, configMap: {name: other}}", "(configMap other), which is not in the manifest"},
        {"{name: w, emptyDir: {}}",
         "volume \"v\": expected an absolute path below /, and a volume of the template"},
    };
    struct ptj *p = *state;
    char option[128];

    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        write_volumes(MAP, 1, REFUSED[i].volume, AT_CODE, "true");
        ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, REFUSED[i].want);
    }
    write_volumes("", 1, REFUSED[0].volume, AT_CODE, "ls /code");
    ptj_expect(p, RUN("run", "job.yaml", "--dry-run"), 1, "ls /code", "(persistentVolumeClaim c)");
    snprintf(option, sizeof(option), "--volume=v=%s", folder);
    ptj_expect(p, RUN("run", "job.yaml", option), 0, "job.yaml\n", NULL);
    ptj_expect(p, RUN("run", "job.yaml", "--volume=v=."), 0, "job.yaml\n", NULL);
    ptj_expect(p, RUN("run", "job.yaml", "--volume=v"), 2, NULL, "--volume: expected NAME=FOLDER");
    ptj_expect(p, RUN("run", "job.yaml", "--volume=x=."), 1, NULL, "--volume: the job has no volume \"x\"");
    ptj_expect(p, RUN("run", "job.yaml", "--volume=v=none"), 1, NULL, "--volume: none: No such file");
    ptj_expect(p, RUN("run", "job.yaml", "--volume=v=job.yaml"), 1, NULL, "job.yaml: expected a folder");
    /* Each pod has its own. */
    write_volumes("", 2, "{name: v, emptyDir: {}}, {name: s, emptyDir: {medium: Memory}}",
                  "{name: v, mountPath: /data, subPath: a/b}, {name: s, mountPath: /dev/shm}",
                  "touch /data/$RANK; echo $(ls /data /dev/shm/. -d; ls /data) $DATA");
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(r.status, 0);
    assert_non_null(strstr(r.out, "/dev/shm/. /tmp/ptj-run."));
    assert_non_null(strstr(r.out, "/j-node-0-0/a/b 0 /tmp/"));
    assert_non_null(strstr(r.out, "/j-node-1-0/a/b 1 /tmp/"));
    assert_non_null(strstr(r.out, "/j-node-1-0/a/b/x:/mnt/data\n"));
    ptj_forget(&r);
}

/* A manifest of a stranger writes below the temporary folder, or not at all. */
static void test_paths_stay_inside(void **state)
{
    static const struct {
        const char *map, *volume, *mount, *want;
    } CASES[] = {
        {"data: {../a: x}", "name: m", "", "job.yaml:1: data: the key \"../a\": expected"},
        {"data: {..: x}", "name: m", "", "job.yaml:1: data: the key \"..\": expected"},
        {"data: {.: x}", "name: m", "", "job.yaml:1: data: the key \".\": expected"},
        {"data: {'': x}", "name: m", "", "job.yaml:1: data: the key \"\": expected"},
        {"binaryData: {/etc/x: eA==}", "name: m", "", "job.yaml:1: binaryData: the key \"/etc/x\": expected"},
        {"data: {a: x}", "name: m, items: [{key: a, path: ../a}]", "", "the path \"../a\" leads out of it"},
        {"data: {a: x}", "name: m, items: [{key: a, path: b/../../a}]", "", "leads out of it"},
        {"data: {a: x}", "name: m, items: [{key: a, path: /tmp/ptj-a}]", "", "leads out of it"},
        {"data: {a: x}", "name: m, items: [{key: a, path: ''}]", "", "leads out of it"},
        {"data: {a: x}", "name: m, items: [{key: b, path: b}]", "", "has no text under the key b"},
        {"data: {a: x}", "name: m", ", subPath: ../..", "a subPath that leads out of the volume"},
        {"data: {a: x}", "name: m", ", subPath: /etc", "a subPath that leads out of the volume"},
        {"data: {a: x}", "name: m", ", subPathExpr: $(A)", "a subPathExpr"},
        {"binaryData: {a: '?'}", "name: m", "", "ConfigMap m, key a: not base64"},
        {"binaryData: {a: 'QQ'}", "name: m", "", "ConfigMap m, key a: not base64"},
        {"data: {a: 1}", "name: m", "", "job.yaml:1: data: the key \"a\": expected a string as its value"},
        {"data: [a, b]", "name: m", "", "job.yaml:1: data: expected an object of keys and strings\n"},
        {"data: hello", "name: m", "", "job.yaml:1: data: expected an object of keys and strings\n"},
        {"binaryData: [eA==]", "name: m", "", "job.yaml:1: binaryData: expected an object"},
        {"binaryData: [eA==]", "name: m, items: [{key: a, path: a}]", "", "binaryData: expected an object"},
        {"data: {a: x}\nbinaryData: {a: eA==}", "name: m", "", "binaryData: the key \"a\" is in data, too\n"},
        {"data: {a: x}", "name: m, items: [{key: a, path: b}, {key: a, path: b}]", "",
         "the path \"b\" is given twice"},
        {"data: {a: x}", "name: m, items: [{key: a, path: .}]", "", "the path \".\" is given twice"},
    };
    struct ptj *p = *state;
    char map[256], volume[256], mount[128];
    const size_t before = folders();

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        snprintf(map, sizeof(map), "kind: ConfigMap\nmetadata: {name: m}\n%s\n---\n", CASES[i].map);
        snprintf(volume, sizeof(volume), "{name: '../../v', configMap: {%s}}", CASES[i].volume);
        snprintf(mount, sizeof(mount), "{name: '../../v', mountPath: /code%s}", CASES[i].mount);
        write_volumes(map, 1, volume, mount, "echo started");
        ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, CASES[i].want);
    }
    assert_int_equal(folders(), before);
    write_volumes("kind: ConfigMap\nmetadata: {name: m}\ndata: [a]\n---\n", 1, OF_MAP, AT_CODE, "true");
    ptj_expect(p, RUN("run", "job.yaml", "--dry-run"), 1, NULL, "job.yaml:1: data: expected an object");
}

/* The kubelet mounts an empty folder, and leaves out a key. */
static void test_optional_config_maps(void **state)
{
    struct ptj *p = *state;

    write_volumes("", 1, "{name: v, configMap: {name: n, optional: true}}", AT_CODE, "ls -A /code; echo end");
    ptj_expect(p, RUN("run", "job.yaml"), 0, "end\n", NULL);
    ptj_expect(p, RUN("run", "job.yaml", "--dry-run"), 0, "ls -A /code", "for which a run makes a temporary");
    write_volumes("", 1, "{name: v, configMap: {name: n, optional: false}}", AT_CODE, "true");
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, "(configMap n), which is not in the manifest");
    write_volumes(MAP, 1,
                  "{name: v, configMap: {name: m, optional: true, items: [{key: z, path: z}, {key: a, path: "
                  "k}]}}",
                  AT_CODE, "ls -A /code");
    ptj_expect(p, RUN("run", "job.yaml"), 0, "k\n", NULL);
}

#define SCRATCH "{name: v, emptyDir: {}}", "{name: v, mountPath: /data}"

/* Whatever ends the program, and whatever it leaves there. */
static void test_temporary_folder_is_removed(void **state)
{
    static const int OVERRIDES[] = {1, 2, 3}; /* root's: to write, to search and to own everywhere */
    struct ptj *p = *state;
    const size_t before = folders();

    write_volumes("", 1, SCRATCH, "trap \"exit 5\" QUIT; touch ready-0; while :; do sleep 0.01; done");
    const pid_t pid = ptj_start(p, RUN("run", "job.yaml"));
    wait_for(pid, "ready-0");
    assert_int_equal(kill(pid, SIGQUIT), 0);
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 5);
    ptj_forget(&r);
    assert_int_equal(folders(), before);
    for (size_t i = 0; i < ARRAY_LEN(OVERRIDES); i++)
        (void)prctl(PR_CAPBSET_DROP, OVERRIDES[i], 0, 0, 0); /* what this runs is as any other user */
    write_volumes(
        "", 1, SCRATCH,
        "cd /data; mkdir -p a/b/c; touch a/b/c/f; chmod 0 a/b/c a/b; chmod 500 a; mkdir d; touch d/f; "
        "chmod 400 d");
    ptj_expect(p, RUN("run", "job.yaml"), 0, NULL, NULL);
    assert_int_equal(folders(), before);
}

static void test_temporary_folder_of_the_user(void **state)
{
    struct ptj *p = *state;
    char want[128];

    write_volumes("", 1, SCRATCH, "echo /data");
    snprintf(want, sizeof(want), "%s/ptj-run-", tmp);
    setenv("TMPDIR", "tmp", 1);
    ptj_expect(p, RUN("run", "job.yaml"), 0, want, NULL);
    setenv("TMPDIR", "none", 1);
    ptj_expect(p, RUN("run", "job.yaml"), 1, NULL, "none: No such file or directory");
    unsetenv("TMPDIR");
    struct ptj_result r = ptj_run(p, RUN("run", "job.yaml"));
    assert_int_equal(strncmp(r.out, "/tmp/ptj-run-", strlen("/tmp/ptj-run-")), 0);
    ptj_forget(&r);
    setenv("TMPDIR", tmp, 1);
    write_volumes("", 1, SCRATCH, "chmod 500 tmp");
    snprintf(want, sizeof(want), "could not remove the temporary folder %s/ptj-run-", tmp);
    ptj_expect(p, RUN("run", "job.yaml"), 0, NULL, want);
    assert_int_equal(system("chmod 700 tmp; rmdir tmp/ptj-run-*"), 0);
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
    onpty_until(&t, "does not show control characters");
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
        cmocka_unit_test_setup_teardown(test_config_maps, begin, end),
        cmocka_unit_test_setup_teardown(test_no_items, begin, end),
        cmocka_unit_test_setup_teardown(test_submitted, begin, end),
        cmocka_unit_test_setup_teardown(test_other_volumes, begin, end),
        cmocka_unit_test_setup_teardown(test_paths_stay_inside, begin, end),
        cmocka_unit_test_setup_teardown(test_optional_config_maps, begin, end),
        cmocka_unit_test_setup_teardown(test_temporary_folder_is_removed, begin, end),
        cmocka_unit_test_setup_teardown(test_temporary_folder_of_the_user, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_values, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_program, begin, end),
    };

    if (argc != 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
