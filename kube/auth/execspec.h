/* execspec.h - decode the `exec` member of a kubeconfig's user: the credential plugin, its arguments and
 * environment. Pure.
 *
 * Ownership: the texts live in the arena.
 * Errors:    ERR_INVALID naming the field. *ret is untouched on failure. interactiveMode Always is refused,
 *            since there is no terminal.
 */
#ifndef TK_KUBE_AUTH_EXECSPEC_H
#define TK_KUBE_AUTH_EXECSPEC_H

#include "common/json.h"

enum { EXEC_ARGS_MAX = 256, EXEC_ENV_MAX = 256 };

struct exec_spec {
    const char *const *argv;  /* [0]: the command, a path or a name to look up in PATH; ends with NULL */
    const char *const *env;   /* "NAME=value", added to this process' environment; ends with NULL */
    const char *api_version;  /* "client.authentication.k8s.io/v1" or ".../v1beta1" */
    const char *install_hint; /* one line of printable text; "": none */
    bool provide_cluster_info;
};

/* A command with a '/' that does not begin with one is relative to `dir`, the kubeconfig's folder. */
int exec_spec_decode(const struct json_at *exec, const char *dir, struct arena *a, struct exec_spec *ret,
                     struct err *err) MUST_CHECK;

#endif
