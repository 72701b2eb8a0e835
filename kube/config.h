/* config.h - where the API server is and how to be let in: from inside a pod, or from a kubeconfig
 * file.
 *
 * Ownership: kube_config_release frees all; a zeroed struct is a valid empty one.
 * Units:     monotonic milliseconds.
 * Errors:    ERR_NOT_FOUND (no configuration there), ERR_INVALID (names the file and the field; what we
 *            do not support yet, such as exec plugins, is refused by name, never ignored). *c is
 *            untouched on failure.
 */
#ifndef TK_KUBE_CONFIG_H
#define TK_KUBE_CONFIG_H

#include "kube/secret.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a pod finds its credentials. */
#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_config {
    char *server;          /* "https://host:port", perhaps with a path, never with a trailing slash */
    char *namespace_name;  /* the context's or the pod's own; "default" when none is given */
    char *tls_server_name; /* NULL: the server's host */
    bool insecure;         /* insecure-skip-tls-verify: the caller should warn */
    struct kube_secret ca;
    struct kube_secret client_cert;
    struct kube_secret client_key;
    struct kube_secret token;
    int64_t read_ms; /* when the files were last read */
};

/* The pod's own service account. host and port are the values of KUBERNETES_SERVICE_HOST and _PORT. */
int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err) MUST_CHECK;

/* A kubeconfig file; `context` NULL means its current-context. */
int kube_config_read(struct kube_config *c, const char *path, const char *context,
                     struct err *err) MUST_CHECK;

/* What a user expects: `path` when not NULL, else $KUBECONFIG (one file), else the pod's own account, else
 * ~/.kube/config. */
int kube_config_find(struct kube_config *c, const char *path, struct err *err) MUST_CHECK;

/* Read the files again when they are older than 60 s, or at once with `force` (the server said 401). A file
 * that cannot be read keeps its old bytes. */
void kube_config_refresh(struct kube_config *c, int64_t now_ms, bool force);

void kube_config_release(struct kube_config *c);

#define cleanup_kube_config __attribute__((cleanup(kube_config_release)))

#endif
