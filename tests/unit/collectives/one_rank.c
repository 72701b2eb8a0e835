/* one_rank.c - one forked rank at a time, for the tests of how ranks meet. */
#include "one_rank.h"

#include "ranks.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

int one_rank_sums_up(struct collectives *c)
{
    struct err err = {0};
    static float x[40000];
    const size_t sizes[] = {1, 5000, ARRAY_LEN(x)};

    for (size_t k = 0; k < ARRAY_LEN(sizes); k++) {
        for (size_t i = 0; i < sizes[k]; i++)
            x[i] = (float)(c->rank + 1);
        RANK_OK(c->all_reduce(c, x, sizes[k], NULL, RANKS_TIMEOUT_MS, &err));
        for (size_t i = 0; i < sizes[k]; i++)
            RANK_CHECK(x[i] == (float)(c->world * (c->world + 1) / 2));
    }
    return 0;
}

pid_t one_rank_start(struct collectives_config cfg, int64_t timeout_ms, int said)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct err err = {0};
    struct collectives *c = collectives_open(&cfg, timeout_ms, &err);
    if (!c) {
        if (said >= 0 && write(said, err.msg, strlen(err.msg)) < 0)
            _exit(RANK_FAILED);
        _exit(collectives_exit_code(&err));
    }
    int rc = one_rank_sums_up(c);
    if (rc == 0 && c->barrier(c, RANKS_TIMEOUT_MS, &err) < 0)
        rc = RANK_FAILED;
    collectives_close(c);
    _exit(rc);
}

int one_rank_ended(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

void one_rank_said(int fd, char *out, size_t size)
{
    ssize_t n = read(fd, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
}
