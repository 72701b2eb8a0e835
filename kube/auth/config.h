/* config.h - the API server's address and our credentials: a pod's service account, or the options of the
 * command line.
 *
 * Ownership: kube_config_release frees all and wipes the credentials; a zeroed struct is a valid empty one.
 * Units:     monotonic milliseconds.
 * Errors:    ERR_NOT_FOUND (not in a pod, no such file), ERR_INVALID (names the variable, option or file; a file
 *            is empty, or over 1 MiB), ERR_FATAL (reading). Messages never contain the bytes of a credential. *c
 *            is untouched on failure.
 */
#ifndef TK_KUBE_AUTH_CONFIG_H
#define TK_KUBE_AUTH_CONFIG_H

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a pod finds its service account. */
#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

/* A credential in memory, read from a file that may be replaced at any time. */
struct kube_credential {
    struct buf bytes; /* len 0: not set */
    char *file;       /* NULL: none */
};

int kube_credential_from_file(struct kube_credential *s, const char *path, struct err *err) MUST_CHECK;

struct kube_config {
    char *server;                 /* "https://host:port", possibly with a path, never with a trailing slash */
    char *socket;                 /* the path of a unix socket to connect to instead; NULL: none */
    char *namespace_name;         /* of the pod; "default" elsewhere */
    struct kube_credential ca;    /* len 0: the system's CA certificates */
    struct kube_credential token; /* len 0: none */
    int64_t read_ms;              /* when the files were last read */
    uint64_t generation;          /* incremented when a refresh changed something */
};

/* Read the pod's service account from `dir`. host and port: the values of KUBERNETES_SERVICE_HOST and
 * KUBERNETES_SERVICE_PORT. */
int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err) MUST_CHECK;

/* Options of the command line, for use outside a cluster; each may be NULL. */
struct kube_config_given {
    const char *server;     /* "https://host:port", "http://127.0.0.1:8001", "unix:/path/of/a/socket" */
    const char *ca_file;    /* NULL: the system's CA certificates */
    const char *token_file; /* NULL: none, as for `kubectl proxy` */
};

/* The options given, or without a server the pod's service account. */
int kube_config_find(struct kube_config *c, const struct kube_config_given *given,
                     struct err *err) MUST_CHECK;

/* Read the files again if the last read was over 60 s ago: token and CA may be replaced while the process
 * runs. A file that cannot be read keeps its old value. */
void kube_config_refresh(struct kube_config *c, int64_t now_ms);

/* A request with the credentials of this `generation` got a 401 or failed to verify the server's certificate:
 * read the files again. Returns whether the configuration is newer now, so that a retry makes sense. */
bool kube_config_renewed(struct kube_config *c, uint64_t generation, int64_t now_ms);

void kube_config_release(struct kube_config *c);

#define cleanup_kube_config __attribute__((cleanup(kube_config_release)))

#endif
