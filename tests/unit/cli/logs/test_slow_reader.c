/* test_slow_reader.c - kubectl ptj logs into a pager: what is read late, after the job's end, is still all there; a log that never
 * ends is not waited for.
 *
 * A process of its own follows the job by a clock that the test moves.
 */
#include "test.h"

#include "ptj.h"

#include "cli/logs/follow.h"
#include "common/json.h"
#include "common/memory.h"
#include "process_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define POD PTJ_PODS "/j-node-0"
#define SPEC                                                                                                 \
    "{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":1,\"template\":{\"spec\":{\"containers\":[{"         \
    "\"name\":\"main\",\"image\":\"i\"}]}}}]}"

enum {
    LINES = 30000,
    FIRST_BYTES = 64 << 10,
    SEEN_BYTES = 768 << 10,
    LATER_MS = 120000,
    STEP_MS = 4000,
    ENDLESS = 55
};

static int64_t *moved_ms; /* shared with the process that follows */

static int64_t moving_ms(void *ctx)
{
    const struct clock c = clock_system();

    (void)ctx;
    return c.mono_ms(c.ctx) + __atomic_load_n(moved_ms, __ATOMIC_SEQ_CST);
}

static void put_pod(struct ptj *p, const char *phase, const char *state)
{
    char status[256];

    snprintf(status, sizeof(status),
             "{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"main\",\"state\":%s}]}", phase, state);
    ptj_put_pod(p, 0, 0, "{\"containers\":[{\"name\":\"main\"}]}", status);
}

static void print_log(struct ptj *p)
{
    cleanup_buf struct buf lines = BUF_INIT(8 << 20);
    struct err err;

    for (int i = 0; i < LINES; i++)
        assert_int_equal(buf_printf(&lines, &err, "2026-01-01T%02d:%02d:%02d.5Z some line, number %05d\n",
                                    i / 3600, i / 60 % 60, i % 60, i),
                         0);
    fake_pod_prints(p->server, POD, buf_str(&lines));
}

/* In the child. */
static int follow(const struct ptj *p)
{
    const struct follow_options o = {.tail = -1, .follow = true};
    struct session s = {.ns = "team"};
    struct err err;
    cJSON *job;

    s.config.server = memory_strdup("http://localhost");
    if (asprintf(&s.config.socket, "%s/api", p->dir) < 0)
        return 100;
    s.loop = kube_loop_new((struct clock){moving_ms, moving_ms, moving_ms, NULL, NULL}, &err);
    s.http = s.loop ? http_new(s.loop, &s.config, "test", &err) : NULL;
    if (!s.http)
        return 101;
    s.api = http_transport(s.http);
    if (session_job(&s, "j", &job, &err) < 0)
        return 102;
    struct trainjob *decoded = trainjob_decode(job, &err);
    return decoded ? follow_job(&s, decoded, &o, &err) : 103;
}

/* Until so many bytes are there, or the end. */
static void read_until(int fd, struct buf *out, size_t bytes)
{
    char piece[4096];
    struct err err;

    while (out->len < bytes) {
        const ssize_t n = read(fd, piece, sizeof(piece));
        assert_true(n >= 0);
        if (n == 0)
            return;
        assert_int_equal(buf_append(out, piece, (size_t)n, &err), 0);
    }
}

/* A process that follows the job, and the pipe that its output comes through. */
static pid_t begin(struct ptj *p, int *ret_fd)
{
    int ends[2];

    moved_ms = mmap(NULL, sizeof(*moved_ms), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(moved_ms != MAP_FAILED);
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        _exit(follow(p));
    }
    close(ends[1]);
    *ret_fd = ends[0];
    return pid;
}

static void expect_end(struct ptj *p, pid_t pid, int fd, int want)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), want);
    close(fd);
    munmap(moved_ms, sizeof(*moved_ms));
    ptj_end(p);
}

static void move_clock(int64_t ms)
{
    __atomic_add_fetch(moved_ms, ms, __ATOMIC_SEQ_CST);
}

static void all_lines_come(bool deleted)
{
    cleanup_buf struct buf got = BUF_INIT(8 << 20);
    struct ptj p;
    int fd, n = 0;

    ptj_begin(&p, "");
    ptj_put_job(&p, "j", SPEC, "{\"phase\":\"Running\"}");
    print_log(&p);
    put_pod(&p, "Running", "{\"running\":{}}");
    const pid_t pid = begin(&p, &fd);
    read_until(fd, &got, FIRST_BYTES);
    fake_pod_log_ends(p.server, POD);
    if (deleted)
        assert_true(fake_remove(p.server, POD));
    else
        put_pod(&p, "Succeeded", "{\"running\":null,\"terminated\":{\"exitCode\":0}}");
    ptj_put_job(&p, "j", SPEC, "{\"phase\":\"Succeeded\"}");
    fake_settle(p.server);
    read_until(fd, &got, SEEN_BYTES); /* it has seen the end of the job meanwhile */
    if (!deleted)
        move_clock(LATER_MS);
    read_until(fd, &got, SIZE_MAX);
    /* strstr would read all the text for each line under AddressSanitizer. */
    for (const char *at = buf_str(&got); (at = strchr(at, 'n')); at++)
        if (strncmp(at, "number ", strlen("number ")) == 0)
            assert_int_equal(strtol(at + strlen("number "), NULL, 10), n++);
    assert_int_equal(n, LINES);
    expect_end(&p, pid, fd, 0);
}

static void test_all_lines_come(void **state)
{
    (void)state;
    all_lines_come(false);
}

static void test_lines_of_a_deleted_pod(void **state)
{
    (void)state;
    all_lines_come(true);
}

/* Until it has written what it had, and waits for the server: its clock is not looked at any more then. */
static void await_sleep(pid_t pid)
{
    for (char state; (state = process_state(pid, NULL)) != 'S' && state != 'Z'; usleep(200))
        assert_int_not_equal(state, 0);
}

/* The pod is deleted, and its kubelet sends on: a line within each silence that is waited for. */
static void test_endless_log(void **state)
{
    cleanup_buf struct buf got = BUF_INIT(8 << 20);
    char line[80];
    struct ptj p;
    int fd, n = 0;

    (void)state;
    ptj_begin(&p, "");
    ptj_put_job(&p, "j", SPEC, "{\"phase\":\"Running\"}");
    fake_pod_prints(p.server, POD, "2026-01-01T00:00:00Z first\n");
    put_pod(&p, "Running", "{\"running\":{}}");
    const pid_t pid = begin(&p, &fd);
    read_until(fd, &got, strlen("[node-0] first\n"));
    while (fake_open_pod_logs(p.server) != 1)
        usleep(1000);
    assert_true(fake_remove(p.server, POD));
    ptj_put_job(&p, "j", SPEC, "{\"phase\":\"Succeeded\"}");
    fake_settle(p.server);
    for (size_t before = 0; before != got.len && n < ENDLESS; n++) {
        before = got.len;
        snprintf(line, sizeof(line), "2026-01-01T00:01:%02dZ on\n", n % 60);
        fake_pod_prints(p.server, POD, line);
        read_until(fd, &got, got.len + 1); /* or its end */
        await_sleep(pid);
        move_clock(STEP_MS);
    }
    assert_in_range(n, 2, ENDLESS - 1);
    expect_end(&p, pid, fd, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_lines_come),
                                       cmocka_unit_test(test_lines_of_a_deleted_pod),
                                       cmocka_unit_test(test_endless_log)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
