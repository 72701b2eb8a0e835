/* verbs.c - the list of the verbs of kubectl-ptj, and the options that all of them have. */
#include "cli/verbs.h"

#include <stddef.h>
#include <string.h>

const struct verb *const VERBS[] = {
    &VERB_WATCH,       &VERB_WHY,        &VERB_LOGS, &VERB_SUSPEND,  &VERB_RESUME,
    &VERB_SCALE,       &VERB_SUBMIT,     &VERB_RUN,  &VERB_CONVERT,  &VERB_DEBUG,
    &VERB_TENSORBOARD, &VERB_COMPLETION, &VERB_MAN,  &VERB_COMPLETE, NULL,
};

const struct verb_option VERB_NAMESPACE_OPTION[] = {
    {"namespace", 'n', "NAME", "the namespace of the job (default: that of kubectl's context)", NULL},
    {0},
};

/* Those of `kubectl options` that choose the API server and the user. */
const struct verb_option VERB_KUBECTL_OPTIONS[] = {
    {"context", 0, "NAME", NULL, NULL},
    {"kubeconfig", 0, "FILE", NULL, VERB_FILES},
    {"cluster", 0, "NAME", NULL, NULL},
    {"user", 0, "NAME", NULL, NULL},
    {"server", 's', "URL", NULL, NULL},
    {"token", 0, "TOKEN", NULL, NULL},
    {"username", 0, "NAME", NULL, NULL},
    {"password", 0, "PASSWORD", NULL, NULL},
    {"as", 0, "NAME", NULL, NULL},
    {"as-group", 0, "NAME...", NULL, NULL},
    {"as-uid", 0, "UID", NULL, NULL},
    {"as-user-extra", 0, "KEY=VALUE...", NULL, NULL},
    {"certificate-authority", 0, "FILE", NULL, VERB_FILES},
    {"client-certificate", 0, "FILE", NULL, VERB_FILES},
    {"client-key", 0, "FILE", NULL, VERB_FILES},
    {"tls-server-name", 0, "NAME", NULL, NULL},
    {"insecure-skip-tls-verify", 0, NULL, NULL, NULL},
    {"disable-compression", 0, NULL, NULL, NULL},
    {"request-timeout", 0, "TIME", NULL, NULL},
    {"cache-dir", 0, "FOLDER", NULL, VERB_FILES},
    {"kuberc", 0, "FILE", NULL, VERB_FILES},
    {0},
};

const char VERB_KUBECTL_HELP[] =
    "The connection is kubectl's ($KUBECTL, or that of $PATH). These options of its go to it as "
    "they are; `kubectl options` explains them:";

const struct verb_option VERB_COMMON_OPTIONS[] = {
    {"help", 'h', NULL, "print this", NULL},
    {"version", 0, NULL, "print the version", NULL},
    {0},
};

struct verb_options verb_options(const struct verb *verb)
{
    const bool offline = verb && verb->offline;

    return (struct verb_options){{verb ? verb->options : NULL, offline ? NULL : VERB_NAMESPACE_OPTION,
                                  VERB_COMMON_OPTIONS, offline ? NULL : VERB_KUBECTL_OPTIONS}};
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
        {"get", "kubectl get ptj"},
        {"delete", "kubectl delete ptj NAME"},
        {"status", "kubectl ptj why NAME, or kubectl ptj watch NAME"},
        {"describe", "kubectl ptj why NAME, or kubectl describe ptj NAME"},
        {"wait", "kubectl ptj watch NAME --until=finished --timeout=1h"},
    };

    for (size_t i = 0; i < sizeof(ELSEWHERE) / sizeof(ELSEWHERE[0]); i++)
        if (!strcmp(ELSEWHERE[i].name, name))
            return ELSEWHERE[i].instead;
    return NULL;
}
