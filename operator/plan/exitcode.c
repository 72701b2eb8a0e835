/* exitcode.c - classify how one pod ended by a table of evidence; the first row that matches decides. */
#include "operator/plan/exitcode.h"

#include "common/contract.h"
#include "operator/plan/rootcause.h"

#include <string.h>

/* Exit codes that container runtimes report for containers that they could not start, or lost. */
enum { NOT_EXECUTABLE = 126, NOT_STARTED = 128, LOST = 255 };

static const char STATUS_UNKNOWN[] = "ContainerStatusUnknown";
static const char NODE_LOST[] = "NodeLost";

static const char *const DISRUPTIONS[] = {
    "PreemptionByScheduler",
    "DeletionByTaintManager",
    "EvictionByEvictionAPI",
    "DeletionByPodGC",
    "TerminationByKubelet",
    "PodDeleted",
    "PodLost",
    NODE_LOST,
    "Disruption",
    STATUS_UNKNOWN,
    NULL,
};

bool exitcode_is_disruption(const char *reason)
{
    return decode_index(DISRUPTIONS, reason) >= 0;
}

bool exitcode_accuses_node(const char *reason, int32_t exit_code)
{
    static const char *const ACCUSE[] = {"DeletionByTaintManager",
                                         "DeletionByPodGC",
                                         "TerminationByKubelet",
                                         STATUS_UNKNOWN,
                                         NODE_LOST,
                                         "Killed",
                                         "RetryableExitCode",
                                         NULL};
    static const char *const OWN_LIMITS[] = {"Evicted", "DeadlineExceeded", "StartDeadlineExceeded", NULL};
    bool refused =
        reason && exit_code < 0 && !exitcode_is_disruption(reason) && decode_index(OWN_LIMITS, reason) < 0;

    return refused || decode_index(ACCUSE, reason) >= 0;
}

/* The pod never ran on this node; a new pod may, elsewhere or later. */
static bool refused_by_node(const struct pod *pod)
{
    static const char *const REASONS[] = {
        "UnexpectedAdmissionError", "NodeAffinity", "Terminated", "NodeShutdown", "Shutdown", NULL};

    return decode_index(REASONS, pod->reason) >= 0 || strncmp(pod->reason, "OutOf", 5) == 0;
}

static bool own_limit(const struct pod *pod)
{
    return strcmp(pod->reason, "Evicted") == 0 || strcmp(pod->reason, "DeadlineExceeded") == 0;
}

static bool listed(int32_t code, const struct run_policy *policy)
{
    for (int i = 0; i < policy->n_retryable_exit_codes; i++)
        if (policy->retryable_exit_codes[i] == code)
            return true;
    return false;
}

static void judge_code(struct verdict *v, const char *container_reason, const struct run_policy *policy)
{
    static const struct {
        int32_t code;
        enum verdict_class class;
        const char *reason;
    } CODES[] = {
        {EXIT_CODE_SIGNAL_BASE + 9, VERDICT_KILL, "Killed"},
        {EXIT_CODE_TERMINATED, VERDICT_KILL, "Terminated"},
        {EXIT_CODE_INTERRUPTED, VERDICT_KILL, "Interrupted"},
        {EXIT_CODE_PEER_LOST, VERDICT_PEER_LOST, "PeerLost"},
        {EXIT_CODE_RETRYABLE, VERDICT_RETRYABLE, "RetryableExitCode"},
        {EXIT_CODE_NO_REQUEUE, VERDICT_PERMANENT, "DoNotRequeue"},
    };
    bool retryable = listed(v->exit_code, policy);

    v->class = retryable ? VERDICT_RETRYABLE : VERDICT_PERMANENT;
    v->reason = retryable                                                       ? "RetryableExitCode"
                : container_reason[0] && strcmp(container_reason, "Error") != 0 ? container_reason
                                                                                : "PermanentExitCode";
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++)
        if (CODES[i].code == v->exit_code) {
            v->reason = CODES[i].reason;
            if (!retryable || CODES[i].class == VERDICT_KILL)
                v->class = CODES[i].class;
        }
}

/* The signal of an exit code; programs choose 138 and 140 themselves. */
static int32_t signal_of(int32_t code)
{
    int32_t n = code - EXIT_CODE_SIGNAL_BASE;

    return n >= 1 && n <= 31 && code != EXIT_CODE_RETRYABLE && code != EXIT_CODE_PEER_LOST ? n : 0;
}

/* Whether the container's real end is unknown. The kubelet reports ContainerStatusUnknown for a container
 * that it no longer finds, containerd Unknown for one whose end it missed, as after a restart of the node.
 * For a program's exit(255) the reason is Error. */
static bool is_lost(const struct pod_container *c)
{
    return strcmp(c->reason, STATUS_UNKNOWN) == 0 ||
           (c->exit_code == LOST && strcmp(c->reason, "Unknown") == 0);
}

static int32_t container_signal(const struct pod_container *c)
{
    if (c->state != CONTAINER_TERMINATED || is_lost(c))
        return 0;
    return c->signal ? c->signal : signal_of(c->exit_code);
}

/* Whether the container runtime could not execute the launcher from desired_launcher.c, by any runtime's
 * message. */
static bool launcher_refused(const struct pod_container *c)
{
    return (c->exit_code == NOT_EXECUTABLE || c->exit_code == NOT_STARTED) &&
           strstr(c->message, TRAINJOB_LAUNCHER_PROGRAM) && strcasestr(c->message, "permission denied");
}

static struct verdict from_container(const struct pod_container *c, const struct run_policy *policy)
{
    struct verdict v = {.message = policy->no_last_words ? "" : c->message,
                        .exit_code = c->exit_code,
                        .rank = -1,
                        .finished_ms = c->finished_ms};
    struct rootcause cause = {.rank = -1};
    bool known = rootcause_parse(c->message, &cause);

    if (is_lost(c)) {
        v.class = VERDICT_DISRUPTION;
        v.reason = STATUS_UNKNOWN;
        if (strcmp(c->reason, STATUS_UNKNOWN) == 0)
            v.message = c->message; /* the kubelet's text, not a program's */
        if (!v.message[0])
            v.message = "the container runtime lost the container, as after a restart of the node";
        return v;
    }
    v.signal = container_signal(c);
    /* Our launcher exits with the code of the rank in its report. Another code: the report names a rank of another node. */
    if (c->exit_code == EXIT_CODE_ERROR || c->exit_code == cause.exit_code)
        v.rank = cause.rank;
    if (strcmp(c->reason, "OOMKilled") == 0) {
        v.class = VERDICT_OOM;
        v.reason = "OOMKilled";
        return v;
    }
    /* PyTorch's torchrun exits with 1 after any failure. */
    if (c->exit_code == EXIT_CODE_ERROR && known) {
        v.exit_code = cause.exit_code;
        v.signal = cause.signal;
    }
    judge_code(&v, c->reason, policy);
    if (v.exit_code == EXIT_CODE_RETRYABLE && cause.no_progress)
        v.reason = "NoProgress";
    if (v.class == VERDICT_PERMANENT && launcher_refused(c)) {
        v.reason = "LauncherNotExecutable";
        v.message =
            "the node does not execute " TRAINJOB_LAUNCHER_PROGRAM ", which is in an emptyDir: permission "
            "denied; is its kubelet's folder mounted noexec, or does a security module refuse it?";
    }
    /* PyTorch's programs that have lost a peer exit with 1 or abort. */
    if (v.class == VERDICT_PERMANENT && cause.peer_lost &&
        (c->exit_code == EXIT_CODE_ERROR || c->exit_code == EXIT_CODE_ABORTED)) {
        v.class = VERDICT_PEER_LOST;
        v.reason = "PeerLost";
    }
    return v;
}

/* The verdict on a failed init container, with its name. */
static struct verdict from_init_container(const struct pod *pod, const struct run_policy *policy)
{
    struct verdict v = from_container(&pod->init, policy);

    v.init = pod->init.name;
    v.rank = -1;
    if (v.class == VERDICT_PERMANENT || v.class == VERDICT_RETRYABLE)
        v.reason = "InitContainerFailed";
    return v;
}

static struct verdict disruption(const struct pod *pod)
{
    bool known = exitcode_is_disruption(pod->disruption);

    return (struct verdict){
        .class = VERDICT_DISRUPTION,
        .reason = known                ? pod->disruption
                  : pod->disruption[0] ? "Disruption"
                                       : "PodDeleted",
        .message = pod->disruption_msg[0] ? pod->disruption_msg : pod->message,
        .exit_code = pod->training.state == CONTAINER_TERMINATED ? pod->training.exit_code : -1,
        .signal = container_signal(&pod->training),
        .rank = -1,
        .finished_ms = pod->training.finished_ms,
    };
}

static struct verdict without_container(const struct pod *pod)
{
    bool limit = own_limit(pod);

    return (struct verdict){
        .class = limit ? VERDICT_PERMANENT : VERDICT_ADMISSION,
        .reason = pod->reason[0] ? pod->reason : "NoContainerStatus",
        .message = pod->message,
        .exit_code = -1,
        .rank = -1,
    };
}

struct verdict exitcode_verdict(const struct pod *pod, const struct run_policy *policy)
{
    bool ended = pod->training.state == CONTAINER_TERMINATED;
    bool init_failed = pod->init.state == CONTAINER_TERMINATED && pod->phase == POD_FAILED;

    if (ended ? pod->training.exit_code == 0 : pod->phase == POD_SUCCEEDED)
        return (struct verdict){.class = VERDICT_SUCCESS, .message = "", .rank = -1};
    if (pod->deletion_ms || (pod->disruption[0] && pod_ended(pod)))
        return disruption(pod);
    if (!pod_ended(pod))
        return (struct verdict){.class = VERDICT_NONE, .message = "", .exit_code = -1, .rank = -1};
    if (refused_by_node(pod))
        return without_container(pod);
    if (own_limit(pod) && !(ended && strcmp(pod->training.reason, "OOMKilled") == 0)) {
        struct verdict v = without_container(pod);
        v.exit_code = ended ? pod->training.exit_code : -1;
        v.signal = container_signal(&pod->training);
        v.finished_ms = pod->training.finished_ms;
        return v;
    }
    if (ended)
        return from_container(&pod->training, policy);
    return init_failed ? from_init_container(pod, policy) : without_container(pod);
}

struct verdict exitcode_lost(int32_t exit_code, const struct run_policy *policy)
{
    struct verdict v = {.class = VERDICT_DISRUPTION, .reason = "PodLost", .exit_code = exit_code, .rank = -1};

    v.message = "the pod was deleted by someone else";
    if (exit_code > 0) {
        v.signal = signal_of(exit_code);
        judge_code(&v, "", policy);
    }
    return v;
}

struct verdict exitcode_node_lost(void)
{
    return (struct verdict){.class = VERDICT_DISRUPTION,
                            .reason = NODE_LOST,
                            .message = "its peers lost the connection to it, and its node does not report",
                            .exit_code = -1,
                            .rank = -1};
}
