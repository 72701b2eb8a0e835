/* config.h - where the API server is and how to be let in: from inside a pod, or from kubeconfig files.
 *
 * Ownership: kube_config_release frees all; a zeroed struct is a valid empty one.
 * Units:     monotonic milliseconds.
 * Errors:    ERR_NOT_FOUND (no configuration there), ERR_INVALID (names the file and the field; what we
 *            cannot do, such as auth-provider, is refused by name, never ignored). *c is untouched on
 *            failure.
 *
 * Of a kubeconfig: fields that Kubernetes does not define and extensions are ignored, as kubectl does; *-data
 * wins over the file of the same name; tokenFile wins over token once it can be read; a token, a password or a client
 * certificate wins over exec; paths are those of the folder the file is in.
 *
 * What is replaced while we run is read again: each file that holds a credential, and a kubeconfig itself as long as it is for
 * the same server, proxy, user name and impersonation; one for something else needs another process. The context stays the one
 * that was read first, whatever is the current one then.
 */
#ifndef TK_KUBE_AUTH_CONFIG_H
#define TK_KUBE_AUTH_CONFIG_H

#include "common/arena.h"
#include "kube/auth/execspec.h"
#include "kube/auth/impersonate.h"
#include "kube/auth/secret.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a pod finds its credentials. */
#define KUBE_SERVICE_ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct kube_config {
    char *server;             /* "https://host:port", perhaps with a path, never with a trailing slash */
    char *namespace_name;     /* the context's or the pod's own; "default" when none is given */
    char *tls_server_name;    /* NULL: the server's host */
    bool insecure;            /* insecure-skip-tls-verify: the caller should warn, see kube_config_warning */
    char *proxy_url;          /* the kubeconfig's; NULL: none */
    char *environment_proxy;  /* HTTPS_PROXY, unless NO_PROXY has the server; used when proxy_url is NULL */
    bool disable_compression; /* we never ask for it; a credential plugin is told */
    struct kube_secret ca;
    struct kube_secret client_cert;
    struct kube_secret client_key;
    struct kube_secret token;
    char *username;              /* NULL: no basic authentication */
    struct kube_secret password; /* len 0: an empty one */
    struct impersonate as;
    struct exec_spec
        exec; /* argv NULL: no credential plugin; else auth.h fills token, client_cert, client_key */
    const char *exec_config; /* JSON for the plugin; NULL: none */
    struct arena arena;      /* what as, exec and exec_config point to */
    char *source;            /* the kubeconfigs, as $KUBECONFIG lists them; NULL: a pod's own account */
    char *context;           /* the one of them that was read; NULL: a pod's own account */
    int64_t read_ms;         /* when the files were last read */
    uint64_t generation;     /* one more each time a refresh brought something new */
};

/* The pod's own service account. host and port are the values of KUBERNETES_SERVICE_HOST and _PORT. */
int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err) MUST_CHECK;

/* One kubeconfig file; `context` NULL means its current-context. */
int kube_config_read(struct kube_config *c, const char *path, const char *context,
                     struct err *err) MUST_CHECK;

/* Several, as $KUBECONFIG lists them ("a:b"), by kubectl's rules: one that does not exist is passed over, one that
 * cannot be read or understood is an error; the first that has a current-context, a cluster, a user or a context of a
 * name gives the whole of it. */
int kube_config_read_list(struct kube_config *c, const char *paths, const char *context,
                          struct err *err) MUST_CHECK;

/* What a user expects: `path` when not NULL, else $KUBECONFIG, else the pod's own account, else ~/.kube/config; and the
 * proxy of the environment (proxy.h), which the other three above do not look at. */
int kube_config_find(struct kube_config *c, const char *path, struct err *err) MUST_CHECK;

/* What the caller should say aloud, or NULL: whoever is between us and the server can read and change all. A
 * static string. */
const char *kube_config_warning(const struct kube_config *c);

/* Read the files again when they are older than 60 s, or at once with `force` (the server did not accept them, or we did
 * not accept the server). What cannot be read keeps its old bytes. */
void kube_config_refresh(struct kube_config *c, int64_t now_ms, bool force);

void kube_config_release(struct kube_config *c);

#define cleanup_kube_config __attribute__((cleanup(kube_config_release)))

#endif
