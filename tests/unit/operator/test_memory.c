/* test_memory.c - out of memory at each allocation in turn: reading a job and its pod, and planning it, either ends the
 * process, as common/arena.h promises, or comes to the very same plan. Never to half a one.
 *
 * Each try is a process of its own; its n-th allocation fails. The test's own malloc does that, on glibc's: sanitizers
 * have theirs, so there is nothing to be seen with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/plan/plan.h"
#include "yamldoc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __has_feature
#define SANITIZER_HERE (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_HERE 1
#else
#define SANITIZER_HERE 0
#endif

#if !defined(__GLIBC__) || SANITIZER_HERE
int main(void)
{
    puts("skipped: the allocator is not glibc's own");
    return 77;
}
#else

enum { NO_MORE = 0, FEWEST_ALLOCATIONS = 300, TEXT_BYTES = 1 << 16 };

static long left; /* allocations until one fails; NO_MORE: none does */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

static bool refused(void)
{
    if (left == NO_MORE || --left != NO_MORE)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t size)
{
    return refused() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return refused() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *old, size_t size)
{
    return refused() ? NULL : __libc_realloc(old, size);
}

struct material {
    const char *job, *pod; /* JSON */
};

/* A number for all that the plan says; -1 where reading failed. */
static int64_t plan_hash(const struct material *m)
{
    cleanup_arena struct arena a = {0};
    struct err err;
    struct plan plan;
    uint64_t hash = 0;

    cJSON *tree = json_parse(m->job, strlen(m->job), &err);
    cleanup_json cJSON *pod_tree = json_parse(m->pod, strlen(m->pod), &err);
    cleanup_trainjob struct trainjob *job = tree ? trainjob_decode(tree, &err) : NULL;
    struct pod *pod = pod_tree ? pod_decode(pod_tree, &err) : NULL;
    if (!job || !pod)
        return -1;
    const struct pod *pods[] = {pod};
    plan_trainjob(
        &(struct plan_input){
            .job = job, .pods = pods, .n_pods = 1, .now_ms = 1767225600000, .tensorboard_image = "tb"},
        &a, &plan);
    for (int i = 0; i < plan.n_actions; i++) {
        const struct action *act = &plan.actions[i];
        const char *const texts[] = {act->name, act->uid, act->body, act->reason, act->message};
        for (size_t k = 0; k < ARRAY_LEN(texts); k++)
            for (const char *p = texts[k]; p && *p; p++)
                hash = hash * 31 + (unsigned char)*p;
        hash = hash * 31 + (uint64_t)act->kind;
    }
    pod_free(pod);
    return (int64_t)(hash >> 1);
}

/* What a process came to whose n-th allocation failed; *ret_failed: there was one. -2: it ended by SIGABRT. */
static int64_t try_without(const struct material *m, long n, bool *ret_failed)
{
    int fds[2], status;
    struct {
        int64_t hash;
        long left;
    } said;

    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        left = n;
        said.hash = plan_hash(m);
        said.left = left;
        _exit(write(fds[1], &said, sizeof(said)) == sizeof(said) ? 0 : 1);
    }
    close(fds[1]);
    ssize_t got = read(fds[0], &said, sizeof(said));
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    *ret_failed = true;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return -2;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || got != sizeof(said))
        fail_msg("allocation %ld: status %#x, not an end by SIGABRT", n, (unsigned)status);
    *ret_failed = said.left == NO_MORE;
    return said.hash;
}

static void sweep(const struct material *m)
{
    const int64_t want = plan_hash(m);
    bool failed = true;
    long n = 0, aborted = 0;

    assert_true(want >= 0);
    while (failed) {
        int64_t came_to = try_without(m, ++n, &failed);
        aborted += came_to == -2;
        if (came_to != -2 && came_to != want)
            fail_msg("without allocation %ld it is another plan", n);
    }
    printf("%ld allocations, %ld of them cannot be done without\n", n - 1, aborted);
    assert_true(n > FEWEST_ALLOCATIONS && aborted > FEWEST_ALLOCATIONS);
}

static void test_each_allocation(void **state)
{
    static const char POD[] =
        "{\"metadata\":{\"namespace\":\"n\",\"name\":\"torch-mnist-trainingjob-node-0\",\"uid\":\"p\","
        "\"labels\":{"
        "\"" LABEL_TYPE "\":\"node\",\"" LABEL_INDEX "\":\"0\",\"" LABEL_ATTEMPT "\":\"0\"},"
        "\"ownerReferences\":[{\"uid\":\"u\",\"controller\":true}]},"
        "\"status\":{\"phase\":\"Failed\",\"containerStatuses\":[{\"name\":\"pytorch\",\"state\":{"
        "\"terminated\":{"
        "\"exitCode\":137,\"reason\":\"OOMKilled\"}}}]}}";
    static char old[TEXT_BYTES], fresh[TEXT_BYTES];
    cleanup_arena struct arena a = {0};
    struct err err;
    cleanup_json cJSON *job = yamldoc_read(TK_SOURCE_DIR "/tests/golden/tutorial/job.yaml", &err);

    (void)state;
    json_abort_without_memory();
    cJSON *meta = cJSON_GetObjectItemCaseSensitive(job, "metadata");
    cJSON_AddStringToObject(meta, "namespace", "n");
    cJSON_AddStringToObject(meta, "uid", "u");
    cJSON_AddStringToObject(meta, "resourceVersion", "1");
    snprintf(fresh, sizeof(fresh), "%s", json_print(job, &a));
    cJSON *status = cJSON_AddObjectToObject(job, "status");
    cJSON_AddStringToObject(status, "phase", "Running");
    snprintf(old, sizeof(old), "%s", json_print(job, &a));
    sweep(&(struct material){fresh, POD});
    sweep(&(struct material){old, POD});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_allocation)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
