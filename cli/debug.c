/* debug.c - kubectl ptj debug: a shell or a command in the training container of a rank. */
#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/usage.h"

#include "common/json.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "operator/plan/desired.h"

#include <string.h>
#include <unistd.h>

/* The pod called `pod`; NULL: that of the rank. */
static int find(const struct trainjob *job, const char *pod, int64_t rank, struct arena *a, const char **ret,
                struct err *err)
{
    const struct ranks wanted = {.ranges = {{rank, rank}}, .n = !pod, .pod = pod};
    int64_t before = 0; /* ranks of the replicaSpecs in front */

    for (int i = 0; i < job->spec.n_replica_specs; i++) {
        const struct replica_spec *r = &job->spec.replica_specs[i];
        const int64_t n = ranks_per_pod(&job->spec, r);
        if (rank && !n) /* rank 0 is in the first pod, whatever n is */
            return err_set(
                err, ERR_INVALID,
                "--rank: procPerNode is %s, so which pod a rank is in is not known here: use --pod",
                job->spec.torchrun.proc_per_node);
        for (int32_t index = 0; index < r->replicas; index++)
            if (ranks_have_pod(&wanted, job, r->type, index)) {
                *ret = desired_pod_name(a, job->name, r->type, index);
                return 0;
            }
        before += r->replicas * n;
    }
    return pod ? err_set(err, ERR_INVALID, "--pod: %s has no such pod: it has %d pods", job->name,
                         job->spec.pods)
               : err_set(err, ERR_INVALID, "--rank: expected 0..%lld, got %lld", (long long)(before - 1),
                         (long long)rank);
}

/* exec into a pod that does not run says little; this error says why it does not. */
static int read_running(struct session *s, const char *job, const char *pod, cJSON **ret, struct err *err)
{
    const struct kube_request r = {.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = s->ns, .name = pod};

    if (session_call(s, &r, ret, err) < 0)
        return err->kind == ERR_NOT_FOUND
                   ? err_set(err, ERR_NOT_FOUND,
                             "the pod %s does not exist now: kubectl ptj watch %s -n %s%s shows the job", pod,
                             job, s->ns, buf_str(&s->options))
                   : -1;
    const char *phase = json_str(json_child(*ret, "status"), "phase");
    if (!phase || strcmp(phase, "Running") != 0)
        return err_set(err, ERR_INVALID,
                       "the pod %s does not run, its phase is %.20s: kubectl ptj why %s -n %s%s explains it; "
                       "to look around in a pod that trains nothing, set spec.runMode.debug.enabled: true",
                       pod, phase ? phase : "unknown", job, s->ns, buf_str(&s->options));
    return 0;
}

static int enter(struct session *s, const struct args *a, const char *pod, const char *container,
                 struct arena *arena, struct err *err)
{
    static const char *const SHELL[] = {"sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"};
    const char **words = arena_array(arena, (size_t)a->n_operands + 16, const char *);
    int n = 0;

    words[n++] = "exec";
    words[n++] = "-i";
    if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        words[n++] = "-t";
    words[n++] = pod;
    words[n++] = "-c";
    words[n++] = container;
    words[n++] = "--";
    for (int i = 1; i < a->n_operands; i++)
        words[n++] = a->operands[i];
    for (size_t i = 0; a->n_operands == 1 && i < ARRAY_LEN(SHELL); i++)
        words[n++] = SHELL[i];
    return session_become(s, a, words, err);
}

static int check(const struct args *a, struct err *err)
{
    if (args_has(a, "rank") && args_has(a, "pod"))
        return usage_wrong(err, "--rank and --pod exclude each other");
    return 0;
}

static int run(struct session *s, const struct args *a, struct err *err)
{
    cleanup_arena struct arena arena = {0};
    cleanup_json cJSON *pod = NULL;
    cJSON *object = NULL;
    const char *wanted = args_text(a, "pod", NULL), *name = NULL;
    const bool by_rank = args_has(a, "rank");

    if (session_job(s, a->operands[0], &object, err) < 0)
        return -1;
    cleanup_trainjob struct trainjob *job = trainjob_decode(object, err);
    if (!job)
        return -1;
    if (job->spec_error)
        return err_set(err, ERR_INVALID, "the job's spec is invalid: %s", job->spec_error);
    if ((by_rank && ranks_check_order(&job->spec, NULL, err) < 0) ||
        find(job, wanted, args_i64(a, "rank", 0), &arena, &name, err) < 0 ||
        read_running(s, job->name, name, &pod, err) < 0 ||
        (by_rank && ranks_check_order(&job->spec, pod, err) < 0))
        return -1;
    return enter(s, a, name, json_str(pod_training_container(pod), "name"), &arena, err);
}

static const struct option_row OPTIONS[] = {
    {"rank", 'r', "N", option_integer, .max = INT32_MAX,
     .help = "the rank whose pod is entered, known as for `logs` (default: the first pod)"},
    {"pod", 0, "POD", .help = "the pod that is entered: node-3, or its whole name"},
    {0},
};

static const struct option_example EXAMPLES[] = {
    {"kubectl ptj debug bert", "A shell in the first pod."},
    {"kubectl ptj debug bert --rank 3", "A shell in the pod of rank 3."},
    {"kubectl ptj debug bert --pod node-1 -- nvidia-smi", "One command in the pod node-1."},
    {0},
};

const struct verb VERB_DEBUG = {
    .name = "debug",
    .operands = "NAME [-- COMMAND...]",
    .operands_min = 1,
    .operands_max = VERB_ANY,
    .words = VERB_JOBS,
    .summary = "open a shell in the pod of a rank",
    .about = "Runs `kubectl exec` in the training container of the rank's pod: bash or else sh, or the "
             "command. Needs the permission to create pods/exec.",
    .options = OPTIONS,
    .examples = EXAMPLES,
    .check = check,
    .run = run,
};
