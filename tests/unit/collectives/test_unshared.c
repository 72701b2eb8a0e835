/* test_unshared.c - every collective between ranks of a pod that are forbidden to share memory: over TCP, the same bits. */
#include "calls.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { SKIPPED = 77 };

/* From now on `call` ends with EPERM; with a domain, only when its first argument is that. */
static int forbid(long call, long domain)
{
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)domain, 0, domain >= 0 ? 1 : 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = ARRAY_LEN(lines), .filter = lines};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

static void must_forbid(long call, long domain)
{
    if (forbid(call, domain) < 0)
        _exit(RANK_FAILED);
}

static void no_memory_files(int rank)
{
    (void)rank;
    must_forbid(SYS_memfd_create, -1);
}

static void no_names(int rank)
{
    (void)rank;
    must_forbid(SYS_socket, AF_UNIX);
}

/* Its neighbour could, and the other pod does. */
static void one_has_no_memory_files(int rank)
{
    if (rank == 2)
        must_forbid(SYS_memfd_create, -1);
}

/* Whether the filter works. */
static int try_filter(void)
{
    if (forbid(SYS_socket, AF_UNIX) < 0)
        return SKIPPED;
    const int tcp = socket(AF_INET, SOCK_STREAM, 0), local = socket(AF_UNIX, SOCK_STREAM, 0);
    return tcp >= 0 && local < 0 && errno == EPERM ? 0 : 1;
}

static const struct ranks_layout layouts[] = {
    {.world = 2, .before = no_memory_files},
    {.world = 3, .before = no_names},
    {.world = 4, .per_pod = 2, .before = no_names},
    {.world = 5, .per_pod = 2, .before = one_has_no_memory_files},
};

static int transport_body(struct collectives *c, void *arg)
{
    const struct ranks_layout *l = arg;
    const bool unshared = l->before != one_has_no_memory_files || c->rank / 2 == 1;
    struct err err = {0};

    RANK_CHECK(strcmp(c->transport, unshared ? "pods without shared memory" : "pods") == 0);
    RANK_OK(c->barrier(c, RANKS_TIMEOUT_MS, &err));
    return 0;
}

/* Only the pods concerned give up their memory. */
static void test_transport(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
        struct ranks_layout l = layouts[i];
        ranks_run_pods(&l, transport_body, &l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_transport)};
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0)
        _exit(try_filter());
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (status) {
        printf("no seccomp filters here\n");
        return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed ? failed : calls_main(layouts, ARRAY_LEN(layouts));
}
