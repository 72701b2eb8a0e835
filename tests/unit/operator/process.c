/* process.c - fork, signals, and what /proc says of a process that was stopped. */
#include "process.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/fsutil.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPS_MAX = 2000 };

static void path_of(const struct process *p, const char *name, char *out, size_t size)
{
    snprintf(out, size, "%s/%s-%d", p->dir, name, p->number);
}

void process_start(struct process *p, const char *program, const char *url)
{
    char log[128];
    char file[128], text[64];
    char token[160], server[160];
    struct err err;

    path_of(p, "log", log, sizeof(log));
    path_of(p, "token", file, sizeof(file));
    snprintf(text, sizeof(text), "operator-%d", p->number);
    assert_int_equal(fs_write_atomic(file, text, strlen(text), &err), 0);
    snprintf(server, sizeof(server), "--server=%s", url);
    snprintf(token, sizeof(token), "--token-file=%s", file);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fd, STDERR_FILENO);
        execl(program, "ptj-operator", server, token, "--metrics-bind-address=0",
              "--health-probe-bind-address=0", "--leader-elect-namespace=sys",
              "--leader-elect-lease-duration=3", (char *)NULL);
        _exit(127);
    }
}

bool process_says(const struct process *p, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    char path[128];
    struct err err;

    path_of(p, "log", path, sizeof(path));
    return fs_read(path, &text, &err) == 0 && strstr(buf_str(&text), want);
}

/* Whether a stopped process was in a system call that waits. */
static bool is_waiting(pid_t pid)
{
    char path[64];
    char text[64] = "";
    long call = -1;

    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)pid);
    cleanup_fclose FILE *f = fopen(path, "re");
    if (f && fgets(text, sizeof(text), f))
        call = strtol(text, NULL, 10);
    return strncmp(text, "running", 7) != 0 &&
           (call == SYS_poll || call == SYS_ppoll || call == SYS_restart_syscall);
}

void process_stop(const struct process *p, unsigned *dice)
{
    for (int i = 0; i < STOPS_MAX; i++) {
        int status;
        assert_int_equal(kill(p->pid, SIGSTOP), 0);
        assert_int_equal(waitpid(p->pid, &status, WUNTRACED), p->pid);
        assert_true(WIFSTOPPED(status));
        if (is_waiting(p->pid))
            return;
        assert_int_equal(kill(p->pid, SIGCONT), 0);
        usleep(50 + process_roll(dice, 500));
    }
    fail_msg("it never waits");
}

void process_end(struct process *p)
{
    int status = 0;

    assert_int_equal(kill(p->pid, SIGTERM), 0);
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    p->pid = 0;
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void process_remove(struct process *p)
{
    char path[128];

    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, NULL, 0);
        p->pid = 0;
    }
    path_of(p, "log", path, sizeof(path));
    unlink(path);
    path_of(p, "token", path, sizeof(path));
    unlink(path);
}
