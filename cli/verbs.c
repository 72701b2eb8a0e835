/* verbs.c - the list of the verbs of kubectl-ptj, and the options that all of them have. */
#include "cli/verbs.h"

#include <stddef.h>
#include <string.h>

const struct verb *const VERBS[] = {
    &VERB_WATCH,       &VERB_WHY,        &VERB_LOGS, &VERB_SUSPEND,  &VERB_RESUME,
    &VERB_SCALE,       &VERB_SUBMIT,     &VERB_RUN,  &VERB_CONVERT,  &VERB_DEBUG,
    &VERB_TENSORBOARD, &VERB_COMPLETION, &VERB_MAN,  &VERB_COMPLETE, NULL,
};

const char *const VERB_JOBS[] = {NULL}, *const VERB_FILES[] = {NULL};

const struct option_row VERB_NAMESPACE_OPTION[] = {
    {"namespace", 'n', "NAME", .help = "the namespace of the job (default: that of kubectl's context)"},
    {0},
};

/* Those of `kubectl options` that choose the API server and the user. */
const struct option_row VERB_KUBECTL_OPTIONS[] = {
    {"context", .value = "NAME"},
    {"kubeconfig", .value = "FILE", .words = VERB_FILES},
    {"cluster", .value = "NAME"},
    {"user", .value = "NAME"},
    {"server", .letter = 's', .value = "URL"},
    {"token", .value = "TOKEN"},
    {"username", .value = "NAME"},
    {"password", .value = "PASSWORD"},
    {"as", .value = "NAME"},
    {"as-group", .value = "NAME..."},
    {"as-uid", .value = "UID"},
    {"as-user-extra", .value = "KEY=VALUE..."},
    {"certificate-authority", .value = "FILE", .words = VERB_FILES},
    {"client-certificate", .value = "FILE", .words = VERB_FILES},
    {"client-key", .value = "FILE", .words = VERB_FILES},
    {"tls-server-name", .value = "NAME"},
    {"insecure-skip-tls-verify", .value = "BOOL", .optional = true},
    {"disable-compression", .value = "BOOL", .optional = true},
    {"request-timeout", .value = "TIME"},
    {"cache-dir", .value = "FOLDER", .words = VERB_FILES},
    {"kuberc", .value = "FILE", .words = VERB_FILES},
    {0},
};

const char VERB_KUBECTL_HELP[] =
    "The verb connects through kubectl ($KUBECTL, or the one in $PATH) and passes these options on to "
    "it; `kubectl options` explains them:";

const struct option_row VERB_COMMON_OPTIONS[] = {
    {"help", 'h', .help = "print this"},
    {"version", .help = "print the version"},
    {0},
};

const struct option_example VERBS_EXAMPLES[] = {
    {"kubectl ptj submit train.py --image pytorch/pytorch --gpus 8", "Run a script on 8 GPUs."},
    {"kubectl ptj watch", "Follow all jobs of the namespace as they train."},
    {"kubectl ptj why train", "Say why the job train failed or does not run, and what to do."},
    {"kubectl ptj logs train --rank 0", "Print the logs of rank 0 until the job has ended."},
    {0},
};

void verb_options(const struct verb *verb, const struct option_row *lists[OPTIONS_LISTS])
{
    const bool offline = verb && verb->offline;

    lists[0] = verb ? verb->options : NULL;
    lists[1] = offline ? NULL : VERB_NAMESPACE_OPTION;
    lists[2] = VERB_COMMON_OPTIONS;
    lists[3] = offline ? NULL : VERB_KUBECTL_OPTIONS;
}

const struct verb *verb_find(const char *name)
{
    for (int i = 0; VERBS[i]; i++)
        if (!strcmp(VERBS[i]->name, name))
            return VERBS[i];
    return NULL;
}

const char *verb_instead(const char *name)
{
    static const struct {
        const char *name, *instead;
    } ELSEWHERE[] = {
        {"list", "kubectl get ptj, or kubectl ptj watch --once"},
        {"ls", "kubectl get ptj, or kubectl ptj watch --once"},
        {"ps", "kubectl get ptj, or kubectl ptj watch --once"},
        {"get", "kubectl get ptj"},
        {"delete", "kubectl delete ptj NAME"},
        {"stop", "kubectl ptj suspend NAME, or kubectl delete ptj NAME"},
        {"cancel", "kubectl ptj suspend NAME, or kubectl delete ptj NAME"},
        {"create", "kubectl ptj submit SCRIPT --image IMAGE, or kubectl apply --server-side -f job.yaml"},
        {"apply", "kubectl apply --server-side -f job.yaml"},
        {"status", "kubectl ptj why NAME, or kubectl ptj watch NAME"},
        {"describe", "kubectl ptj why NAME, or kubectl describe ptj NAME"},
        {"explain", "kubectl explain ptj.spec"},
        {"wait", "kubectl ptj watch NAME --until=finished --timeout=1h"},
    };

    for (size_t i = 0; i < sizeof(ELSEWHERE) / sizeof(ELSEWHERE[0]); i++)
        if (!strcmp(ELSEWHERE[i].name, name))
            return ELSEWHERE[i].instead;
    return NULL;
}
