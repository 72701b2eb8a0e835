/* config.h - find and read the address and credentials of the API server: a pod's service account, or
 * kubeconfig files.
 *
 * Ownership: kube_config_release frees all; a zeroed struct is a valid empty one.
 * Units:     monotonic milliseconds.
 * Errors:    ERR_NOT_FOUND (no configuration), ERR_INVALID (names the file and the field; what is not
 *            supported, such as auth-provider, is refused by name, never ignored). *c is untouched on
 *            failure.
 *
 * Of a kubeconfig, extensions and fields that Kubernetes does not define are ignored, as by kubectl. *-data
 * takes precedence over the file of the same name, tokenFile over token once it can be read, and a token, a
 * password or a client certificate over exec. Relative paths start at the kubeconfig's folder.
 *
 * Files that are replaced while the process runs are read again: each file that holds a credential, and the
 * kubeconfig itself as long as it names the same server, proxy, user name and impersonation; otherwise the
 * process has to be restarted. The context stays the one that was read first, even if current-context
 * changes.
 */
#ifndef TK_KUBE_AUTH_CONFIG_H
#define TK_KUBE_AUTH_CONFIG_H

#include "common/arena.h"
#include "kube/auth/execspec.h"
#include "kube/auth/impersonate.h"
#include "kube/auth/secret.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a pod finds its service account. */
#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_config {
    char *server;             /* "https://host:port", possibly with a path, never with a trailing slash */
    char *socket;             /* the path of a unix socket that is connected to instead; NULL: none */
    char *namespace_name;     /* of the context or the pod; "default" when not set */
    char *tls_server_name;    /* NULL: the server's host */
    bool insecure;            /* insecure-skip-tls-verify; see kube_config_warning */
    char *proxy_url;          /* from the kubeconfig; NULL: none */
    char *environment_proxy;  /* HTTPS_PROXY, unless NO_PROXY has the server; used when proxy_url is NULL */
    bool disable_compression; /* no request asks for compression; only passed on to a credential plugin */
    struct kube_secret ca;
    struct kube_secret client_cert;
    struct kube_secret client_key;
    struct kube_secret token;
    char *username;              /* NULL: no basic authentication */
    struct kube_secret password; /* len 0: the empty password */
    struct impersonate as;
    /* argv NULL: no credential plugin; otherwise auth.h fills token, client_cert and client_key. */
    struct exec_spec exec;
    const char *exec_config; /* JSON configuration for the plugin; NULL: none */
    struct arena arena;      /* memory of as, exec and exec_config */
    char *source;            /* kubeconfig paths, as in $KUBECONFIG; NULL: a pod's service account */
    char *context;           /* the context that was read; NULL: a pod's service account */
    int64_t read_ms;         /* when the files were last read */
    uint64_t generation;     /* incremented when a refresh changed something */
};

/* Read the pod's service account from `dir`. host and port: the values of KUBERNETES_SERVICE_HOST and
 * KUBERNETES_SERVICE_PORT. */
int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err) MUST_CHECK;

/* Read one kubeconfig file. `context` NULL: its current-context. */
int kube_config_read(struct kube_config *c, const char *path, const char *context,
                     struct err *err) MUST_CHECK;

/* Read several, listed as in $KUBECONFIG ("a:b"), by kubectl's rules: a file that does not exist is skipped,
 * one that cannot be read or parsed is an error. The first file that has a current-context, or a cluster,
 * user or context of a name, provides it entirely. */
int kube_config_read_list(struct kube_config *c, const char *paths, const char *context,
                          struct err *err) MUST_CHECK;

/* Read the default configuration: `path` when not NULL, else $KUBECONFIG, else the pod's service account (not
 * with a `context`), else ~/.kube/config; and the environment's proxy (proxy.h), which the three functions
 * above do not read. `context` NULL: the current-context. */
int kube_config_find(struct kube_config *c, const char *path, const char *context,
                     struct err *err) MUST_CHECK;

/* A warning that the caller should print, or NULL: TLS verification is off, so that others on the network can
 * read and change the traffic. A static string. */
const char *kube_config_warning(const struct kube_config *c);

/* Read the files again when they are older than 60 s, or at once with `force` (the server refused the
 * credentials, or its certificate could not be verified). What cannot be read keeps its old value. */
void kube_config_refresh(struct kube_config *c, int64_t now_ms, bool force);

void kube_config_release(struct kube_config *c);

#define cleanup_kube_config __attribute__((cleanup(kube_config_release)))

#endif
