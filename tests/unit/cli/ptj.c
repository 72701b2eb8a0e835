/* ptj.c - run kubectl-ptj against a fake API server. */
#include "test.h"

#include "ptj.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4 << 20, ARGS_MAX = 32 };

const char *ptj_program;

static const char *path(const struct ptj *p, const char *name, char buf[static 128])
{
    snprintf(buf, 128, "%s/%s", p->dir, name);
    return buf;
}

void ptj_begin(struct ptj *p, const char *program)
{
    char text[1024], at[128];
    struct err err;

    *p = (struct ptj){.program = program, .server = fake_apiserver_start()};
    fake_add_kind(p->server, "/apis/batch.tensorstack.dev/v1beta1", "pytorchtrainingjobs",
                  "PyTorchTrainingJob");
    snprintf(p->dir, sizeof(p->dir), "/tmp/ptj.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    snprintf(
        text, sizeof(text),
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster: {server: '%s'}\n"
        "contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: team}\nusers:\n- name: u\n  user: "
        "{token: t}\n",
        fake_apiserver_url(p->server));
    assert_int_equal(fs_write_atomic(path(p, "config", at), text, strlen(text), &err), 0);
}

void ptj_end(struct ptj *p)
{
    static const char *const FILES[] = {"config", "out", "err"};
    char at[128];

    fake_apiserver_stop(p->server);
    for (size_t i = 0; i < ARRAY_LEN(FILES); i++)
        unlink(path(p, FILES[i], at));
    rmdir(p->dir);
}

int ptj_setup(void **state)
{
    static struct ptj p;

    ptj_begin(&p, ptj_program);
    *state = &p;
    return 0;
}

int ptj_teardown(void **state)
{
    ptj_end(*state);
    return 0;
}

void ptj_put_job(struct ptj *p, const char *name, const char *spec, const char *status)
{
    char at[256];
    char *text = NULL;

    snprintf(at, sizeof(at), PTJ_JOBS "/%s", name);
    assert_true(asprintf(&text,
                         "{\"apiVersion\":\"batch.tensorstack.dev/v1beta1\",\"kind\":\"PyTorchTrainingJob\","
                         "\"metadata\":{\"name\":\"%s\",\"namespace\":\"team\"},\"spec\":%s,\"status\":%s}",
                         name, spec, status) > 0);
    assert_true(fake_put(p->server, at, text));
    free(text);
}

void ptj_put_pod(struct ptj *p, int index, int attempt, const char *spec, const char *status)
{
    cleanup_json cJSON *job = fake_json(p->server, PTJ_JOBS "/j");
    cleanup_free char *text = NULL;
    char at[128];

    snprintf(at, sizeof(at), PTJ_PODS "/j-node-%d", index);
    assert_true(
        asprintf(
            &text,
            "{\"metadata\":{\"name\":\"j-node-%d\",\"labels\":{\"batch.tensorstack.dev/job\":\"j\","
            "\"batch.tensorstack.dev/replica-type\":\"node\",\"batch.tensorstack.dev/replica-index\":\"%d\","
            "\"batch.tensorstack.dev/attempt\":\"%d\"},\"annotations\":{"
            "\"batch.tensorstack.dev/training-container\":\"main\"},\"ownerReferences\":[{\"apiVersion\":"
            "\"batch.tensorstack.dev/v1beta1\",\"kind\":\"PyTorchTrainingJob\",\"name\":\"j\",\"uid\":\"%s\","
            "\"controller\":true}]},\"spec\":%s,\"status\":%s}",
            index, index, attempt, json_str(json_find(job, (const char *[]){"metadata", NULL}), "uid"), spec,
            status) > 0);
    assert_true(fake_put(p->server, at, text));
}

static void redirect(int to, const char *file)
{
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    if (fd < 0 || dup2(fd, to) < 0)
        _exit(126);
}

pid_t ptj_start(struct ptj *p, const char *const *args)
{
    char *argv[ARGS_MAX] = {(char *)(uintptr_t) "kubectl-ptj"};
    char config[128], out[128], err[128];
    pid_t pid;

    for (int i = 0; args[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    path(p, "config", config);
    path(p, "out", out);
    path(p, "err", err);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("KUBECONFIG", config, 1);
        redirect(STDOUT_FILENO, out);
        redirect(STDERR_FILENO, err);
        execv(p->program, argv);
        _exit(127);
    }
    return pid;
}

static char *text_of(const char *file)
{
    cleanup_buf struct buf text = BUF_INIT(OUTPUT_MAX);
    struct err err;

    assert_int_equal(fs_read(file, &text, &err), 0);
    return memory_strdup(buf_str(&text));
}

struct ptj_result ptj_wait(struct ptj *p, pid_t pid)
{
    struct ptj_result r;
    char at[128];
    int status = 0;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    r.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    r.out = text_of(path(p, "out", at));
    r.err = text_of(path(p, "err", at));
    return r;
}

struct ptj_result ptj_run(struct ptj *p, const char *const *args)
{
    return ptj_wait(p, ptj_start(p, args));
}

void ptj_forget(struct ptj_result *r)
{
    free(r->out);
    free(r->err);
}

static void expect_text(const char *what, const char *got, const char *want)
{
    if (want ? !strstr(got, want) : got[0] != 0)
        fail_msg("%s: expected \"%s\" in:\n%s", what, want ? want : "nothing", got);
}

void ptj_expect(struct ptj *p, const char *const *args, int status, const char *out, const char *err)
{
    struct ptj_result r = ptj_run(p, args);

    expect_text("stderr", r.err, err);
    expect_text("stdout", r.out, out);
    assert_int_equal(r.status, status);
    ptj_forget(&r);
}
