/* verbs.c - the list of the verbs of kubectl-ptj, and the options that all of them have. */
#include "cli/verbs.h"

#include <stddef.h>
#include <string.h>

const struct verb *const VERBS[] = {
    &VERB_WATCH,      &VERB_WHY,    &VERB_LOGS,     &VERB_WAIT,    &VERB_SUSPEND, &VERB_RESUME,
    &VERB_SCALE,      &VERB_SUBMIT, &VERB_RUN,      &VERB_CONVERT, &VERB_DEBUG,   &VERB_TENSORBOARD,
    &VERB_COMPLETION, &VERB_MAN,    &VERB_COMPLETE, NULL,
};

const struct verb_option VERB_CONNECTION_OPTIONS[] = {
    {"namespace", 'n', "NAME", "the namespace of the job (default: that of the kubeconfig's context)", NULL},
    {"context", 0, "NAME", "the kubeconfig's context (default: its current one)", NULL},
    {"kubeconfig", 0, "FILE", "the kubeconfig (default: $KUBECONFIG, the pod's account, ~/.kube/config)",
     VERB_FILES},
    {0},
};

const struct verb_option VERB_COMMON_OPTIONS[] = {
    {"help", 'h', NULL, "print this", NULL},
    {"version", 0, NULL, "print the version", NULL},
    {0},
};

struct verb_options verb_options(const struct verb *verb)
{
    return (struct verb_options){{verb ? verb->options : NULL,
                                  verb && verb->offline ? NULL : VERB_CONNECTION_OPTIONS,
                                  VERB_COMMON_OPTIONS}};
}

const struct verb *verb_find(const char *name)
{
    for (int i = 0; VERBS[i]; i++)
        if (!strcmp(VERBS[i]->name, name))
            return VERBS[i];
    return NULL;
}
