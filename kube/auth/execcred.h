/* execcred.h - the input and output of a credential plugin: ExecCredential of client.authentication.k8s.io v1
 * and v1beta1. Pure.
 *
 * Ownership: a decoded credential points into the tree; exec_tree_free wipes it.
 * Units:     milliseconds since the Unix epoch.
 * Errors:    ERR_INVALID; of the plugin's output a message holds at most apiVersion and kind.
 */
#ifndef TK_KUBE_AUTH_EXECCRED_H
#define TK_KUBE_AUTH_EXECCRED_H

#include "common/json.h"
#include "common/sv.h"

/* An environment variable may have 128 KiB on Linux (MAX_ARG_STRLEN), its name included. */
enum { EXEC_INFO_MAX_BYTES = 120 << 10 };

/* The cluster as described to a plugin; NULL: not set. */
struct exec_cluster {
    const char *server;
    const char *tls_server_name;
    const char *proxy_url;
    const char *config; /* JSON: the cluster's extension "client.authentication.k8s.io/exec" */
    struct sv ca;       /* len 0: none */
    bool insecure;
    bool disable_compression;
};

/* Append the value of KUBERNETES_EXEC_INFO. `cluster`: NULL unless the plugin asked for it
 * (provideClusterInfo). */
int exec_info(const char *api_version, const struct exec_cluster *cluster, struct buf *out,
              struct err *err) MUST_CHECK;

struct exec_credential {
    const char *token;  /* NULL: none */
    const char *cert;   /* PEM; NULL: none, then key is NULL too */
    const char *key;    /* PEM */
    int64_t expires_ms; /* INT64_MAX: never */
};

/* Parse a plugin's output. Free *ret_tree with exec_tree_free; it is NULL on failure. */
int exec_credential_decode(struct sv text, const char *api_version, cJSON **ret_tree,
                           struct exec_credential *ret, struct err *err) MUST_CHECK;

void exec_tree_free(cJSON *tree);

#endif
