/* ptj.c - run kubectl-ptj against a fake API server. */
#include "test.h"

#include "ptj.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"
#include "signals.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 4 << 20, ARGS_MAX = 32, PATIENCE_MS = 600000 };

const char *ptj_program;

static const char *path(const struct ptj *p, const char *name, char buf[static 128])
{
    snprintf(buf, 128, "%s/%s", p->dir, name);
    return buf;
}

void ptj_begin(struct ptj *p, const char *program)
{
    char at[128];

    *p = (struct ptj){.program = program};
    snprintf(p->dir, sizeof(p->dir), "/tmp/ptj.XXXXXX");
    assert_non_null(mkdtemp(p->dir));
    p->server = fake_apiserver_start_at(path(p, "api", at));
    ptj_kubectl(p, NULL);
    fake_add_kind(p->server, "/apis/batch.tensorstack.dev/v1beta1", "pytorchtrainingjobs",
                  "PyTorchTrainingJob");
}

void ptj_kubectl(const struct ptj *p, const char *serve)
{
    static const char SCRIPT[] =
        "#!/bin/sh\n"
        "case \"$*\" in\n"
        "*none*) echo 'error: context \"none\" does not exist' >&2; exit 1 ;;\n"
        "*'config view'*) printf team ;;\n"
        "*proxy*) at=${*##*--unix-socket=}; echo \"$$ $*\" >>'%s/started'; ln -s '%s/api' \"$at\"\n"
        "    echo \"Starting to serve on $at\"\n"
        "    %s\n"
        "    exec sleep 1000 ;;\n"
        "*) echo kubectl \"$@\" ;;\n"
        "esac\n";
    char text[2048], at[128];

    snprintf(text, sizeof(text), SCRIPT, p->dir, p->dir, serve ? serve : "");
    ptj_script(path(p, "kubectl", at), text);
}

void ptj_script(const char *at, const char *text)
{
    struct err err;

    assert_int_equal(fs_write_atomic(at, text, strlen(text), &err), 0);
    assert_int_equal(chmod(at, 0755), 0);
}

void ptj_end(struct ptj *p)
{
    char command[128];

    fake_apiserver_stop(p->server);
    snprintf(command, sizeof(command), "/bin/rm -rf %s", p->dir);
    assert_int_equal(system(command), 0);
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
            index, index, attempt, json_meta(job, "uid"), spec, status) > 0);
    assert_true(fake_put(p->server, at, text));
}

void ptj_environment(const struct ptj *p)
{
    char at[128];

    setenv("KUBECTL", p->kubectl ? p->kubectl : path(p, "kubectl", at), 1);
    setenv("XDG_RUNTIME_DIR", p->dir, 1);
}

const char *ptj_text(const struct ptj *p, const char *file)
{
    static struct buf text = BUF_INIT(OUTPUT_MAX);
    char at[128];
    struct err err;

    buf_clear(&text);
    if (fs_read(path(p, file, at), &text, &err) < 0)
        buf_clear(&text);
    return buf_str(&text);
}

void ptj_await(const struct ptj *p, const char *file, const char *text)
{
    for (int i = 0; i < PATIENCE_MS; i++) {
        if (strstr(ptj_text(p, file), text))
            return;
        usleep(1000);
    }
    fail_msg("%s never had \"%s\":\n%s", file, text, ptj_text(p, file));
}

size_t ptj_folders(const struct ptj *p)
{
    char pattern[128];
    struct stat st;
    glob_t found;

    if (glob(path(p, "kubectl-ptj-*", pattern), 0, NULL, &found) != 0)
        return 0;
    const size_t n = found.gl_pathc;
    assert_int_equal(stat(found.gl_pathv[0], &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    globfree(&found);
    return n;
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
    char out[128], err[128];
    pid_t pid;

    for (int i = 0; args[i]; i++)
        argv[i + 1] = (char *)(uintptr_t)args[i];
    path(p, "out", out);
    path(p, "err", err);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signals_default();
        ptj_environment(p);
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
