/* test_memory.c - out of memory at each allocation of a rank in turn: the rank ends with 138 and a message, on stderr and in the
 * launcher's file, or it trains without that memory. A rank that resumes from a checkpoint resumes or ends; it never starts over.
 *
 * In the short form every STRIDE-th allocation; all of them with FAULTS=full.
 */
#include "common/cleanup.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "faults.h"
#include "scratch.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRIDE = 5, HANGS_S = 600, FEWEST = 100, TRIES_MAX = 5000, WORDS_MAX = 12, TEXT_BYTES = 1 << 20 };

static char *trainer, *preload;

static const struct story {
    const char *name;
    const char *before; /* epochs that an earlier attempt has done; NULL: there was none */
    const char *needs;  /* in what it prints when it ends with 0 */
    const char *words[WORDS_MAX];
} STORIES[] = {
    {.name = "a fresh start", .needs = "Epoch: 0", .words = {"linear", "--epochs", "1"}},
    {.name = "a later attempt", .before = "1", .needs = "resumed from", .words = {"linear", "--epochs", "2"}},
};

/* A run in a folder of its own, and what it left there. */
struct
try {
    char dir[64];
    int status;
    struct buf out, error_file;
    long said; /* by the allocator: 0: nothing */
};

/* In the child. */
static void become(const struct try *t, const char *const *words, const char *fail_at)
{
    const char *argv[WORDS_MAX + 10] = {trainer};
    int n = 1;

    while (words[n - 1]) {
        argv[n] = words[n - 1];
        n++;
    }
    argv[n++] = "--save_steps";
    argv[n++] = "64";
    argv[n++] = "--ckpt_dir";
    argv[n++] = "ckpt";
    argv[n++] = "--log_dir";
    argv[n++] = "log";
    (void)alarm(HANGS_S);
    int fd;
    if (chdir(t->dir) || (fd = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600)) < 0 ||
        dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        _exit(120);
    setenv("PTJ_JOB_UID", "memory", 1);
    setenv("TORCHELASTIC_ERROR_FILE", "error.json", 1);
    setenv("OMP_NUM_THREADS", "2", 1);
    if (fail_at) {
        setenv("LD_PRELOAD", preload, 1);
        setenv("FAIL_AT", fail_at, 1);
        setenv("FAIL_SAYS", "said", 1);
    }
    execv(trainer, (char *const *)(uintptr_t)argv);
    _exit(121);
}

static void read_file(const struct try *t, const char *name, struct buf *to)
{
    char path[96];
    struct err ignored;

    *to = (struct buf)BUF_INIT(TEXT_BYTES);
    snprintf(path, sizeof(path), "%s/%s", t->dir, name);
    if (fs_read(path, to, &ignored) < 0)
        buf_clear(to); /* it is not there */
}

/* fail_at NULL: with the allocator as it is. */
static void run(struct try *t, const char *const *words, const char *fail_at)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0)
        become(t, words, fail_at);
    assert_int_equal(waitpid(pid, &t->status, 0), pid);
}

static void begin(struct try *t, const struct story *s, long fail_at)
{
    char at[24];
    cleanup_buf struct buf said;

    snprintf(t->dir, sizeof(t->dir), "%s/test_memory_XXXXXX", scratch_home());
    assert_non_null(mkdtemp(t->dir));
    if (s->before) {
        run(t, (const char *const[]){s->words[0], s->words[1], s->before, NULL}, NULL);
        assert_int_equal(t->status, 0);
    }
    snprintf(at, sizeof(at), "%ld", fail_at);
    run(t, s->words, at);
    read_file(t, "out", &t->out);
    read_file(t, "error.json", &t->error_file);
    read_file(t, "said", &said);
    t->said = strtol(buf_str(&said), NULL, 10);
}

static void end(struct try *t)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -rf %s", t->dir);
    assert_int_equal(system(command), 0);
    buf_release(&t->out);
    buf_release(&t->error_file);
}

/* Whether it ended for lack of memory. */
static bool judge(const struct story *s, long n, const struct try *t)
{
    const char *out = buf_str(&t->out), *told = buf_str(&t->error_file);
    bool exhausted = WIFEXITED(t->status) && WEXITSTATUS(t->status) == EXIT_CODE_RETRYABLE;
    bool well = exhausted ? strstr(out, "trainer: ") && strstr(told, "{\"message\":{\"message\":\"")
                          : t->status == 0 && strstr(out, s->needs) && !told[0];

    if (!well)
        fail_msg("%s, allocation %ld (%s): status %#x, \"%s\", told \"%s\"", s->name, n,
                 t->said ? "struck" : "not reached", (unsigned)t->status, out, told);
    return exhausted;
}

static void test_each_allocation(void **state)
{
    const struct story *s = *state;
    const int stride = faults_in_full() ? 1 : STRIDE;
    int tries = 0, struck = 0, exhausted = 0;
    struct try t = {0};

    begin(&t, s, 0);
    const long all = t.said;
    assert_false(judge(s, 0, &t));
    end(&t);
    assert_in_range(all, FEWEST, TRIES_MAX);
    for (long n = 1; n <= all; n += stride, tries++) {
        begin(&t, s, n);
        struck += t.said == n;
        exhausted += judge(s, n, &t);
        end(&t);
    }
    print_message("%s: %ld allocations, %d of %d tries struck; %d ended with 138\n", s->name, all, struck,
                  tries, exhausted);
    assert_true(struck >= tries * 3 / 4 && exhausted >= struck / 2);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[ARRAY_LEN(STORIES)];

    if (argc != 3) {
        fprintf(stderr, "usage: test_memory TRAINER FAILING_MALLOC\n");
        return 2;
    }
    trainer = argv[1];
    preload = argv[2];
    for (size_t i = 0; i < ARRAY_LEN(STORIES); i++)
        tests[i] = (struct CMUnitTest){STORIES[i].name, test_each_allocation, NULL, NULL,
                                       (void *)(uintptr_t)&STORIES[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
