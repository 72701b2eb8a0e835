/* test_submit.c - kubectl ptj submit, debug and tensorboard: what they create, what they hand to kubectl, and what they refuse.
 *
 * usage: test_submit <kubectl-ptj>
 */
#include "test.h"

#include "ptj.h"

#include "cli/submit/manifest.h"
#include "cli/submit/patterns.h"
#include "common/fsutil.h"
#include "common/json.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIGMAPS "/api/v1/namespaces/team/configmaps"
#define PODS "/api/v1/namespaces/team/pods"

static char folder[64];

static void put(const char *path, const char *text, size_t len)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path, text, len, &err), 0);
}

static int begin(void **state)
{
    static struct ptj p;
    ptj_begin(&p, ptj_program);
    snprintf(folder, sizeof(folder), "/tmp/ptj-submit.XXXXXX");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    put("train.py", "import torch\nprint('hi')\n", 25);
    *state = &p;
    return 0;
}

static int end(void **state)
{
    char command[128];

    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof(command), "/bin/rm -r %s", folder);
    assert_int_equal(system(command), 0);
    ptj_end(*state);
    return 0;
}

static const char SMALL[] = "apiVersion: v1\n"
                            "kind: ConfigMap\n"
                            "metadata:\n"
                            "  name: train-code\n"
                            "data:\n"
                            "  train.py: |\n"
                            "    import torch\n"
                            "    print('hi')\n"
                            "---\n"
                            "apiVersion: batch.tensorstack.dev/v1beta1\n"
                            "kind: PyTorchTrainingJob\n"
                            "metadata:\n"
                            "  name: train\n"
                            "spec:\n"
                            "  torchrunConfig:\n"
                            "    enabled: true\n"
                            "    launcher: Torchkeeper\n"
                            "    procPerNode: 1\n"
                            "    maxRestarts: 0\n"
                            "  elastic:\n"
                            "    enabled: false\n"
                            "    expectedReplicas: 1\n"
                            "  replicaSpecs:\n"
                            "  - type: node\n"
                            "    replicas: 1\n"
                            "    restartPolicy: ExitCode\n"
                            "    template:\n"
                            "      spec:\n"
                            "        containers:\n"
                            "        - name: pytorch\n"
                            "          image: img\n"
                            "          args:\n"
                            "          - /ptj/code/train.py\n"
                            "          - --lr\n"
                            "          - '0.1'\n"
                            "          volumeMounts:\n"
                            "          - name: code\n"
                            "            mountPath: /ptj/code\n"
                            "            readOnly: true\n"
                            "          - name: dshm\n"
                            "            mountPath: /dev/shm\n"
                            "        volumes:\n"
                            "        - name: code\n"
                            "          configMap:\n"
                            "            name: train-code\n"
                            "            defaultMode: 365\n"
                            "            items:\n"
                            "            - key: train.py\n"
                            "              path: train.py\n"
                            "        - name: dshm\n"
                            "          emptyDir:\n"
                            "            medium: Memory\n";

static void test_a_script(void **state)
{
    struct ptj *p = *state;
    struct ptj_result r = ptj_run(p, RUN("submit", "train.py", "--image=img", "--dry-run",
                                         "--kubeconfig=/nonexistent", "--", "--lr", "0.1"));

    assert_string_equal(r.err, "kubectl ptj submit: takes train.py (25 bytes)\n");
    assert_string_equal(r.out, SMALL);
    assert_int_equal(r.status, 0);
    ptj_forget(&r);
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
}

static void test_all_options(void **state)
{
    static const char *const WANT[] = {
        "  name: big-code\n  namespace: team\n",
        "procPerNode: 8\n",
        "maxRestarts: 3\n",
        "expectedReplicas: 2\n",
        "replicas: 2\n",
        "launcher: Image\n",
        "- name: A\n            value: b=c\n          - name: D\n            value: ''\n",
        "limits:\n              cpu: 500m\n              memory: 2Gi\n              nvidia.com/gpu: 8\n",
        "- name: claim-1\n            mountPath: /out\n",
        "claimName: data\n",
        "mountPath: /dev/shm\n",
        "emptyDir:\n            medium: Memory\n"};
    struct ptj *p = *state;
    struct ptj_result r = ptj_run(p, RUN("submit", "train.py", "--image=img", "--nodes=2", "--gpus=8",
                                         "--name=big", "--cpu=500m", "--memory=2Gi", "-e", "A=b=c",
                                         "--env=D=", "--claim=data:/data", "--claim", "out:/out",
                                         "--max-restarts=3", "--launcher=Image", "-n", "team", "--dry-run"));

    for (size_t i = 0; i < ARRAY_LEN(WANT); i++)
        if (!strstr(r.out, WANT[i]))
            fail_msg("expected \"%s\" in:\n%s", WANT[i], r.out);
    assert_int_equal(r.status, 0);
    ptj_forget(&r);
}

/* Each option is in the manifest, and nothing else has changed. */
static void test_each_option(void **state)
{
    static const struct {
        const char *option, *want;
    } CASES[] = {
        {"--procs=4", "    procPerNode: 4\n"},
        {"--progress-timeout=600", "  runPolicy:\n    progressTimeoutSeconds: 600\n"},
        {"--progress-timeout=1h10m", "  runPolicy:\n    progressTimeoutSeconds: 4200\n"},
        {"--pull-secret=reg.1", "        imagePullSecrets:\n        - name: reg.1\n"},
        {"--node-selector=a.b/c-D_e=f", "        nodeSelector:\n          a.b/c-D_e: f\n"},
        {"--node-selector=zone=", "        nodeSelector:\n          zone: ''\n"},
        {"--tensorboard=logs", "  tensorboardSpec:\n    logDir:\n      pvc:\n      - name: logs\n"},
        {"--tensorboard=logs/a/b",
         "  tensorboardSpec:\n    logDir:\n      pvc:\n      - name: logs\n        subPath:\n"
         "        - a/b\n"},
    };
    struct ptj *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct ptj_result r = ptj_run(
            p, RUN("submit", "train.py", "--image=img", CASES[i].option, "--dry-run", "--", "--lr", "0.1"));
        const char *at = strstr(r.out, CASES[i].want);
        if (!at)
            fail_msg("%s: expected \"%s\" in:\n%s", CASES[i].option, CASES[i].want, r.out);
        /* Without these lines it is what it is without the option. */
        char *rest = strdup(at + strlen(CASES[i].want));
        r.out[at - r.out] = '\0';
        const bool replaces = i == 0;
        assert_true(strncmp(SMALL, r.out, strlen(r.out)) == 0);
        const char *after = SMALL + strlen(r.out);
        assert_string_equal(replaces ? strchr(after, '\n') + 1 : after, rest);
        free(rest);
        ptj_forget(&r);
    }
    ptj_expect(p, RUN("submit", "train.py", "--image=img", "--gpus=8", "--procs=1", "--dry-run"), 0,
               "procPerNode: 1\n", "takes");
    ptj_expect(
        p,
        RUN("submit", "train.py", "--image=img", "--node-selector=a=b", "--node-selector=c=d", "--dry-run"),
        0, "nodeSelector:\n          a: b\n          c: d\n", "takes");
}

static void test_each_option_refused(void **state)
{
    static const struct {
        const char *option, *want;
    } CASES[] = {
        {"--procs=0", "--procs: expected an integer 1..4096, got \"0\"\n"},
        {"--procs=auto", "--procs: expected an integer 1..4096, got \"auto\"\n"},
        {"--progress-timeout=29", "--progress-timeout: expected 30s to 7d, got \"29\"\n"},
        {"--progress-timeout=7d1s", "--progress-timeout: expected 30s to 7d, got \"7d1s\"\n"},
        {"--progress-timeout=5 m",
         "--progress-timeout: expected a time such as 90s, 5m or 1h30m, got \"5 m\"\n"},
        {"--launcher=image",
         "--launcher: expected Torchkeeper or Image, got \"image\"; did you mean Image?\n"},
        {"--pull-secret=", "--pull-secret: expected the name of a Secret, got \"\"\n"},
        {"--pull-secret=My", "--pull-secret: expected the name of a Secret, got \"My\"\n"},
        {"--pull-secret=a..b", "--pull-secret: expected the name of a Secret, got \"a..b\"\n"},
        {"--pull-secret=a.-b", "--pull-secret: expected the name of a Secret, got \"a.-b\"\n"},
        {"-nBad NS", "--namespace: expected a-z, 0-9 and -, got \"Bad NS\"\n"},
        {"-n=", "--namespace: expected a-z, 0-9 and -, got \"\"\n"},
        {"--claim=Bad Name:/c", "--claim: expected CLAIM:/PATH, got \"Bad Name:/c\"\n"},
        {"--claim=a.:/c", "--claim: expected CLAIM:/PATH, got \"a.:/c\"\n"},
        {"--claim=a:/c:ro", "--claim: expected CLAIM:/PATH, got \"a:/c:ro\"\n"},
        {"--claim=a:/ptj/code", "--claim: /ptj/code: another volume is mounted there\n"},
        {"--claim=a:/dev//shm/.", "--claim: /dev//shm/.: another volume is mounted there\n"},
        {"--claim=a:/data/", "--claim: /data/: another volume is mounted there\n"},
        {"--env=A=\xff", "--env: expected UTF-8, got \"A=...\"\n"},
        {"--env=A\xff=1", "--env: expected UTF-8, got \"A\\xff=...\"\n"},
        {"--env=s3", "--env: expected NAME=VALUE, got \"s3\"\n"},
        {"--env==s3", "--env: expected NAME=VALUE, got \"=...\"\n"},
        {"--secret=HF_TOKEN=hf_realtoken", "--secret: expected NAME=SECRET/KEY, got \"HF_TOKEN=...\"\n"},
        {"--image=i\xff", "--image: expected UTF-8, got \"i\\xff\"\n"},
        {"--tensorboard=a/\xed\xa0\x80", "--tensorboard: expected UTF-8, got \"a/\\xed\\xa0\\x80\"\n"},
        {"--node-selector=gpu", "--node-selector: expected LABEL=VALUE, got \"gpu\"\n"},
        {"--node-selector=a b=c", "--node-selector: expected a label of nodes, got \"a b=c\"\n"},
        {"--node-selector=/a=c", "--node-selector: expected a label of nodes, got \"/a=c\"\n"},
        {"--node-selector=a..b/c=d", "--node-selector: expected a label of nodes, got \"a..b/c=d\"\n"},
        {"--node-selector=a/=c", "--node-selector: expected a label of nodes, got \"a/=c\"\n"},
        {"--node-selector=a=b/c", "--node-selector: expected a label of nodes, got \"a=b/c\"\n"},
        {"--node-selector=x=2", "--node-selector: x is given twice\n"},
        {"--tensorboard=", "--tensorboard: expected CLAIM or CLAIM/FOLDER, got \"\"\n"},
        {"--tensorboard=/logs", "--tensorboard: expected CLAIM or CLAIM/FOLDER, got \"/logs\"\n"},
        {"--tensorboard=logs:/runs", "--tensorboard: expected CLAIM or CLAIM/FOLDER, got \"logs:/runs\"\n"},
        {"--tensorboard=a./runs", "--tensorboard: expected CLAIM or CLAIM/FOLDER, got \"a./runs\"\n"},
        {"--tensorboard=logs/../x", "subPath[0]: "},
        {"--follow", "--follow and --dry-run exclude each other\n"},
    };
    struct ptj *p = *state;

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        ptj_expect(p,
                   RUN("submit", "train.py", "--image=img", "--node-selector=x=1", "--claim=c:/data",
                       CASES[i].option, "--dry-run"),
                   2, NULL, CASES[i].want);
    ptj_expect(p, RUN("submit", "train.py", "--image=img", "--dry-run", "--", "a\xff"), 2, NULL,
               "ARGS: expected UTF-8, got \"a\\xff\"\n");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--progress-timeout=60", "--launcher=Image"), 2,
               NULL, "--progress-timeout needs --launcher Torchkeeper\n");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--nodes=65", "--follow"), 2, NULL,
               "--follow prints the logs of 64 pods at most");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
}

#define POD_RUNS(state)                                                                                      \
    "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":" state "}]}"

/* Submit the job j and follow it, until a line of its pod has come. */
static pid_t submit_and_follow(struct ptj *p)
{
    pid_t pid = ptj_start(p, RUN("submit", "train.py", "--image=img", "--name=j", "--follow", "--as=me"));

    ptj_await(p, "err", "waiting for pods");
    ptj_put_pod(p, 0, 0, "{\"containers\":[{\"name\":\"main\"}]}", POD_RUNS("{\"running\":{}}"));
    fake_pod_prints(p->server, PODS "/j-node-0", "2026-01-01T00:00:01.000000000Z epoch 1\n");
    ptj_await(p, "out", "[node-0] epoch 1\n");
    return pid;
}

static void test_follow(void **state)
{
    struct ptj *p = *state;
    const pid_t pid = submit_and_follow(p);
    cJSON *job = fake_json(p->server, PTJ_JOBS "/j");
    char *spec = cJSON_PrintUnformatted(json_child(job, "spec"));

    fake_pod_log_ends(p->server, PODS "/j-node-0");
    ptj_put_pod(p, 0, 0, "{\"containers\":[{\"name\":\"main\"}]}",
                POD_RUNS("{\"terminated\":{\"exitCode\":1}}"));
    ptj_put_job(p, "j", spec, "{\"phase\":\"Failed\"}");
    struct ptj_result r = ptj_wait(p, pid);
    assert_string_equal(r.out, "j submitted: kubectl ptj watch j --as=me\n[node-0] epoch 1\n");
    assert_int_equal(r.status, 1);
    ptj_forget(&r);
    cJSON_free(spec);
    cJSON_Delete(job);
}

static void test_follow_is_interrupted(void **state)
{
    struct ptj *p = *state;
    const pid_t pid = submit_and_follow(p);

    assert_int_equal(kill(pid, SIGINT), 0);
    struct ptj_result r = ptj_wait(p, pid);
    if (!strstr(r.err, "the job goes on: `kubectl ptj logs j -n team --as=me` prints its logs again\n"))
        fail_msg("%s", r.err);
    assert_int_equal(r.status, 128 + SIGINT);
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 1);
    assert_int_equal(ptj_folders(p), 0);
    ptj_forget(&r);
}

static void test_a_folder(void **state)
{
    static const char BYTES[] = {0, 1, 2, (char)0xff};
    struct ptj *p = *state;

    assert_int_equal(mkdir("My_Code.v2", 0755), 0);
    assert_int_equal(mkdir("My_Code.v2/pkg", 0755), 0);
    assert_int_equal(mkdir("My_Code.v2/.git", 0755), 0);
    assert_int_equal(mkdir("My_Code.v2/__pycache__", 0755), 0);
    put("My_Code.v2/run.sh", "echo\n", 5);
    put("My_Code.v2/pkg/a b.py", "", 0);
    put("My_Code.v2/weights.bin", BYTES, sizeof(BYTES));
    put("My_Code.v2/.git/config", "secret", 6);
    put("My_Code.v2/.env", "secret", 6);
    put("My_Code.v2/__pycache__/x.pyc", "x", 1);
    assert_int_equal(symlink("/etc/passwd", "My_Code.v2/passwd"), 0);
    struct ptj_result r = ptj_run(
        p, RUN("submit", "My_Code.v2/", "--image=img", "--launcher=Image", "--dry-run", "--", "run.sh"));
    assert_string_equal(r.err, "kubectl ptj submit: leaves out .env: its name begins with a dot\n"
                               "kubectl ptj submit: leaves out .git: its name begins with a dot\n"
                               "kubectl ptj submit: leaves out passwd: it is no regular file\n"
                               "kubectl ptj submit: takes pkg/a b.py (0 bytes)\n"
                               "kubectl ptj submit: takes run.sh (5 bytes)\n"
                               "kubectl ptj submit: takes weights.bin (4 bytes)\n"
                               "kubectl ptj submit: takes 3 files (9 bytes)\n");
    assert_non_null(strstr(r.out, "  name: my-code-code\n"));
    assert_non_null(
        strstr(r.out, "data:\n  .file-0: ''\n  run.sh: |\n    echo\nbinaryData:\n  weights.bin: AAEC/w==\n"));
    assert_non_null(strstr(r.out, "- key: .file-0\n              path: pkg/a b.py\n"));
    assert_non_null(strstr(r.out, "extraOptions:\n    - --no-python\n"));
    assert_non_null(strstr(r.out, "- /ptj/code/run.sh\n"));
    assert_null(strstr(r.out, "secret"));
    assert_null(strstr(r.out, "pyc"));
    ptj_forget(&r);
    ptj_expect(p, RUN("submit", "My_Code.v2", "--image=img"), 1, NULL, "name the file to run: -- FILE");
    ptj_expect(p, RUN("submit", "My_Code.v2", "--image=img", "--", "../train.py"), 1, NULL,
               "has no file ../train.py");
    ptj_expect(p, RUN("submit", "My_Code.v2", "--image=img", "--", "passwd"), 1, NULL, "has no file passwd");
}

/* For "." and ".." the job has the folder's real name. */
static void test_this_folder(void **state)
{
    static const char *const PATHS[] = {".", "./", "./.", "../My_Code", "../My_Code/.", "sub/..", "sub/../"};
    struct ptj *p = *state;

    assert_int_equal(mkdir("My_Code", 0755), 0);
    assert_int_equal(chdir("My_Code"), 0);
    assert_int_equal(mkdir("sub", 0755), 0);
    put("train.py", "p", 1);
    for (size_t i = 0; i < ARRAY_LEN(PATHS); i++)
        ptj_expect(p, RUN("submit", PATHS[i], "--image=img", "--dry-run", "--", "train.py"), 0,
                   "  name: my-code\n",
                   "submit: takes train.py (1 byte)\nkubectl ptj submit: takes 1 file (1 byte)\n");
    assert_int_equal(chdir(folder), 0);
}

/* File names that would change the printed list. */
static void test_hostile_names(void **state)
{
    struct ptj *p = *state;

    assert_int_equal(mkdir("Code", 0755), 0);
    put("Code/train.py", "p", 1);
    put("Code/key\rtakes a.py", "p", 1);
    put("Code/b\x1b[2K\n\xe2\x80\xae.c", "p", 1);
    assert_int_equal(symlink("/", "Code/z\r\x9b"), 0);
    struct ptj_result r = ptj_run(p, RUN("submit", "Code", "--image=img", "--dry-run", "--", "train.py"));
    assert_string_equal(r.err, "kubectl ptj submit: leaves out z\\x0d\\x9b: it is no regular file\n"
                               "kubectl ptj submit: takes b\\x1b[2K\\x0a\\xe2\\x80\\xae.c (1 byte)\n"
                               "kubectl ptj submit: takes key\\x0dtakes a.py (1 byte)\n"
                               "kubectl ptj submit: takes train.py (1 byte)\n"
                               "kubectl ptj submit: takes 3 files (3 bytes)\n");
    assert_int_equal(r.status, 0);
    ptj_forget(&r);
    put("Code/x\r.pem", "p", 1);
    ptj_expect(p, RUN("submit", "Code", "--image=img", "--dry-run", "--", "train.py"), 1, NULL,
               "submit: Code/x\\x0d.pem: looks like a key");
}

/* JSON has no other bytes, and the API server would change them. */
static void test_names_that_are_not_utf8(void **state)
{
    struct ptj *p = *state;

    put("b\xff.py", "p", 1);
    ptj_expect(p, RUN("submit", "b\xff.py", "--image=img", "--dry-run"), 1, NULL,
               "submit: b\\xff.py: expected a name in UTF-8");
    assert_int_equal(mkdir("Code", 0755), 0);
    assert_int_equal(mkdir("Code/\xc3", 0755), 0);
    put("Code/train.py", "p", 1);
    put("Code/\xc3/\xa9.py", "p", 1);
    put("Code/.\xff", "p", 1);
    ptj_expect(p, RUN("submit", "Code", "--image=img", "--dry-run", "--", "train.py"), 1, NULL,
               "submit: Code/\\xc3/\\xa9.py: expected a name in UTF-8");
    put("Code/.ptjignore", "\xc3/\n", 3);
    ptj_expect(p, RUN("submit", "Code", "--image=img", "--dry-run", "--", "train.py"), 0, "train.py",
               "leaves out .\\xff");
}

/* Kubernetes expands $(NAME) and $$ in arguments and variables: the program gets what was typed. */
static void test_dollars(void **state)
{
    struct ptj *p = *state;

    put("$(A).py", "p", 1);
    ptj_expect(p, RUN("submit", "$(A).py", "--image=img", "-eA=$(B)$", "--dry-run", "--", "$$x", "$(B)"), 0,
               "          args:\n          - /ptj/code/$$(A).py\n          - $$$$x\n          - $$(B)\n      "
               "    env:\n"
               "          - name: A\n            value: $$(B)$$\n",
               "takes $(A).py");
}

/* As editors of Windows save them. */
static void test_byte_order_marks(void **state)
{
    struct ptj *p = *state;

    put("run.sh", "\xef\xbb\xbf#!/bin/sh\n", 13);
    put("wide.py", "\xff\xfep\0", 4);
    assert_int_equal(mkdir("Wide", 0755), 0);
    put("Wide/train.py", "\xfe\xff\0p", 4);
    ptj_expect(p, RUN("submit", "run.sh", "--image=img", "--launcher=Image", "--dry-run"), 0,
               "  run.sh: |\n    #!/bin/sh\n", "takes run.sh (10 bytes)");
    ptj_expect(p, RUN("submit", "wide.py", "--image=img"), 1, NULL, "wide.py: UTF-16 by its first two bytes");
    ptj_expect(p, RUN("submit", "Wide", "--image=img", "--", "train.py"), 1, NULL,
               "Wide/train.py: UTF-16 by its first two bytes, expected UTF-8");
}

static void expect_request(struct ptj *p, int i, const char *method, const char *path, const char *body)
{
    struct fake_request r;

    assert_true(fake_log_at(p->server, i, &r));
    assert_string_equal(r.method, method);
    if (!strstr(r.path, path) || !strstr(r.body, body))
        fail_msg("expected %s %s with %s, got %s: %s", method, path, body, r.path, r.body);
}

static void test_creates(void **state)
{
    static const char *const UID[] = {"metadata", "uid", NULL};
    struct ptj *p = *state;

    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 0, "train submitted: kubectl ptj watch train\n",
               "takes train.py");
    cJSON *job = fake_json(p->server, PTJ_JOBS "/train");
    cJSON *code = fake_nth_json(p->server, CONFIGMAPS, 0);
    const cJSON *map = json_find(job, (const char *[]){"spec", "replicaSpecs", NULL})->child;
    map = json_find(map, (const char *[]){"template", "spec", "volumes", NULL})->child;
    assert_string_equal(json_str(json_child(map, "configMap"), "name"), json_meta(code, "name"));
    const cJSON *owner = json_find(code, (const char *[]){"metadata", "ownerReferences", NULL})->child;
    assert_string_equal(json_str(owner, "uid"), json_find(job, UID)->valuestring);
    assert_string_equal(json_str(owner, "kind"), "PyTorchTrainingJob");
    assert_true(cJSON_IsTrue(json_child(code, "immutable")));
    assert_true(cJSON_IsFalse(json_find(job, (const char *[]){"spec", "suspend", NULL})));
    cJSON_Delete(job);
    cJSON_Delete(code);
    expect_request(p, 0, "POST", "pytorchtrainingjobs", "\"suspend\":true");
    expect_request(p, 1, "POST", "configmaps", "\"ConfigMap\"");
    expect_request(p, 2, "PATCH", "pytorchtrainingjobs/train", "\"suspend\":false");
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL,
               "choose another --name than train, or delete that job");
    /* The garbage collector takes its time with the ConfigMap of a job that was deleted. */
    assert_true(fake_remove(p->server, PTJ_JOBS "/train"));
    ptj_expect(p, RUN("submit", "train.py", "--image=img", "-nteam", "--context=c"), 0,
               "train submitted: kubectl ptj watch train -n team --context=c\n", "takes train.py");
    assert_int_equal(fake_count(p->server, CONFIGMAPS), 2);
}

/* Pasted into a shell, the line reaches the same server as the same user. It contains no secret. */
static void test_the_next_command(void **state)
{
    static const char WANT[] =
        "<ptj><watch><train><-n><team><--kubeconfig=my k><--as=o'neil $x><--as-group=a><--as-group=b>"
        "<--server=...><--token=...><--insecure-skip-tls-verify>";
    struct ptj *p = *state;
    struct ptj_result r = ptj_run(p, RUN("submit", "train.py", "--image=img", "-nteam", "--kubeconfig",
                                         "my k", "--as", "o'neil $x", "--as-group=a", "--as-group=b", "-s",
                                         "https://u:pw@h:1/k8s", "--token=s3", "--insecure-skip-tls-verify"));
    const char *line = strstr(r.out, "kubectl ptj");
    char command[1024], got[1024] = "";

    assert_non_null(line);
    snprintf(command, sizeof(command), "kubectl() { printf '<%%s>' \"$@\"; }; %s", line);
    FILE *sh = popen(command, "r");
    assert_non_null(sh);
    assert_true(fread(got, 1, sizeof(got) - 1, sh) > 0);
    assert_int_equal(pclose(sh), 0);
    assert_string_equal(got, WANT);
    ptj_forget(&r);
    ptj_put_job(p, "on", "{\"tensorboardSpec\":{}}", "{\"tensorboard\":{\"ready\":false}}");
    ptj_expect(p, RUN("tensorboard", "on", "--context=a b"), 1, NULL, "=on '--context=a b')");
    fake_plan_fault(p->server, &(struct fake_fault_plan){PTJ_FORBIDDEN});
    ptj_expect(p, RUN("suspend", "on", "--as=me"), 1, NULL, "`kubectl auth can-i --list -n team --as=me`");
    ptj_expect(p, RUN("suspend", "on", "-n", "a; b"), 2, NULL,
               "--namespace: expected a-z, 0-9 and -, got \"a; b\"\n");
    fake_plan_fault(p->server, NULL);
}

static void test_nothing_is_left_half_made(void **state)
{
    struct ptj *p = *state;
    struct fake_fault_plan refuse = {
        .method = "POST", .path_part = "pytorchtrainingjobs", .fault = FAKE_STATUS, .status = 422};

    fake_plan_fault(p->server, &refuse);
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL, "");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
    assert_int_equal(fake_count(p->server, CONFIGMAPS), 0);
    refuse = (struct fake_fault_plan){.method = "POST", .path_part = "configmaps", PTJ_FORBIDDEN};
    fake_plan_fault(p->server, &refuse);
    ptj_expect(
        p, RUN("submit", "train.py", "--image=img"), 1, NULL,
        "the job train has been deleted: you lack the permission to create configmaps in namespace team");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
    assert_int_equal(fake_count(p->server, CONFIGMAPS), 0);
    refuse.method = "PATCH"; /* the resume */
    refuse.path_part = "pytorchtrainingjobs";
    fake_plan_fault(p->server, &refuse);
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL,
               "the job train has been deleted: you lack the permission to patch pytorchtrainingjobs");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
    fake_plan_fault(p->server, NULL);
}

/* The job was created, and the answer was lost: nothing says what to delete but the message. */
static void test_a_lost_answer(void **state)
{
    struct ptj *p = *state;

    fake_plan_fault(p->server, &(struct fake_fault_plan){.method = "POST",
                                                         .path_part = "pytorchtrainingjobs",
                                                         .fault = FAKE_DROP_AFTER});
    ptj_expect(p, RUN("submit", "train.py", "--image=img", "--as=me"), 1, NULL,
               "; the API server may have created the job train, suspended and without code: see kubectl get "
               "ptj train -n team --as=me\n");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 1);
    fake_plan_fault(p->server, NULL);
    assert_true(fake_remove(p->server, PTJ_JOBS "/train"));
}

/* A server's sentence is whole, and nothing is said of a job where none can have been created. */
static void test_a_server_that_fails(void **state)
{
    static const char REFUSED[] = "dial tcp 10.0.0.1:6443: connect: connection refused";
    struct fake_fault_plan fail = {
        .method = "POST", .path_part = "pytorchtrainingjobs", .fault = FAKE_STATUS, .status = 502};
    struct ptj *p = *state;
    char words[801];

    for (size_t i = 0; i < sizeof(words) - 1; i++)
        words[i] = i % 9 ? 'a' : ' ';
    words[0] = 'b';
    words[sizeof(words) - 1] = '\0';
    fail.message = words;
    fake_plan_fault(p->server, &fail);
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL, words);
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL,
               "; the API server may have created the job train");
    fail.status = 404;
    fail.message = "namespaces \"team\" not found";
    fake_plan_fault(p->server, &fail);
    ptj_expect(
        p, RUN("submit", "train.py", "--image=img", "-n", "team"), 1, NULL,
        "kubectl ptj submit: there is no namespace team: kubectl get namespaces lists those there are\n");
    fail.status = 502;
    fail.message = REFUSED;
    fake_plan_fault(p->server, &fail);
    struct ptj_result r = ptj_run(p, RUN("submit", "train.py", "--image=img"));
    assert_non_null(strstr(r.err, REFUSED));
    assert_null(strstr(r.err, "may have created"));
    ptj_forget(&r);
    fake_plan_fault(p->server, NULL);
}

/* Who sees the job may make a ConfigMap of that name first. No pod runs what is in it: the job is suspended as long as it lives. */
static void test_a_neighbour_makes_the_configmap(void **state)
{
    struct ptj *p = *state;
    struct fake_change change;

    fake_refuse(p->server, "POST", "configmaps", 409);
    ptj_expect(p, RUN("submit", "train.py", "--image=img"), 1, NULL,
               "the job train has been deleted: another user has created a ConfigMap of that name");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
    for (int i = 0; fake_change_at(p->server, i, &change); i++)
        assert_true(cJSON_IsTrue(json_find(change.object, (const char *[]){"spec", "suspend", NULL})));
    assert_int_equal(fake_log_count(p->server, "PATCH", NULL), 0);
    fake_plan_fault(p->server, NULL);
}

/* The patterns as patterns.h describes them. */
static void test_patterns(void **state)
{
    static const struct {
        const char *text, *path;
        bool folder, fits;
    } CASES[] = {
        {"a.txt", "a.txt", false, true},
        {"a.txt", "b/c/a.txt", false, true},
        {"a.txt", "a.txt.gz", false, false},
        {"*.txt \t\r", "b/a.txt", false, true},
        {"*", "b/a", false, true},
        {"/a.txt", "a.txt", false, true},
        {"/a.txt", "b/a.txt", false, false},
        {"b/*.txt", "b/a.txt", false, true},
        {"b/*.txt", "b/c/a.txt", false, false},
        {"b/*.txt", "c/b/a.txt", false, false},
        {"data/", "data", true, true},
        {"data/", "x/data", true, true},
        {"/data/", "x/data", true, false},
        {"data/", "data", false, false},
        {"?.[ch]", "x.c", false, true},
        {"?.[!ch]", "x.c", false, false},
        {"\\*", "a", false, false},
        {"\\*", "*", false, true},
        {"\\#a", "#a", false, true},
        {"# a\n\n   \n", "a", false, false},
        {"*.txt\n!keep.txt", "b/keep.txt", false, false},
        {"!keep.txt\n*.txt", "keep.txt", false, true},
        {"[", "a", false, false},
        {"/", "a", true, false},
        {"!", "a", false, false},
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++)
        if (patterns_fit(CASES[i].text, CASES[i].path, CASES[i].folder, 0) != CASES[i].fits)
            fail_msg("\"%s\" and %s: expected %d", CASES[i].text, CASES[i].path, CASES[i].fits);
    assert_int_equal(patterns_check("a\nb/**\n", "here", &err), -1);
    assert_non_null(strstr(err.msg, "here:2: \"b/**\": expected a pattern"));
    assert_int_equal(patterns_check("a\n# **\n", "here", &err), 0);
}

static void test_ptjignore(void **state)
{
    static const char IGNORE[] = "\xef\xbb\xbf# data\n/data/\n*.pem\n*.txt\n!keep.txt\nold/**\n";
    struct ptj *p = *state;
    const char *const *run = RUN("submit", "Code", "--image=img", "--dry-run", "--", "train.py");

    assert_int_equal(mkdir("Code", 0755), 0);
    assert_int_equal(mkdir("Code/data", 0755), 0);
    put("Code/train.py", "p", 1);
    put("Code/data/big.bin", "x", 1);
    put("Code/a.pem", "x", 1);
    put("Code/b.txt", "x", 1);
    put("Code/keep.txt", "x", 1);
    put("Code/.ptjignore", IGNORE, sizeof(IGNORE) - 1);
    ptj_expect(p, run, 1, NULL, "Code/.ptjignore:6: \"old/**\": expected a pattern");
    put("Code/.ptjignore", "\xff\xfe*\0", 4);
    ptj_expect(p, run, 1, NULL, "Code/.ptjignore: ");
    put("Code/.ptjignore", IGNORE, sizeof(IGNORE) - 1 - strlen("old/**\n"));
    struct ptj_result r = ptj_run(p, run);
    assert_string_equal(r.err,
                        "kubectl ptj submit: takes keep.txt (1 byte)\n"
                        "kubectl ptj submit: takes train.py (1 byte)\n"
                        "kubectl ptj submit: takes 2 files (2 bytes); .ptjignore leaves out 3 names\n");
    assert_int_equal(r.status, 0);
    ptj_forget(&r);
    ptj_expect(p, RUN("submit", "Code", "--image=img", "--include", "a/**", "--", "train.py"), 2, NULL,
               "--include:1: \"a/**\": expected a pattern");
}

/* A file of a folder: refused if it looks like a key; taken if --include names it or a pattern matches it. */
static void expect_key(struct ptj *p, const char *name, const char *text, bool key, const char *include)
{
    char at[128], want[64];

    snprintf(at, sizeof(at), "Keys/sub/%s", name);
    put(at, text, strlen(text));
    struct ptj_result r = ptj_run(p, RUN("submit", "Keys", "--image=img", "--dry-run", "--", "train.py"));
    snprintf(want, sizeof(want), "Keys/sub/%s: looks like a key", name);
    if (r.status != key || (strstr(r.err, want) != NULL) != key || (key && r.out[0]))
        fail_msg("%s: status %d: %s", name, r.status, r.err);
    ptj_forget(&r);
    snprintf(want, sizeof(want), "path: sub/%s", name);
    if (key)
        ptj_expect(p,
                   RUN("submit", "Keys", "--image=img", "--dry-run", "--include=nothing", "--include",
                       include, "--", "train.py"),
                   0, want, "takes sub/");
    assert_int_equal(unlink(at), 0);
}

static void test_keys_are_refused(void **state)
{
    static const char *const KEYS[] = {
        "id_rsa",           "ID_ed25519",    "server.pem", "tls.key",  "prod.env",
        "prod.env.local",   "my-kubeconfig", "store.jks",  "cert.p12", "gcp-service-account.json",
        "credentials.json", "secrets.yaml",  "hf_token",   "_netrc"};
    static const char *const OTHERS[] = {"id_map.py",  "tokenizer.json", "secrets.py", "env.yaml",
                                         "server.crt", "keys.txt",       "monkey.png"};
    struct ptj *p = *state;
    char path[64];

    for (size_t i = 0; i < ARRAY_LEN(KEYS) + ARRAY_LEN(OTHERS); i++) {
        const bool key = i < ARRAY_LEN(KEYS);
        snprintf(path, sizeof(path), "sub/%s", key ? KEYS[i] : OTHERS[i - ARRAY_LEN(KEYS)]);
        if ((patterns_key(path, NULL) != NULL) != key || (patterns_key(path + 4, NULL) != NULL) != key)
            fail_msg("%s: expected %s", path, key ? "a key" : "no key");
    }
    assert_int_equal(mkdir("Keys", 0755), 0);
    assert_int_equal(mkdir("Keys/sub", 0755), 0);
    put("Keys/train.py", "p", 1);
    expect_key(p, "tls.key", "x", true, "sub/*");
    expect_key(p, "tls_key.py", "x", false, NULL);
    expect_key(p, "a.txt", "x\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", true, "a.*");
    expect_key(p, "b.json", "{\"k\": \"-----BEGIN PRIVATE KEY-----\\nMII\"}", true, "b.json");
    expect_key(p, "c.py", "KEY = \"\"\"-----BEGIN OPENSSH PRIVATE KEY-----\r\nb3\n\"\"\"", true, "c.py");
    expect_key(p, "d.asc", "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nlQ\n", true, "*");
    expect_key(p, "g.yaml", "key: |\n  -----BEGIN RSA PRIVATE KEY-----  \t\n  MII\n", true, "g.yaml");
    expect_key(p, "h.json", "[\n  \"-----BEGIN EC PRIVATE KEY-----\",\n  \"MII\"\n]", true, "h.json");
    expect_key(p, "i.py", "KEY = ['-----BEGIN PRIVATE KEY-----' , \r\n'MII']\n", true, "i.py");
    expect_key(p, "j.py", "BEGIN = '-----BEGIN PRIVATE KEY-----'\n", false, NULL);
    expect_key(p, "e.py", "if '-----BEGIN PRIVATE KEY-----' in text: print('no')\n", false, NULL);
    expect_key(p, "f.txt", "-----BEGIN CERTIFICATE-----\nMII\n", false, NULL);
    put("id_rsa", "x", 1);
    ptj_expect(
        p, RUN("submit", "id_rsa", "--image=img"), 1, NULL,
        "id_rsa: looks like a key (by its name), and everyone who may read ConfigMaps could read it: leave "
        "it "
        "out (.ptjignore), give its value by --secret NAME=SECRET/KEY, or take it by --include \"id_rsa\"\n");
    assert_int_equal(fake_count(p->server, PTJ_JOBS), 0);
}

static void test_secrets_in_the_environment(void **state)
{
    static const char REFERENCE[] =
        "- name: LR\n            value: '1'\n          - name: HF_TOKEN\n            valueFrom:\n"
        "              secretKeyRef:\n                name: my.hf-1\n                key: To_ken.x\n";
    static const char *const WRONG[] = {"HF_TOKEN",    "HF_TOKEN=a",   "HF_TOKEN=/a",    "=a/b",
                                        "HF_TOKEN=a/", "HF_TOKEN=A/b", "HF_TOKEN=a/b/c", "HF_TOKEN=a b/c",
                                        "A=-x/k",      "A=x./k",       "A=x/..",         "A=x/..k"};
    static const char *const WARNED[] = {"HF_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "MY_SECRET_1",
                                         "aws_secret_access_key"};
    struct ptj *p = *state;
    char option[64], want[128];

    ptj_expect(
        p,
        RUN("submit", "train.py", "--image=img", "--secret=HF_TOKEN=my.hf-1/To_ken.x", "-eLR=1", "--dry-run"),
        0, REFERENCE, "takes train.py (25 bytes)\n");
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++)
        ptj_expect(p, RUN("submit", "train.py", "--image=img", "--secret", WRONG[i], "--dry-run"), 2, NULL,
                   "--secret: expected NAME=SECRET/KEY, got \"");
    for (size_t i = 0; i < ARRAY_LEN(WARNED); i++) {
        snprintf(option, sizeof(option), "--env=%s=s3", WARNED[i]);
        snprintf(want, sizeof(want), "use --secret %s=SECRET/KEY\n", WARNED[i]);
        ptj_expect(p, RUN("submit", "train.py", "--image=img", option, "--dry-run"), 0, "value: s3", want);
    }
    struct ptj_result r = ptj_run(p, RUN("submit", "train.py", "--image=img", "-eTOKENIZERS_PARALLELISM=1",
                                         "-eHF_TOKEN=", "-eKEYS=1", "--dry-run"));
    assert_string_equal(r.err, "kubectl ptj submit: takes train.py (25 bytes)\n");
    ptj_forget(&r);
}

static void test_refused(void **state)
{
    struct ptj *p = *state;
    char *large = test_malloc((1 << 20) + 1);

    memset(large, 'a', (1 << 20) + 1);
    put("large.py", large, (1 << 20) + 1);
    put("largest.py", large, 1 << 20);
    test_free(large);
    ptj_expect(p, RUN("submit", "large.py", "--image=img"), 1, NULL,
               "more than 1048576 bytes, which a ConfigMap holds");
    ptj_expect(p, RUN("submit", "largest.py", "--image=img"), 0, "largest submitted", "(1048576 bytes)");
    ptj_expect(p, RUN("submit", "none.py", "--image=img"), 1, NULL, "none.py: No such file");
    ptj_expect(p, RUN("submit", "/dev/null", "--image=img"), 1, NULL, "expected a script or a folder");
    ptj_expect(p, RUN("submit", "train.py"), 2, NULL, "--image: expected the image");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--env", "A"), 2, NULL,
               "--env: expected NAME=VALUE, got \"A\"");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--claim", "a:b"), 2, NULL,
               "--claim: expected CLAIM:/PATH");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--cpu", "many"), 2, NULL,
               "submit: --cpu: expected a quantity such as 1, 500m or 2Gi, got \"many\"");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--memory", "16GB"), 2, NULL,
               "submit: --memory: expected a quantity");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--name", "Bad"), 2, NULL,
               "submit: --name: expected lower-case");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--launcher", "Mine"), 2, NULL,
               "--launcher: expected Torchkeeper or Image, got \"Mine\"");
    ptj_expect(p, RUN("submit", "train.py", "--image=i", "--nodes", "0"), 2, NULL,
               "--nodes: expected an integer 1..1024");
}

static void test_names(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"train.py", "train"},
        {"a/b/My Script.py", "my-script"},
        {"7.py", "job-7"},
        {"...", "job"},
        {"./x_y.tar.gz", "x-y-tar"},
        {"dir/", "dir"},
        {"-é-.py", "job"},
        {"1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bcd.py", "job-1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.py",
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}};
    char name[MANIFEST_NAME_MAX + 1];

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        manifest_name(CASES[i][0], name);
        assert_string_equal(name, CASES[i][1]);
    }
}

#define TWO_PODS                                                                                             \
    "{\"torchrunConfig\":{\"enabled\":true,\"procPerNode\":2,\"rdzvBackend\":\"static\"},\"replicaSpecs\":[" \
    "{\"type\":\"node\","                                                                                    \
    "\"replicas\":2,\"template\":{\"spec\":{\"containers\":[{\"name\":\"side\",\"image\":\"i\"},"            \
    "{\"name\":\"pytorch\",\"image\":\"i\"}]}}}]}"

#define OF_GPUS(type, replicas, gpus)                                                                        \
    "{\"type\":\"" type "\",\"replicas\":" replicas                                                          \
    ",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":"                \
    "{\"limits\":{\"nvidia.com/gpu\":" gpus "}}}]}}}"
#define GPU_PODS(procs)                                                                                      \
    "{\"torchrunConfig\":{\"enabled\":true,\"launcher\":\"Torchkeeper\",\"procPerNode\":\"" procs            \
    "\"},\"replicaSpecs\":[" OF_GPUS("master", "1", "4") "," OF_GPUS("worker", "2", "2") "]}"

#define IMAGES_TORCHRUN                                                                                      \
    "{\"torchrunConfig\":{\"enabled\":true},\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":2,"            \
    "\"template\":{"                                                                                         \
    "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}]}"

/* A pod of job a, into which a mesh has put its proxy. */
static void put_running(struct ptj *p, const char *name, const char *training)
{
    char path[128], text[512];

    snprintf(path, sizeof(path), PODS "/%s", name);
    snprintf(
        text, sizeof(text),
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"annotations\":{"
        "\"batch.tensorstack.dev/training-container\":\"%s\"}},\"spec\":{\"containers\":[{\"name\":\"mesh\"},"
        "{\"name\":\"side\"},{\"name\":\"pytorch\"}]},\"status\":{\"phase\":\"Running\"}}",
        training);
    assert_true(fake_put(p->server, path, text));
}

static void test_debug(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "a", TWO_PODS, "{}");
    put_running(p, "a-node-0", "pytorch");
    ptj_expect(p, RUN("debug", "a"), 0,
               "kubectl --namespace team exec -i a-node-0 -c pytorch -- sh -c command -v bash", NULL);
    ptj_expect(p, RUN("debug", "a", "--context=c", "--", "ls", "-l"), 0,
               "kubectl --context=c --namespace team exec -i a-node-0 -c pytorch -- ls -l\n", NULL);
    ptj_expect(p, RUN("debug", "a", "--rank=3"), 1, NULL,
               "the pod a-node-1 does not exist now: kubectl ptj watch a -n team shows the job");
    ptj_expect(p, RUN("debug", "a", "-r4"), 1, NULL, "--rank: expected 0..3, got 4");
    fake_put(p->server, PODS "/a-node-1",
             "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"status\":{\"phase\":\"Pending\"}}");
    ptj_expect(
        p, RUN("debug", "a", "--rank=2", "--as=a b"), 1, NULL,
        "the pod a-node-1 does not run, its phase is Pending: kubectl ptj why a -n team '--as=a b' explains");
    ptj_put_job(p, "b", GPU_PODS("gpu"), "{}"); /* ranks 0 to 3 in the master, 4 and 5 in the first worker */
    ptj_expect(p, RUN("debug", "b", "--rank=3"), 1, NULL, "the pod b-master-0 does not exist now");
    ptj_expect(p, RUN("debug", "b", "--rank=5"), 1, NULL, "the pod b-worker-0 does not exist now");
    ptj_expect(p, RUN("debug", "b", "--rank=6"), 1, NULL, "the pod b-worker-1 does not exist now");
    ptj_expect(p, RUN("debug", "b", "--rank=8"), 1, NULL, "--rank: expected 0..7, got 8");
    ptj_put_job(p, "c", GPU_PODS("cpu"), "{}");
    ptj_expect(p, RUN("debug", "c", "--rank=1"), 1, NULL, "procPerNode is cpu");
    ptj_expect(p, RUN("debug", "c"), 1, NULL, "the pod c-master-0 does not exist now");
    ptj_expect(p, RUN("debug", "c", "--rank=0", "--pod=master-0"), 2, NULL, "exclude each other");
    ptj_expect(p, RUN("debug", "c", "--pod=worker-2"), 1, NULL, "--pod: c has no such pod: it has 3 pods");
    fake_put(p->server, PODS "/c-worker-1",
             "{\"spec\":{\"containers\":[{\"name\":\"c\"}]},\"status\":{\"phase\":\"Running\"}}");
    ptj_expect(p, RUN("debug", "c", "--pod=worker-1"), 0, "exec -i c-worker-1 -c c -- sh", NULL);
    ptj_expect(p, RUN("debug", "c", "--pod=c-worker-1"), 0, "exec -i c-worker-1 -c c -- sh", NULL);
    fake_put(p->server, PODS "/b-worker-0", "{\"status\":{\"phase\":\"Running\"}}");
    ptj_expect(p, RUN("debug", "b", "--rank=5"), 1, NULL, "a pod is from before the operator's upgrade");
    fake_put(
        p->server, PODS "/b-worker-0",
        "{\"status\":{\"phase\":\"Running\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":"
        "\"PTJ_NODE_ORDER\",\"value\":\"1\"}]}]}}");
    ptj_expect(p, RUN("debug", "b", "--rank=5"), 0, "exec -i b-worker-0 -c c -- sh", NULL);
    ptj_put_job(p, "d", IMAGES_TORCHRUN, "{}");
    ptj_expect(p, RUN("debug", "d", "-r0"), 1, NULL,
               "the torchrun of the image gives them in its rendezvous");
    ptj_expect(p, RUN("debug", "d"), 1, NULL, "the pod d-node-0 does not exist now");
    ptj_expect(p, RUN("debug", "none"), 1, NULL, "there is no training job \"none\"");
    put_running(p, "a-node-0", "side"); /* as the template was when the pod was made */
    ptj_expect(p, RUN("debug", "a", "--", "ls"), 0, "exec -i a-node-0 -c side -- ls\n", NULL);
    p->kubectl = "/nowhere/kubectl";
    ptj_expect(p, RUN("debug", "a"), 1, NULL, "kubectl, which this needs: No such file");
}

static void test_tensorboard(void **state)
{
    struct ptj *p = *state;

    ptj_put_job(p, "none", "{}", "{}");
    ptj_put_job(p, "off", "{\"tensorboardSpec\":{\"suspend\":true}}", "{}");
    ptj_put_job(p, "soon", "{\"tensorboardSpec\":{}}",
                "{\"tensorboard\":{\"ready\":false,\"reason\":\"WaitsForPod\",\"note\":\"\\u001b[31mx\"}}");
    /* The operator's own hint lacks the namespace and the connection. */
    ptj_put_job(p, "later", "{\"tensorboardSpec\":{}}",
                "{\"tensorboard\":{\"ready\":false,\"reason\":\"NotAvailable\",\"note\":\"Deployment does "
                "not have minimum "
                "availability. (see kubectl describe pods -l batch.tensorstack.dev/tensorboard=later)\"}}");
    /* The API server's sentence, whole. */
    ptj_put_job(
        p, "never", "{\"tensorboardSpec\":{}}",
        "{\"tensorboard\":{\"ready\":false,\"reason\":\"NotAvailable\",\"note\":\"pods "
        "\\\"never-tensorboard-0\\\" is forbidden: "
        "exceeded quota: q, requested: requests.cpu=100m, used: requests.cpu=1, limited: requests.cpu=1\"}}");
    ptj_put_job(p, "on", "{\"tensorboardSpec\":{}}", "{\"tensorboard\":{\"ready\":true}}");
    ptj_expect(p, RUN("tensorboard", "none"), 1, NULL, "none has no TensorBoard: set spec.tensorboardSpec");
    ptj_expect(p, RUN("tensorboard", "off"), 1, NULL, "the TensorBoard of off is suspended");
    ptj_expect(p, RUN("tensorboard", "soon"), 1, NULL,
               "is not ready yet: WaitsForPod: x (kubectl -n team describe pods -l "
               "batch.tensorstack.dev/tensorboard=soon)\n");
    ptj_expect(p, RUN("tensorboard", "later"), 1, NULL,
               "is not ready yet: NotAvailable: Deployment does not have minimum availability. (kubectl -n "
               "team describe pods -l "
               "batch.tensorstack.dev/tensorboard=later)\n");
    ptj_expect(p, RUN("tensorboard", "never"), 1, NULL,
               "used: requests.cpu=1, limited: requests.cpu=1 (kubectl -n team describe pods");
    ptj_expect(p, RUN("tensorboard", "on", "--port", "7000"), 0,
               "TensorBoard of on: http://localhost:7000/ (Ctrl-C ends it)\n"
               "kubectl --namespace team port-forward service/on-tensorboard 7000:6006\n",
               NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_script, begin, end),
        cmocka_unit_test_setup_teardown(test_all_options, begin, end),
        cmocka_unit_test_setup_teardown(test_each_option, begin, end),
        cmocka_unit_test_setup_teardown(test_each_option_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_follow, begin, end),
        cmocka_unit_test_setup_teardown(test_follow_is_interrupted, begin, end),
        cmocka_unit_test_setup_teardown(test_a_folder, begin, end),
        cmocka_unit_test_setup_teardown(test_this_folder, begin, end),
        cmocka_unit_test_setup_teardown(test_hostile_names, begin, end),
        cmocka_unit_test_setup_teardown(test_names_that_are_not_utf8, begin, end),
        cmocka_unit_test_setup_teardown(test_dollars, begin, end),
        cmocka_unit_test_setup_teardown(test_byte_order_marks, begin, end),
        cmocka_unit_test_setup_teardown(test_creates, begin, end),
        cmocka_unit_test_setup_teardown(test_the_next_command, begin, end),
        cmocka_unit_test_setup_teardown(test_nothing_is_left_half_made, begin, end),
        cmocka_unit_test_setup_teardown(test_a_lost_answer, begin, end),
        cmocka_unit_test_setup_teardown(test_a_server_that_fails, begin, end),
        cmocka_unit_test_setup_teardown(test_a_neighbour_makes_the_configmap, begin, end),
        cmocka_unit_test(test_patterns),
        cmocka_unit_test_setup_teardown(test_ptjignore, begin, end),
        cmocka_unit_test_setup_teardown(test_keys_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_secrets_in_the_environment, begin, end),
        cmocka_unit_test_setup_teardown(test_refused, begin, end),
        cmocka_unit_test(test_names),
        cmocka_unit_test_setup_teardown(test_debug, begin, end),
        cmocka_unit_test_setup_teardown(test_tensorboard, begin, end),
    };

    if (argc != 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
