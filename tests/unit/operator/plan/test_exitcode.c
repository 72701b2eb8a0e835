/* test_exitcode.c - the order of evidence: every combination of what a pod can show at its end. */
#include "common/cleanup.h"
#include "operator/plan/exitcode.h"
#include "test.h"

#include <string.h>

#define KILLED_CAUSE                                                                                         \
    "Root Cause (first observed failure):\n[0]:\n  rank      : 1\n  exitcode  : -9 (pid: 7)\n"
#define STOPPED "api.SignalException: Process 7 got signal: 15\n"

/* What is left of the training container, and what that means where nothing else is known. */
struct ending {
    const char *name;
    struct pod_container training;
    enum verdict_class class;
    const char *reason;
    int32_t exit_code, signal;
};

#define ENDED(code, why, text)                                                                               \
    {                                                                                                        \
        "pytorch", why, text, CONTAINER_TERMINATED, code, 0, 5000                                            \
    }

static const struct ending ENDINGS[] = {
    {"none", {"pytorch", "", "", CONTAINER_NONE, 0, 0, 0}, VERDICT_ADMISSION, "NoContainerStatus", -1, 0},
    {"0", ENDED(0, "Completed", ""), VERDICT_SUCCESS, NULL, 0, 0},
    {"OOM 137", ENDED(137, "OOMKilled", ""), VERDICT_OOM, "OOMKilled", 137, 9},
    {"OOM 1, whatever torchrun says", ENDED(1, "OOMKilled", KILLED_CAUSE), VERDICT_OOM, "OOMKilled", 1, 0},
    {"cause", ENDED(1, "Error", KILLED_CAUSE), VERDICT_KILL, "Killed", 137, 9},
    {"signal", ENDED(1, "Error", STOPPED), VERDICT_KILL, "Terminated", 143, 15},
    {"a cause, but torchrun did not end with 1", ENDED(2, "Error", KILLED_CAUSE), VERDICT_PERMANENT,
     "PermanentExitCode", 2, 0},
    {"1", ENDED(1, "Error", "Traceback"), VERDICT_PERMANENT, "PermanentExitCode", 1, 0},
    {"77, listed", ENDED(77, "Error", ""), VERDICT_RETRYABLE, "RetryableExitCode", 77, 0},
    {"128, by Docker", ENDED(128, "ContainerCannotRun", ""), VERDICT_PERMANENT, "ContainerCannotRun", 128, 0},
    {"126", ENDED(126, "ContainerCannotRun", ""), VERDICT_PERMANENT, "ContainerCannotRun", 126, 0},
    {"127", ENDED(127, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", 127, 0},
    {"128", ENDED(128, "StartError", ""), VERDICT_PERMANENT, "StartError", 128, 0},
    {"130", ENDED(130, "Error", ""), VERDICT_KILL, "Interrupted", 130, 2},
    {"134", ENDED(134, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", 134, 6},
    {"137", ENDED(137, "Error", ""), VERDICT_KILL, "Killed", 137, 9},
    {"137, the kubelet lost it", ENDED(137, "ContainerStatusUnknown", ""), VERDICT_DISRUPTION,
     "ContainerStatusUnknown", 137, 0},
    {"255, the runtime lost it", ENDED(255, "Unknown", ""), VERDICT_DISRUPTION, "ContainerStatusUnknown", 255,
     0},
    {"255, lost, whatever torchrun said before", ENDED(255, "Unknown", KILLED_CAUSE), VERDICT_DISRUPTION,
     "ContainerStatusUnknown", 255, 0},
    {"1, of a reason that says nothing", ENDED(1, "Unknown", ""), VERDICT_PERMANENT, "Unknown", 1, 0},
    {"77, listed, of a program", ENDED(77, "Unknown", ""), VERDICT_RETRYABLE, "RetryableExitCode", 77, 0},
    {"138", ENDED(138, "Error", ""), VERDICT_RETRYABLE, "RetryableExitCode", 138, 0},
    {"138, it hung",
     ENDED(138, "Error",
           "{\"rank\":1,\"exitCode\":138,\"host\":\"h\",\"message\":\"m\",\"noProgress\":true}\n"),
     VERDICT_RETRYABLE, "NoProgress", 138, 0},
    {"138, it says so",
     ENDED(138, "Error",
           "{\"rank\":1,\"exitCode\":138,\"host\":\"h\",\"message\":\"no progress for 5 s: m\"}\n"),
     VERDICT_RETRYABLE, "RetryableExitCode", 138, 0},
    {"137 of a launcher that said that it hung",
     ENDED(137, "Error",
           "{\"rank\":1,\"exitCode\":138,\"host\":\"h\",\"message\":\"m\",\"noProgress\":true}\n"),
     VERDICT_KILL, "Killed", 137, 9},
    {"139", ENDED(139, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", 139, 11},
    {"140", ENDED(140, "Error", ""), VERDICT_PEER_LOST, "PeerLost", 140, 0},
    {"143", ENDED(143, "Error", ""), VERDICT_KILL, "Terminated", 143, 15},
    {"201", ENDED(201, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", 201, 0},
    {"255", ENDED(255, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", 255, 0},
    {"-1", ENDED(-1, "Error", ""), VERDICT_PERMANENT, "PermanentExitCode", -1, 0},
};

/* status.reason of the pod. */
static const struct {
    const char *word;
    bool refused, own_limit;
} REASONS[] = {
    {"", false, false},
    {"UnexpectedAdmissionError", true, false},
    {"OutOfcpu", true, false},
    {"OutOfmemory", true, false},
    {"OutOfnvidia.com/gpu", true, false},
    {"NodeAffinity", true, false},
    {"Terminated", true, false},
    {"NodeShutdown", true, false},
    {"Shutdown", true, false},
    {"NodeLost", false, false},
    {"Evicted", false, true},
    {"DeadlineExceeded", false, true},
};

static const char *const DISRUPTIONS[] = {
    "",
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "TerminationByKubelet",
};

struct want {
    enum verdict_class class;
    const char *reason;
    int32_t exit_code;
};

/* The table of the contract, read from above. */
static struct want first_match(const struct ending *e, size_t r, const char *disruption, bool deleted)
{
    bool ended = e->training.state == CONTAINER_TERMINATED;
    int32_t code = ended ? e->training.exit_code : -1;

    if (e->class == VERDICT_SUCCESS)
        return (struct want){VERDICT_SUCCESS, NULL, 0};
    if (disruption[0])
        return (struct want){VERDICT_DISRUPTION, disruption, code};
    if (deleted)
        return (struct want){VERDICT_DISRUPTION, "PodDeleted", code};
    if (REASONS[r].refused)
        return (struct want){VERDICT_ADMISSION, REASONS[r].word, -1};
    if (e->class == VERDICT_OOM)
        return (struct want){VERDICT_OOM, "OOMKilled", code};
    if (REASONS[r].own_limit)
        return (struct want){VERDICT_PERMANENT, REASONS[r].word, code};
    if (!ended && REASONS[r].word[0])
        return (struct want){e->class, REASONS[r].word, -1};
    return (struct want){e->class, e->reason, e->exit_code};
}

static void check(const struct ending *e, size_t r, const char *disruption, bool deleted)
{
    const struct run_policy policy = {.retryable_exit_codes = {77}, .n_retryable_exit_codes = 1};
    struct want want = first_match(e, r, disruption, deleted);
    const struct pod pod = {
        .reason = REASONS[r].word,
        .message = "",
        .disruption = disruption,
        .disruption_msg = "",
        .phase = e->class == VERDICT_SUCCESS ? POD_SUCCEEDED : POD_FAILED,
        .deletion_ms = deleted ? 9000 : 0,
        .training = e->training,
        .init = {"", "", "", CONTAINER_NONE, 0, 0, 0},
    };
    struct verdict got = exitcode_verdict(&pod, &policy);

    if (got.class != want.class || got.exit_code != want.exit_code ||
        (want.reason && strcmp(got.reason, want.reason) != 0))
        fail_msg("%s, reason \"%s\", disruption \"%s\"%s: class %d, code %d, reason %s", e->name,
                 REASONS[r].word, disruption, deleted ? ", deleted" : "", (int)got.class, (int)got.exit_code,
                 got.reason ? got.reason : "none");
    if (got.class == VERDICT_DISRUPTION)
        assert_true(exitcode_is_disruption(got.reason)); /* else the restart is delayed */
    if (want.class == e->class && want.exit_code == e->exit_code)
        assert_int_equal(got.signal, e->signal);
}

static void test_first_match_wins(void **state)
{
    (void)state;
    for (size_t e = 0; e < ARRAY_LEN(ENDINGS); e++)
        for (size_t r = 0; r < ARRAY_LEN(REASONS); r++)
            for (size_t d = 0; d < ARRAY_LEN(DISRUPTIONS); d++)
                for (int deleted = 0; deleted < 2; deleted++)
                    check(&ENDINGS[e], r, DISRUPTIONS[d], deleted);
}

/* A taint announces the eviction: until the pod has ended or goes, nothing happened. */
static void test_a_running_pod_says_nothing(void **state)
{
    const struct run_policy policy = {0};
    const struct pod pod = {.reason = "",
                            .message = "",
                            .disruption = "DeletionByTaintManager",
                            .disruption_msg = "",
                            .phase = POD_RUNNING,
                            .training = {"pytorch", "", "", CONTAINER_RUNNING, 0, 0, 0}};

    (void)state;
    assert_int_equal(exitcode_verdict(&pod, &policy).class, VERDICT_NONE);
}

static void test_init_container(void **state)
{
    const struct run_policy policy = {0};
    struct pod pod = {.reason = "",
                      .message = "",
                      .disruption = "",
                      .disruption_msg = "",
                      .phase = POD_FAILED,
                      .training = {"pytorch", "PodInitializing", "", CONTAINER_WAITING, 0, 0, 0},
                      .init = {"prepare", "Error", "no data", CONTAINER_TERMINATED, 3, 0, 5000}};
    struct verdict v = exitcode_verdict(&pod, &policy);

    (void)state;
    assert_int_equal(v.class, VERDICT_PERMANENT);
    assert_int_equal(v.exit_code, 3);
    pod.init = (struct pod_container)ENDED(255, "Unknown", "");
    v = exitcode_verdict(&pod, &policy);
    assert_int_equal(v.class, VERDICT_DISRUPTION);
    assert_string_equal(v.reason, "ContainerStatusUnknown");
    assert_non_null(v.init);
    assert_true(v.message[0]);
    pod.training = (struct pod_container)ENDED(138, "Error", ""); /* it ran: its own end decides */
    assert_int_equal(exitcode_verdict(&pod, &policy).class, VERDICT_RETRYABLE);
    pod.training.state = CONTAINER_RUNNING;
    pod.phase = POD_RUNNING;
    assert_int_equal(exitcode_verdict(&pod, &policy).class, VERDICT_NONE);
}

/* With lastWords: false. The exit code is the program's, unless the kubelet reports that it lost the container. */
static void test_lost_without_last_words(void **state)
{
    const struct run_policy silent = {.no_last_words = true};
    struct pod pod = {.reason = "",
                      .message = "",
                      .disruption = "",
                      .disruption_msg = "",
                      .phase = POD_FAILED,
                      .training = ENDED(255, "Unknown", "token of the program")};

    (void)state;
    assert_null(strstr(exitcode_verdict(&pod, &silent).message, "token"));
    assert_non_null(strstr(exitcode_verdict(&pod, &silent).message, "lost the container"));
    assert_string_equal(exitcode_verdict(&pod, &(struct run_policy){0}).message, "token of the program");
    pod.training = (struct pod_container)ENDED(137, "ContainerStatusUnknown", "could not be located");
    assert_string_equal(exitcode_verdict(&pod, &silent).message, "could not be located");
}

/* An attempt is judged by its strongest evidence. */
static void test_strength(void **state)
{
    static const enum verdict_class WEAKEST_FIRST[] = {
        VERDICT_PEER_LOST, VERDICT_PERMANENT, VERDICT_RETRYABLE, VERDICT_KILL,
        VERDICT_OOM,       VERDICT_ADMISSION, VERDICT_DISRUPTION};

    (void)state;
    for (size_t i = 1; i < ARRAY_LEN(WEAKEST_FIRST); i++)
        assert_true(WEAKEST_FIRST[i - 1] < WEAKEST_FIRST[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_match_wins), cmocka_unit_test(test_a_running_pod_says_nothing),
        cmocka_unit_test(test_init_container),   cmocka_unit_test(test_lost_without_last_words),
        cmocka_unit_test(test_strength),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
