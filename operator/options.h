/* options.h - the command line of ptj-operator.
 *
 * Ownership: strings point into argv or are literals.
 * Errors:    ERR_INVALID naming the option, its value and what was expected.
 */
#ifndef TK_OPERATOR_OPTIONS_H
#define TK_OPERATOR_OPTIONS_H

#include "common/cleanup.h"
#include "common/err.h"
#include "common/log.h"
#include "common/options.h"
#include "kube/auth/config.h"
#include "operator/queues.h"

struct options {
    const char *ns; /* NULL: all namespaces */
    const char *metrics_address;
    const char *health_address;
    struct kube_config_given api; /* without a server: the pod's service account */
    const char *tensorboard_image;
    const char *launcher_image;
    const char *scraper_ns;          /* NULL: none */
    const char *leader_elect_ns;     /* NULL: the pod's namespace, or "default" */
    int64_t lease_duration_s;        /* others wait so long after the last renewal */
    const char *gang_scheduler_name; /* NULL: the scheduler's usual one */
    int64_t gang_start_deadline_s;
    int gang_scheduler; /* enum gang_scheduler */
    int kueue;          /* enum queues_use */
    int log_level;      /* enum log_level */
    bool leader_elect;
    bool isolate_jobs, job_keys, tensorboard;
    bool help, version;
};

int options_parse(struct options *o, int argc, char **argv, struct err *err) MUST_CHECK;

extern const struct option_row options_rows[];
extern const struct option_example options_examples[];

/* Print the text of --help. */
void options_help(FILE *out);

#endif
