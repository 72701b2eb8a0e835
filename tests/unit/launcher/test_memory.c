/* test_memory.c - out of memory at each allocation in turn of one of two launchers that run a job together: the one that
 * hosts the leader, or the other one. It ends with a code and a message that call for another try, or does without; the
 * other one ends too, and with the code of a lost peer, of a peer that never came, or of success.
 *
 * In the short form every STRIDE-th allocation; all of them with FAULTS=full.
 */
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/contract.h"
#include "crew.h"
#include "faults.h"
#include "patience.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

enum {
    NODES = 2,
    AT_ONCE = 12,
    STRIDE = 7,
    JOIN_MS = 2000,
    HANGS_MS = 600000,
    FEWEST = 20,
    TRIES_MAX = 2000
};

static char *preload;

static const struct story {
    const char *name, *restarts, *script;
} STORIES[] = {
    {"success", "--max-restarts=0", "true"},
    {"a restart", "--max-restarts=1", "[ $TORCHELASTIC_RESTART_COUNT = 1 ]"},
};

struct
try {
    const struct story *story;
    int victim;
    long n;          /* 0: it is only counted */
    int64_t join_ms; /* how long a node waits for the other one */
    struct crew crew;
};

struct tally {
    int tries, struck, exhausted, failed;
};

/* Beside the launcher's own folder, whose name nobody knows yet. */
static void said_path(const struct try *t, char *out, size_t size)
{
    snprintf(out, size, "/tmp/test-memory-%d-%d", (int)getpid(), t->crew.port);
}

static void start(struct try *t)
{
    char path[64], conf[64];
    char at[24];

    crew_open(&t->crew, NODES);
    snprintf(conf, sizeof(conf), "last_call_timeout=0.2,join_timeout=%d", (int)(t->join_ms / 1000));
    t->crew.conf = t->n ? conf : "last_call_timeout=0.2";
    said_path(t, path, sizeof(path));
    snprintf(at, sizeof(at), "%ld", t->n);
    for (int i = 0; i < NODES; i++) {
        if (i == t->victim) {
            setenv("LD_PRELOAD", preload, 1);
            setenv("FAIL_AT", at, 1);
            setenv("FAIL_SAYS", path, 1);
        }
        crew_start(&t->crew, i, RUN_ARGS("--nnodes=2", t->story->restarts), t->story->script);
        unsetenv("LD_PRELOAD");
        unsetenv("FAIL_AT");
        unsetenv("FAIL_SAYS");
    }
}

/* The number that the victim has left; 0: none. */
static long said(const struct try *t)
{
    char path[64];
    long n = 0;

    said_path(t, path, sizeof(path));
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%ld", &n) != 1)
            n = 0;
        fclose(f);
    }
    unlink(path);
    return n;
}

static int64_t now_ms(void)
{
    struct clock c = clock_system();

    return c.mono_ms(c.ctx);
}

/* As crew_wait, but a launcher that hangs fails the test. */
static int ending(struct try *t, int i)
{
    int64_t deadline = now_ms() + HANGS_MS;
    siginfo_t info = {0};

    while (waitid(P_PID, (id_t)t->crew.runs[i].pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           !info.si_pid) {
        if (now_ms() > deadline) {
            kill(t->crew.runs[i].pid, SIGKILL);
            fail_msg("%s, allocation %ld of node %d: node %d hangs", t->story->name, t->n, t->victim, i);
        }
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    return crew_wait(&t->crew, i);
}

/* False: the machine was so busy that the nodes did not meet in time. */
static bool judge(struct try *t, struct tally *sum)
{
    int code = ending(t, t->victim);
    int other = ending(t, 1 - t->victim);
    const char *words = buf_str(&t->crew.runs[t->victim].err);
    bool struck = said(t) == t->n;
    bool well = code == 0 || (code == EXIT_CODE_RETRYABLE && words[0]);

    if (!well || (other != 0 && other != EXIT_CODE_PEER_LOST && other != EXIT_CODE_RETRYABLE) ||
        (code == 0 && other != 0))
        fail_msg(
            "%s, allocation %ld of node %d (%s): it ended with %d, \"%s\"; the other one with %d, \"%s\"",
            t->story->name, t->n, t->victim, struck ? "struck" : "not reached", code, words, other,
            buf_str(&t->crew.runs[1 - t->victim].err));
    const bool late = !struck && code == EXIT_CODE_RETRYABLE;
    bool exhausted = code && strstr(words, "torchrun: out of memory\n");
    sum->tries += !late;
    sum->struck += struck;
    sum->exhausted += exhausted;
    sum->failed += code > 0 && !exhausted && !late;
    crew_release(&t->crew);
    return !late;
}

/* The fewest of as many as are tried at once: how many there are depends on how busy the machine is. */
static long count(const struct story *story, int victim)
{
    static struct try tries[AT_ONCE];
    long fewest = LONG_MAX;

    for (int k = 0; k < AT_ONCE; k++) {
        tries[k] = (struct try){.story = story, .victim = victim};
        start(&tries[k]);
    }
    for (int k = 0; k < AT_ONCE; k++) {
        for (int i = 0; i < NODES; i++)
            assert_int_equal(ending(&tries[k], i), 0);
        long n = said(&tries[k]);
        fewest = n < fewest ? n : fewest;
        crew_release(&tries[k].crew);
    }
    return fewest;
}

static void sweep(const struct story *story, int victim)
{
    static struct try tries[AT_ONCE];
    const int stride = faults_in_full() ? 1 : STRIDE;
    const long all = count(story, victim);
    struct tally sum = {0};
    long n = 1;

    assert_in_range(all, FEWEST, TRIES_MAX);
    for (int n_tries = 0; n <= all || n_tries;) {
        for (; n_tries < AT_ONCE && n <= all; n += stride)
            tries[n_tries++] = (struct try){.story = story, .victim = victim, .n = n, .join_ms = JOIN_MS};
        for (int i = 0; i < n_tries; i++)
            start(&tries[i]);
        int again = 0;
        for (int i = 0; i < n_tries; i++)
            if (!judge(&tries[i], &sum)) {
                tries[again] = tries[i];
                tries[again].join_ms = patience_grow(tries[again].join_ms);
                again++;
            }
        n_tries = again;
    }
    print_message("%s, node %d: %ld allocations, %d of %d tries struck; %d ended out of memory, %d with "
                  "words of their own\n",
                  story->name, victim, all, sum.struck, sum.tries, sum.exhausted, sum.failed);
    assert_true(sum.struck >= sum.tries * 3 / 4 && sum.exhausted > 0);
    assert_true(sum.struck * stride >= FEWEST);
}

static void test_the_host_of_the_store(void **state)
{
    sweep(*state, 0);
}

static void test_the_other_one(void **state)
{
    sweep(*state, 1);
}

int main(int argc, char **argv)
{
    struct CMUnitTest tests[2 * ARRAY_LEN(STORIES)];

    if (argc != 3) {
        fprintf(stderr, "usage: test_memory TORCHRUN FAILING_MALLOC\n");
        return 2;
    }
    run_torchrun = argv[1];
    preload = argv[2];
    for (size_t i = 0; i < ARRAY_LEN(STORIES); i++) {
        void *story = (void *)(uintptr_t)&STORIES[i];
        tests[2 * i] = (struct CMUnitTest){"the host", test_the_host_of_the_store, NULL, NULL, story};
        tests[2 * i + 1] = (struct CMUnitTest){"the other one", test_the_other_one, NULL, NULL, story};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
