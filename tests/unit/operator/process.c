/* process.c - fork, signals, and what /proc shows of a stopped process. */
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
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STOPS_MAX = 2000 };

void process_start(struct process *p, const char *const *args)
{
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(p->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

bool process_has_ended(struct process *p)
{
    int status;

    if (p->pid > 0 && waitpid(p->pid, &status, WNOHANG) == p->pid) {
        p->pid = 0;
        p->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    return p->pid == 0;
}

bool process_says(const struct process *p, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(8 << 20);
    struct err err;

    return fs_read(p->log, &text, &err) == 0 && strstr(buf_str(&text), want);
}

void process_until_says(struct process *p, const char *want)
{
    while (!process_says(p, want)) {
        if (process_has_ended(p) && !process_says(p, want))
            fail_msg("it ended with %d, and %s has no \"%s\"", p->exit_code, p->log, want);
        usleep(5000);
    }
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

int process_wait(struct process *p)
{
    int status = 0;

    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    p->pid = 0;
    return p->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void process_end(struct process *p)
{
    assert_int_equal(kill(p->pid, SIGTERM), 0);
    assert_int_equal(process_wait(p), 0);
}

void process_remove(struct process *p)
{
    if (p->pid > 0) {
        kill(p->pid, SIGKILL);
        (void)process_wait(p);
    }
    unlink(p->log);
}
