/* manifest.h - the objects that `kubectl ptj submit` creates: a job, and a ConfigMap with its code. Pure.
 *
 * Ownership: what is returned is freed with cJSON_Delete.
 */
#ifndef TK_CLI_SUBMIT_MANIFEST_H
#define TK_CLI_SUBMIT_MANIFEST_H

#include "cli/submit/code.h"

#include <cjson/cJSON.h>
#include <stdint.h>

/* The folder of the code in the containers; help/submit.txt names it. */
#define MANIFEST_CODE_FOLDER "/ptj/code"

/* That of a volume without the limit of 64 MiB. */
#define MANIFEST_SHARED_MEMORY "/dev/shm"

enum { MANIFEST_LIST_MAX = 128, MANIFEST_NAME_MAX = 40 };

struct manifest_pair {
    const char *name, *value;
    const char *key; /* in the Secret `value`; NULL: of no Secret */
};

struct submission {
    const char *name;
    const char *ns; /* NULL: none is written */
    const char *image;
    int64_t nodes, gpus, procs, max_restarts; /* procs: of each pod */
    int64_t progress_timeout_s;               /* 0: none */
    const char *cpu, *memory;                 /* NULL: no limit */
    const char *launcher;                     /* "Torchkeeper", "Image" */
    struct manifest_pair env[MANIFEST_LIST_MAX];
    int n_env;
    struct manifest_pair claims[MANIFEST_LIST_MAX]; /* claim, path */
    int n_claims;
    struct manifest_pair selectors[MANIFEST_LIST_MAX]; /* labels of nodes */
    int n_selectors;
    const char *pull_secret;          /* NULL: none */
    struct manifest_pair tensorboard; /* claim, folder in it ("": its root); without a claim none is made */
    const char *program;              /* the path of one of the code's files */
    const char *const *args;          /* it gets them as they are here */
    int n_args;
    const struct code *code;
    const char *
        suffix; /* "-x7k2p": another name than that of the ConfigMap of a deleted job of the same name; "": none */
};

cJSON *manifest_job(const struct submission *s);

/* `owner_uid`: that of the job; the ConfigMap is deleted with it, and immutable. NULL: no owner, and the ConfigMap may change. */
cJSON *manifest_code(const struct submission *s, const char *owner_uid);

/* A name for a job made from a path: its last component, as a DNS label. */
void manifest_name(const char *path, char ret[static MANIFEST_NAME_MAX + 1]);

#endif
