/* test_logs.c - kubectl ptj logs as a process: merged, followed over breaks and restarts, ended with the job.
 *
 * usage: test_logs <kubectl-ptj>
 */
#include "test.h"

#include "onpty.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "common/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define T "2026-01-01T00:00:"

enum { PATIENCE = 600000, STEP_MS = 10, MANY = 64 };

static void put_job(struct ptj *p, int replicas, const char *status)
{
    char spec[256];

    snprintf(spec, sizeof(spec),
             "{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":%d,\"template\":{\"spec\":{\"containers\":[{"
             "\"name\":"
             "\"main\",\"image\":\"i\"}]}}}]}",
             replicas);
    ptj_put_job(p, "j", spec, status);
}

static const char *pod_path(int index)
{
    static char path[128];

    snprintf(path, sizeof(path), PTJ_PODS "/j-node-%d", index);
    return path;
}

/* `state` as in containerStatuses[].state, of the training container; a mesh has put its proxy in front of it. */
static void put_pod(struct ptj *p, int index, int attempt, const char *phase, const char *state)
{
    char status[512];

    snprintf(status, sizeof(status),
             "{\"phase\":\"%s\",\"containerStatuses\":[{\"name\":\"mesh-proxy\",\"state\":{\"running\":{}}},"
             "{\"name\":\"main\",\"state\":%s}]}",
             phase, state);
    ptj_put_pod(p, index, attempt, "{\"containers\":[{\"name\":\"mesh-proxy\"},{\"name\":\"main\"}]}",
                status);
}

#define WAITS "{\"running\":null,\"terminated\":null,\"waiting\":{\"reason\":\"ContainerCreating\"}}"
#define RUNS "{\"running\":{},\"terminated\":null,\"waiting\":null}"
#define ENDED "{\"running\":null,\"terminated\":{\"exitCode\":0},\"waiting\":null}"

static void prints(struct ptj *p, int index, const char *lines)
{
    fake_pod_prints(p->server, pod_path(index), lines);
}

static void ends(struct ptj *p, int index)
{
    fake_pod_log_ends(p->server, pod_path(index));
    put_pod(p, index, 0, "Succeeded", ENDED);
}

static void await_followed(struct ptj *p, int n)
{
    for (int i = 0; fake_open_pod_logs(p->server) != n; i++) {
        assert_true(i < PATIENCE);
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
}

static void await_fault(struct ptj *p)
{
    for (int i = 0; fake_faults_done(p->server) == 0; i++) {
        assert_true(i < PATIENCE);
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
}

static void expect_result(struct ptj *p, pid_t pid, int status, const char *out, const char *err)
{
    struct ptj_result r = ptj_wait(p, pid);

    if (err ? !strstr(r.err, err) : r.err[0] != 0)
        fail_msg("stderr: expected \"%s\" in:\n%s", err ? err : "nothing", r.err);
    assert_string_equal(r.out, out);
    assert_int_equal(r.status, status);
    ptj_forget(&r);
}

static void expect_out(struct ptj *p, const char *const *args, int status, const char *out)
{
    expect_result(p, ptj_start(p, args), status, out, NULL);
}

static void put_ended(struct ptj *p, const char *phase)
{
    char status[64];

    snprintf(status, sizeof(status), "{\"phase\":\"%s\"}", phase);
    put_job(p, 2, status);
    prints(p, 0, T "01.000000000Z a1\n" T "03.000000000Z a2\n");
    prints(p, 1, T "02.000000000Z b1\n" T "04.000000000Z \x1b[2J[default0]:b2\n");
    ends(p, 0);
    ends(p, 1);
}

static void test_ended_job(void **state)
{
    struct ptj *p = *state;

    put_ended(p, "Succeeded");
    expect_out(p, RUN("logs", "j"), 0,
               "[node-0] a1\n[node-1] b1\n[node-0] a2\n[node-1] \x1b[2J[default0]:b2\n");
    expect_out(p, RUN("logs", "j", "--rank=1", "--timestamps"), 0,
               "[node-1] " T "02.000000000Z b1\n[node-1] " T "04.000000000Z \x1b[2J[default0]:b2\n");
    expect_out(p, RUN("logs", "j", "--tail=1", "-r", "0"), 0, "[node-0] a2\n");
    put_job(p, 2, "{\"phase\":\"Failed\"}");
    expect_out(p, RUN("logs", "j", "-r0"), 1, "[node-0] a1\n[node-0] a2\n");
    expect_out(p, RUN("logs", "j", "-r0", "--no-follow"), 0, "[node-0] a1\n[node-0] a2\n");
    assert_int_equal(fake_log_count(p->server, NULL, "since"), 0);
    assert_int_equal(fake_log_count(p->server, NULL, "mesh-proxy"), 0);
    expect_out(p, RUN("logs", "j", "--since=1h30m", "-r0"), 1, "[node-0] a1\n[node-0] a2\n");
    assert_int_equal(fake_log_count(p->server, NULL, "sinceSeconds=5400"), 1);
}

/* Waits for the pod, follows it over a lost connection, ends with the job: each line once. */
static void test_follow(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    ptj_await(p, "err", "waiting for pods: PodsStarting");
    put_pod(p, 0, 0, "Pending", WAITS);
    ptj_await(p, "err", "waiting for pod j-node-0: it is starting");
    prints(p, 0, T "01.100000000Z one\n" T "01.100000000Z twin\n");
    put_pod(p, 0, 0, "Running", RUNS);
    ptj_await(p, "out", "twin");
    await_followed(p, 1);
    prints(p, 0, T "01.200000000Z two\n");
    ptj_await(p, "out", "two");
    fake_cut_pod_logs(p->server);
    prints(p, 0, T "01.200000000Z three\n");
    ptj_await(p, "out", "three");
    await_followed(p, 1);
    prints(p, 0, T "02.000000000Z last\n");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] one\n[node-0] twin\n[node-0] two\n[node-0] three\n[node-0] last\n",
                  "waiting for pod j-node-0");
}

/* None of the lines that exist: one request begins at the end of the log and follows it, so that no line comes between two. */
static void test_tail_of_none(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Running\"}");
    put_pod(p, 0, 0, "Running", RUNS);
    prints(p, 0, T "01.000000000Z old\n");
    const pid_t pid = ptj_start(p, RUN("logs", "j", "--tail=0"));
    await_followed(p, 1);
    prints(p, 0, T "02.000000000Z new\n");
    ptj_await(p, "out", "new");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] new\n", NULL);
    assert_int_equal(fake_log_count(p->server, NULL, "tailLines=0"), 1);
    expect_out(p, RUN("logs", "j", "--tail=0"), 0, "");
}

#define PULLS                                                                                                \
    "{\"running\":null,\"terminated\":null,\"waiting\":{\"reason\":\"ImagePullBackOff\",\"message\":\"no "   \
    "such "                                                                                                  \
    "image\"}}"

/* An empty answer has a reason, which is on stderr, and each pod that waits has its own. */
static void test_nothing_to_read(void **state)
{
    struct ptj *p = *state;

    put_job(p, 2, "{\"phase\":\"Pending\",\"reason\":\"ClaimNotFound data\"}");
    ptj_expect(p, RUN("logs", "j", "--no-follow"), 0, NULL, "no log of the pods yet: ClaimNotFound data\n");
    put_pod(p, 0, 0, "Pending", PULLS);
    put_pod(p, 1, 0, "Pending", WAITS);
    ptj_expect(p, RUN("logs", "j", "--no-follow"), 0, NULL,
               "no log of pod j-node-0 yet: ImagePullBackOff: no such image\n");
    ptj_expect(p, RUN("logs", "j", "--no-follow", "--rank=1"), 0, NULL,
               "no log of pod j-node-1 yet: it is starting\n");
    prints(p, 0, T "01.000000000Z a1\n");
    put_pod(p, 0, 0, "Running", RUNS);
    ptj_expect(p, RUN("logs", "j", "--no-follow"), 0, "[node-0] a1\n",
               "no log of pod j-node-1 yet: it is starting\n");
    assert_true(fake_remove(p->server, PTJ_PODS "/j-node-0"));
    assert_true(fake_remove(p->server, PTJ_PODS "/j-node-1"));
    put_job(p, 2, "{\"phase\":\"Succeeded\"}");
    ptj_expect(p, RUN("logs", "j"), 0, NULL, "no pod of j is left, so there is no log\n");
    put_job(p, 2, "{\"phase\":\"Failed\"}");
    ptj_expect(p, RUN("logs", "j", "--no-follow"), 0, NULL,
               "no pod of j is left, so there is no log: --previous prints");
}

/* A job that `submit` has just resumed has the phase Paused until the operator acts: only a job that stays paused is reported so. */
static void test_resumed(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Paused\"}");
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    for (int i = 0; !fake_log_count(p->server, "WATCH", "/pods") ||
                    !fake_log_count(p->server, "WATCH", "/pytorchtrainingjobs");
         i++) {
        assert_true(i < PATIENCE);
        nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    put_job(p, 1, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    ptj_await(p, "err", "waiting for pods: PodsStarting");
    prints(p, 0, T "01.000000000Z one\n");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    struct ptj_result r = ptj_wait(p, pid);
    assert_string_equal(r.out, "[node-0] one\n");
    assert_null(strstr(r.err, "Paused"));
    ptj_forget(&r);
    ptj_put_job(p, "stays", "{\"suspend\":true}", "{\"phase\":\"Paused\"}");
    ptj_expect(p, RUN("logs", "stays", "--no-follow"), 0, NULL, "no log of the pods yet: Paused");
}

/* The end of the job is known before anything of its pod, which the first list did not have. */
static void test_end_comes_first(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Pending\",\"reason\":\"PodsStarting\"}");
    fake_plan_fault(p->server,
                    &(struct fake_fault_plan){
                        .request = 1, .method = "WATCH", .path_part = "/pods", .fault = FAKE_HANG_BEFORE});
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    ptj_await(p, "err", "waiting for pods: PodsStarting");
    await_fault(p);
    prints(p, 0, T "01.000000000Z all it had to say\n");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] all it had to say\n", "waiting for pods: PodsStarting");
    fake_plan_fault(p->server, NULL);
}

/* Follow the log of the first of so many pods; it has come, and continues. */
static pid_t follow_first_attempt(struct ptj *p, int replicas)
{
    put_job(p, replicas, "{\"phase\":\"Running\",\"attempt\":0}");
    prints(p, 0, T "01.000000000Z first attempt\n");
    put_pod(p, 0, 0, "Running", RUNS);
    const pid_t pid = ptj_start(p, RUN("logs", "j"));
    ptj_await(p, "out", "first attempt");
    await_followed(p, 1);
    return pid;
}

/* A pod that fails is deleted, and another one of its name continues. */
static void test_restart(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = follow_first_attempt(p, 1);
    put_job(p, 1,
            "{\"phase\":\"Pending\",\"reason\":\"Restarting\",\"attempt\":1,\"conditions\":[{\"type\":"
            "\"ReplicaFailure\",\"status\":\"True\",\"reason\":\"Killed\",\"message\":\"rank 0: exit code "
            "137\"}]}");
    ptj_await(p, "err", "attempt 1 of j begins: rank 0: exit code 137");
    fake_pod_log_ends(p->server, pod_path(0));
    assert_true(fake_remove(p->server, pod_path(0)));
    await_followed(p, 0);
    fake_pod_log_begins_anew(p->server, pod_path(0));
    prints(p, 0, T "01.000000000Z second attempt\n");
    put_pod(p, 0, 1, "Running", RUNS);
    ptj_await(p, "out", "second attempt");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Failed\"}");
    expect_result(p, pid, 1, "[node-0] first attempt\n[node-0] second attempt\n", "attempt 1 of j begins");
}

/* Under the name of a pod that is gone its successor answers: the rest of the first one's log is not read from it. */
static void test_successor(void **state)
{
    struct ptj *p = *state;

    const pid_t pid = follow_first_attempt(p, 2);
    assert_true(fake_remove(p->server, pod_path(0)));
    prints(p, 1, T "02.000000000Z the removal was seen\n");
    put_pod(p, 1, 0, "Running", RUNS);
    ptj_await(p, "out", "the removal was seen");
    await_followed(p, 2);
    fake_pod_log_ends(p->server, pod_path(0));
    await_followed(p, 1);
    fake_pod_log_begins_anew(p->server, pod_path(0));
    prints(p, 0, T "03.000000000Z second attempt\n");
    put_pod(p, 0, 1, "Running", RUNS);
    ptj_await(p, "out", "second attempt");
    prints(p, 0, T "04.000000000Z last\n");
    ptj_await(p, "out", "last");
    ends(p, 0);
    ends(p, 1);
    put_job(p, 2, "{\"phase\":\"Succeeded\"}");
    expect_result(
        p, pid, 0,
        "[node-0] first attempt\n[node-1] the removal was seen\n[node-0] second attempt\n[node-0] last\n",
        "");
}

/* A pod that has ended stays in the lists; its log is not read again when another pod began after it. */
static void test_each_pod_once(void **state)
{
    struct ptj *p = *state;

    put_job(p, 2, "{\"phase\":\"Running\"}");
    prints(p, 0, T "01.000000000Z first pod\n");
    ends(p, 0);
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    ptj_await(p, "out", "first pod");
    prints(p, 1, T "02.000000000Z second pod\n");
    put_pod(p, 1, 0, "Running", RUNS);
    ptj_await(p, "out", "second pod");
    put_pod(p, 0, 0, "Succeeded", "{\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\"}}");
    ends(p, 1);
    put_job(p, 2, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] first pod\n[node-1] second pod\n", "");
}

/* The server dies in the middle of an answer, and does not answer for a while. */
static void test_lost_server(void **state)
{
    struct ptj *p = *state;

    put_ended(p, "Succeeded");
    fake_plan_fault(p->server,
                    &(struct fake_fault_plan){.request = 1, .path_part = "/log", .fault = FAKE_RESET_BODY});
    expect_out(p, RUN("logs", "j"), 0,
               "[node-0] a1\n[node-1] b1\n[node-0] a2\n[node-1] \x1b[2J[default0]:b2\n");
    fake_plan_fault(p->server,
                    &(struct fake_fault_plan){.path_part = "node-1/log", .fault = FAKE_DROP_BEFORE});
    expect_result(p, ptj_start(p, RUN("logs", "j", "--no-follow")), 1, "[node-0] a1\n[node-0] a2\n",
                  "pod j-node-1: ");
    fake_plan_fault(p->server, NULL);
}

/* The server does not answer, and when it does the job is gone: no event of the lost watch reports that. */
static void test_deleted_unseen(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Running\"}");
    prints(p, 0, T "01.000000000Z one\n");
    ends(p, 0);
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    ptj_await(p, "out", "one");
    fake_settle(p->server);
    fake_plan_fault(
        p->server, &(struct fake_fault_plan){.path_part = "/pytorchtrainingjobs", .fault = FAKE_DROP_BEFORE});
    fake_close_watches(p->server);
    await_fault(p);
    assert_true(fake_remove(p->server, PTJ_JOBS "/j"));
    fake_compact(p->server);
    fake_plan_fault(p->server, NULL);
    ptj_await(p, "err", "the job j was deleted");
    expect_result(p, pid, 1, "[node-0] one\n", "the job j was deleted");
}

static void test_refused(void **state)
{
    struct ptj *p = *state;

    put_ended(p, "Succeeded");
    fake_plan_fault(p->server, &(struct fake_fault_plan){.path_part = "/log", PTJ_FORBIDDEN});
    ptj_expect(p, RUN("logs", "j"), 1, NULL, "you lack the permission to get pods/log in namespace team");
    fake_plan_fault(p->server, &(struct fake_fault_plan){.path_part = "/pods", PTJ_FORBIDDEN});
    ptj_expect(p, RUN("logs", "j"), 1, NULL, "you lack the permission to watch pods in namespace team");
    fake_plan_fault(p->server, NULL);
    ptj_expect(p, RUN("logs", "none"), 1, NULL, "there is no training job \"none\"");
    ptj_expect(p, RUN("logs", "j", "--rank=2"), 1, NULL, "--rank: j has no such rank: it has 2 pods");
    ptj_expect(p, RUN("logs", "j", "--since=soon"), 2, NULL, "--since: expected a time such as 90s");
    ptj_expect(p, RUN("logs", "j", "-f", "--no-follow"), 2, NULL, "exclude each other");
    ptj_expect(p, RUN("logs", "j", "--tail=abc"), 2, NULL, "--tail: expected an integer");
    ptj_expect(p, RUN("logs", "j", "--rank=x"), 2, NULL, "--rank: expected ranks such as");
    ptj_expect(p, RUN("logs", "j", "--pod=node-2"), 1, NULL, "--pod: j has no such pod: it has 2 pods");
    put_job(p, 65, "{}");
    ptj_expect(p, RUN("logs", "j"), 1, NULL, "j has 65 pods, and the logs of 64 can be read at once");
}

static void put_place(struct ptj *p, int index)
{
    char spec[160];

    snprintf(
        spec, sizeof(spec),
        "{\"containers\":[{\"name\":\"main\",\"env\":[{\"name\":\"PTJ_NODE_ORDER\",\"value\":\"%d\"}]}]}",
        index);
    ptj_put_pod(p, index, 0, spec,
                "{\"phase\":\"Succeeded\",\"containerStatuses\":[{\"name\":\"main\",\"state\":" ENDED "}]}");
}

/* Of nodes that meet in a rendezvous. */
static void test_ranks_by_rendezvous(void **state)
{
#define MEETS(launcher)                                                                                      \
    "{\"torchrunConfig\":{\"enabled\":true,\"launcher\":\"" launcher                                         \
    "\",\"procPerNode\":2},\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":2,\"template\":{\"spec\":{"     \
    "\"containers\":[{\"name\":\"main\",\"image\":\"i\"}]}}}]}"
    struct ptj *p = *state;

    put_ended(p, "Succeeded");
    ptj_put_job(p, "j", MEETS("Image"), "{\"phase\":\"Succeeded\"}");
    ptj_expect(
        p, RUN("logs", "j", "--rank=2"), 1, NULL,
        "--rank: which pod has which ranks is not known here: the torchrun of the image gives them in its "
        "rendezvous; use --pod");
    expect_out(p, RUN("logs", "j", "--pod=node-0"), 0, "[node-0] a1\n[node-0] a2\n");
    expect_out(p, RUN("logs", "j", "--pod", "j-node-0", "--tail=1"), 0, "[node-0] a2\n");
    ptj_put_job(p, "j", MEETS("Torchkeeper"), "{\"phase\":\"Succeeded\"}");
    put_place(p, 1);
    ptj_expect(p, RUN("logs", "j", "--rank=2"), 1, "", "a pod is from before the operator's upgrade");
    put_place(p, 0);
    expect_out(p, RUN("logs", "j", "--rank=0-1", "--tail=1"), 0, "[node-0] a2\n");
    expect_out(p, RUN("logs", "j", "--rank=2", "--tail=1"), 0, "[node-1] \x1b[2J[default0]:b2\n");
}

static void test_many(void **state)
{
    struct ptj *p = *state;
    char want[MANY * 32] = "", line[64];
    size_t len = 0;

    put_job(p, MANY, "{\"phase\":\"Running\"}");
    for (int i = 0; i < MANY; i++) {
        snprintf(line, sizeof(line), T "%02d.000000000Z %d\n", (i * 37) % MANY % 60, i);
        prints(p, i, line);
        put_pod(p, i, 0, "Running", RUNS);
    }
    for (int at = 0; at < 60; at++)
        for (int i = 0; i < MANY; i++)
            if ((i * 37) % MANY % 60 == at)
                len += (size_t)snprintf(want + len, sizeof(want) - len, "[node-%d] %d\n", i, i);
    pid_t pid = ptj_start(p, RUN("logs", "j"));
    await_followed(p, MANY);
    for (int i = 0; i < MANY; i++)
        ends(p, i);
    put_job(p, MANY, "{\"phase\":\"Succeeded\"}");
    struct ptj_result r = ptj_wait(p, pid);
    assert_int_equal(r.status, 0);
    assert_int_equal(strlen(r.out), len);
    /* Of equal times the order is that in which the pods were met. */
    for (char *got = r.out, *end; *got; got = end + 1) {
        end = strchr(got, '\n');
        *end = '\0';
        assert_non_null(strstr(want, got));
    }
    ptj_forget(&r);
}

#define FAILURE(attempt, message)                                                                            \
    "{\"pod\":\"j-node-0\",\"uid\":\"u\",\"exitCode\":1,\"reason\":\"PermanentExitCode\",\"message\":"       \
    "\"" message "\",\"time\":\"2026-01-01T00:00:00Z\",\"attempt\":" attempt "}"

static void test_previous(void **state)
{
    struct ptj *p = *state;

    put_job(p, 1,
            "{\"phase\":\"Running\",\"attempt\":1,\"failures\":[{\"pod\":\"j-node-0\",\"uid\":\"u\",\"node\":"
            "\"n1\","
            "\"rank\":3,\"exitCode\":1,\"reason\":\"PermanentExitCode\",\"message\":\"Traceback\\nValueError:"
            " \\u001b[2Jbad\","
            "\"time\":\"2026-01-01T00:00:00Z\",\"attempt\":0}]}");
    expect_out(
        p, RUN("logs", "j", "--previous"), 0,
        "attempt 0, 2026-01-01T00:00:00Z, pod j-node-0 on node n1, rank 3, exit code 1: PermanentExitCode\n"
        "  Traceback\n  ValueError: bad\n");
    /* A block becomes the line that the older failures have, below what the programs printed. */
#define KILLED "rank 1: Signal 9 (SIGKILL) received by PID 42"
#define BLOCK                                                                                                \
    "=====\\n/app/train.py FAILED\\n-----\\nFailures:\\n  <NO_OTHER_FAILURES>\\n-----\\n"                    \
    "Root Cause (first observed failure):\\n[0]:\\n  rank      : 1 (local_rank: 1)\\n"                       \
    "  exitcode  : -9 (pid: 42)  (SIGKILL)\\n  error_file: <N/A>\\n"                                         \
    "  traceback : Signal 9 (SIGKILL) received by PID 42\\n=====\\n"
    put_job(p, 1,
            "{\"phase\":\"Running\",\"attempt\":2,\"failures\":[" FAILURE("0", KILLED) "," FAILURE(
                "1", KILLED) "],"
                             "\"lastFailure\":" FAILURE("1", "step 1\\nstep 2\\n" BLOCK) "}");
    expect_out(p, RUN("logs", "j", "--previous"), 0,
               "attempt 0, 2026-01-01T00:00:00Z, pod j-node-0, exit code 1: PermanentExitCode\n  " KILLED "\n"
               "attempt 1, 2026-01-01T00:00:00Z, pod j-node-0, exit code 1: PermanentExitCode\n"
               "  step 1\n  step 2\n  " KILLED "\n");
    put_job(p, 1, "{\"failures\":null}");
    ptj_expect(p, RUN("logs", "j", "-p"), 0, NULL, "no attempt of j has failed");
}

/* Only lines that fit come out: in their order, with their prefix, of a log that is followed and of earlier attempts. */
static void test_grep(void **state)
{
    struct ptj *p = *state;

    put_ended(p, "Succeeded");
    expect_out(p, RUN("logs", "j", "--grep=[ab]2$"), 0, "[node-0] a2\n[node-1] \x1b[2J[default0]:b2\n");
    expect_out(p, RUN("logs", "j", "--grep", "^a|b1", "-r0", "--timestamps"), 0,
               "[node-0] " T "01.000000000Z a1\n[node-0] " T "03.000000000Z a2\n");
    expect_out(p, RUN("logs", "j", "--grep=node-|^2026|00:00"), 0, ""); /* nor the prefix, nor the time */
    put_job(p, 2, "{\"phase\":\"Failed\"}");
    expect_out(p, RUN("logs", "j", "--grep=none"), 1, "");
    expect_out(p, RUN("logs", "j", "--grep=none", "--no-follow"), 0, "");
    ptj_expect(p, RUN("logs", "j", "--grep=a("), 2, NULL, "--grep: Unmatched ( or \\(: \"a(\"\n");
    ptj_expect(p, RUN("logs", "j", "--grep=[a"), 2, NULL, "--grep: Unmatched [");
    put_job(p, 1,
            "{\"phase\":\"Running\",\"failures\":[" FAILURE("0", "one\\nValueError: a\\nb") "," FAILURE(
                "1", "KeyError: b") "]}");
    expect_out(p, RUN("logs", "j", "--previous", "--grep=Value|two"), 0,
               "attempt 0, 2026-01-01T00:00:00Z, pod j-node-0, exit code 1: PermanentExitCode\n"
               "  ValueError: a\n");
    expect_out(p, RUN("logs", "j", "--previous", "--grep=none"), 0, "");
    put_pod(p, 0, 0, "Running", RUNS);
    fake_pod_log_begins_anew(p->server, pod_path(0));
    pid_t pid = ptj_start(p, RUN("logs", "j", "--grep", "loss"));
    await_followed(p, 1);
    prints(p, 0, T "06.000000000Z epoch 1\n" T "07.000000000Z loss 1\n");
    ptj_await(p, "out", "loss 1");
    prints(p, 0, T "08.000000000Z epoch 2\n" T "09.000000000Z loss 2\n");
    ends(p, 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] loss 1\n[node-0] loss 2\n", NULL);
}

/* The log of another container is read, and followed to that container's end. */
static void test_container(void **state)
{
#define CONTAINERS                                                                                           \
    "{\"initContainers\":[{\"name\":\"fetch\"}],\"containers\":[{\"name\":\"main\"},{\"name\":\"side\"}]}"
#define STATES(phase, fetch, side)                                                                           \
    "{\"phase\":\"" phase "\",\"initContainerStatuses\":[{\"name\":\"fetch\",\"state\":" fetch               \
    "}],\"containerStatuses\":[{\"name\":\"main\",\"state\":" WAITS "},{\"name\":\"side\",\"state\":" side   \
    "}]}"
    struct ptj *p = *state;

    put_job(p, 1, "{\"phase\":\"Pending\"}");
    ptj_put_pod(p, 0, 0, CONTAINERS, STATES("Pending", RUNS, WAITS));
    prints(p, 0, T "01.000000000Z line\n");
    expect_out(p, RUN("logs", "j", "-c", "fetch", "--no-follow"), 0, "[node-0] line\n");
    assert_int_equal(fake_log_count(p->server, NULL, "log?container=fetch&"), 1);
    ptj_expect(p, RUN("logs", "j", "--container=side", "--no-follow"), 0, NULL,
               "no log of pod j-node-0 yet: it is starting\n");
    pid_t pid = ptj_start(p, RUN("logs", "j", "-cside"));
    ptj_await(p, "err", "waiting for pod j-node-0");
    ptj_put_pod(p, 0, 0, CONTAINERS, STATES("Running", ENDED, RUNS));
    ptj_await(p, "out", "line");
    await_followed(p, 1);
    fake_pod_log_ends(p->server, pod_path(0));
    ptj_put_pod(p, 0, 0, CONTAINERS, STATES("Succeeded", ENDED, ENDED));
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    expect_result(p, pid, 0, "[node-0] line\n", "waiting for pod j-node-0");
    assert_int_equal(fake_log_count(p->server, NULL, "container=main"), 0);
    ptj_expect(p, RUN("logs", "j", "-c", "none"), 1, NULL,
               "--container: pod j-node-0 has no container \"none\", only main, side, fetch\n");
    ptj_expect(p, RUN("logs", "j", "-c", "a&b"), 2, NULL, "--container: expected the name of a container");
    ptj_expect(p, RUN("logs", "j", "-c", "side", "-p"), 2, NULL, "exclude each other");
}

/* Pods without the container are passed over; `logs` fails where all lack it, with that error alone. */
static void test_container_of_some(void **state)
{
#define SIDE "{\"containers\":[{\"name\":\"main\"},{\"name\":\"side\"}]}"
#define NO_SIDE "{\"containers\":[{\"name\":\"main\"}]}"
#define BOTH_RUN                                                                                             \
    "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"main\",\"state\":" RUNS                       \
    "},{\"name\":\"side\",\"state\":" RUNS "}]}"
    struct ptj *p = *state;

    put_job(p, 2, "{\"phase\":\"Running\"}");
    ptj_put_pod(p, 0, 0, NO_SIDE, BOTH_RUN);
    for (int follow = 0; follow < 2; follow++) {
        struct ptj_result r = ptj_run(p, RUN("logs", "j", "-c", "side", follow ? "-f" : "--no-follow"));
        assert_string_equal(r.err, "kubectl ptj logs: --container: pod j-node-0 has no container \"side\", "
                                   "only main\n");
        assert_int_equal(r.status, 1);
        ptj_forget(&r);
    }
    ptj_put_pod(p, 1, 0, SIDE, BOTH_RUN);
    prints(p, 1, T "01.000000000Z line\n");
    expect_out(p, RUN("logs", "j", "-c", "side", "--no-follow"), 0, "[node-1] line\n");
    ptj_expect(p, RUN("logs", "j", "-c", "side", "--no-follow", "--rank=0"), 1, NULL, "pod j-node-0 has no");
    assert_true(fake_remove(p->server, pod_path(0)));
    pid_t pid = ptj_start(p, RUN("logs", "j", "-c", "side"));
    ptj_await(p, "out", "line");
    ptj_put_pod(p, 0, 0, NO_SIDE, BOTH_RUN);
    prints(p, 1, T "02.000000000Z more\n");
    ptj_await(p, "out", "more");
    fake_pod_log_ends(p->server, pod_path(1));
    put_job(p, 2, "{\"phase\":\"Succeeded\"}");
    assert_true(fake_remove(p->server, pod_path(1)));
    expect_result(p, pid, 0, "[node-1] line\n[node-1] more\n", NULL);
}

static void expect_file(struct ptj *p, const char *file, const char *want)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);
    char path[128];
    struct err err;

    snprintf(path, sizeof(path), "%s/%s", p->dir, file);
    assert_int_equal(fs_read(path, &text, &err), 0);
    assert_string_equal(buf_str(&text), want);
}

/* `kubectl ptj logs j | head -n 1` */
static void test_broken_pipe(void **state)
{
    struct ptj *p = *state;
    cleanup_buf struct buf lines = BUF_INIT(4 << 20);
    char command[512];
    struct err err;

    for (int i = 0; i < 20000; i++)
        assert_int_equal(buf_puts(&lines, T "01.000000000Z some line of the log of a pod\n", &err), 0);
    put_job(p, 1, "{\"phase\":\"Succeeded\"}");
    prints(p, 0, buf_str(&lines));
    ends(p, 0);
    snprintf(command, sizeof(command),
             "{ KUBECTL=%s/kubectl '%s' logs j 2>%s/err; echo $? >%s/out; } | head -n 1 >/dev/null", p->dir,
             ptj_program, p->dir, p->dir);
    assert_int_equal(system(command), 0);
    ptj_await(p, "out", "\n"); /* that its status is there */
    expect_file(p, "err", "");
    expect_file(p, "out", "141\n");
}

/* A terminal of which nothing is known is one all the same: no escape sequence of others reaches it. */
static void test_dumb_terminal(void **state)
{
    struct ptj *p = *state;
    struct onpty t;

    put_ended(p, "Succeeded");
    onpty_shell(&t, p, 80, 24);
    onpty_keys(&t, "TERM=dumb $PTJ logs j; echo status $?\n");
    onpty_until(&t, "[node-1] [default0]:b2");
    onpty_until(&t, "status 0");
    assert_int_equal(t.vt.cleared, 0);
    onpty_end(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ended_job, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_nothing_to_read, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_follow, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_tail_of_none, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_resumed, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_end_comes_first, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_restart, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_successor, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_each_pod_once, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_lost_server, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_deleted_unseen, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_refused, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_ranks_by_rendezvous, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_many, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_previous, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_grep, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_container, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_container_of_some, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_broken_pipe, ptj_setup, ptj_teardown),
        cmocka_unit_test_setup_teardown(test_dumb_terminal, ptj_setup, ptj_teardown),
    };

    if (argc < 2)
        return 2;
    ptj_program = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
