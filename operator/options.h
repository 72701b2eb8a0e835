/* options.h - the command line of ptj-operator.
 *
 * Ownership: strings point into argv or are literals.
 * Errors:    ERR_INVALID naming the option, its value and what was expected.
 */
#ifndef TK_OPERATOR_OPTIONS_H
#define TK_OPERATOR_OPTIONS_H

#include "common/options.h"
#include "kube/auth/config.h"
#include "kube/manager.h"
#include "operator/controller.h"

struct options {
    struct controller_options controller; /* except the seed and the operator's own namespace */
    struct kube_manager_options manager;  /* except the callbacks */
    struct kube_config_given api;         /* without a server: the pod's service account */
    int64_t lease_duration_s;             /* others wait so long after the last renewal */
    enum log_level log_level;
    bool leader_elect, tensorboard;
    bool help, version;
};

int options_parse(struct options *o, int argc, char **argv, struct err *err) MUST_CHECK;

extern const struct option_row options_rows[];
extern const struct option_example options_examples[];

/* Print the text of --help. */
void options_help(FILE *out);

#endif
