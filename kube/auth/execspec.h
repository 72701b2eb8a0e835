/* execspec.h - `exec` of a kubeconfig's user: the program that knows how to log in. Pure.
 *
 * Ownership: the texts live in the arena.
 * Errors:    ERR_INVALID naming the field. *ret is untouched on failure. interactiveMode Always is refused: there is
 *            nobody to ask.
 */
#ifndef TK_KUBE_AUTH_EXECSPEC_H
#define TK_KUBE_AUTH_EXECSPEC_H

#include "common/json.h"

enum { EXEC_ARGS_MAX = 256, EXEC_ENV_MAX = 256 };

struct exec_spec {
    const char *const *argv;  /* [0] is the command: a name for PATH, or a path; ends with NULL */
    const char *const *env;   /* "NAME=value" over our own environment; ends with NULL */
    const char *api_version;  /* "client.authentication.k8s.io/v1" or ".../v1beta1" */
    const char *install_hint; /* "" when there is none; one line of printable text */
    bool provide_cluster_info;
};

/* A command that holds a '/' and does not begin with one is found from `dir`, the kubeconfig's folder. */
int exec_spec_decode(const struct json_at *exec, const char *dir, struct arena *a, struct exec_spec *ret,
                     struct err *err) MUST_CHECK;

#endif
