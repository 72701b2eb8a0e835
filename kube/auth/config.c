/* config.c - load a configuration: the pod's service account or kubeconfig files, which of them, and when their files
 * change. */
#include "kube/auth/config.h"

#include "common/fsutil.h"
#include "common/memory.h"
#include "common/sv.h"
#include "kube/auth/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, NAMESPACE_MAX_BYTES = 256 };

void kube_config_release(struct kube_config *c)
{
    free(c->server);
    free(c->socket);
    free(c->namespace_name);
    free(c->tls_server_name);
    free(c->proxy_url);
    free(c->environment_proxy);
    free(c->source);
    free(c->context);
    kube_secret_release(&c->ca);
    kube_secret_release(&c->client_cert);
    kube_secret_release(&c->client_key);
    kube_secret_release(&c->token);
    free(c->username);
    kube_secret_release(&c->password);
    arena_release(&c->arena);
    *c = (struct kube_config){0};
}

static char *server_url(const char *host, const char *port)
{
    char *url = NULL;
    bool v6 = strchr(host, ':') != NULL;

    if (asprintf(&url, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "", port) < 0)
        memory_exhausted();
    return url;
}

static int read_account(struct kube_config *c, const char *dir, struct err *err)
{
    char path[PATH_BYTES];
    cleanup_buf struct buf ns = BUF_INIT(NAMESPACE_MAX_BYTES);

    snprintf(path, sizeof(path), "%s/token", dir);
    if (kube_secret_from_file(&c->token, path, err) < 0)
        return -1;
    if (kube_secret_check_token(&c->token, err) < 0)
        return err_wrap(err, "%s", path);
    snprintf(path, sizeof(path), "%s/ca.crt", dir);
    if (kube_secret_from_file(&c->ca, path, err) < 0)
        return -1;
    snprintf(path, sizeof(path), "%s/namespace", dir);
    if (fs_read(path, &ns, err) < 0)
        return -1;
    struct sv name = sv_trim((struct sv){buf_str(&ns), ns.len});
    c->namespace_name = memory_must(name.len ? strndup(name.p, name.len) : strdup("default"));
    return 0;
}

int kube_config_in_cluster(struct kube_config *c, const char *host, const char *port, const char *dir,
                           struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {0};
    int64_t number;

    if (!host || !*host || !port || !*port)
        return err_set(err, ERR_NOT_FOUND,
                       "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
    if (strlen(host) > 253 || strpbrk(host, "/@?#[] \t\r\n"))
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_HOST: expected a host name or address");
    if (!sv_i64(sv_from(port), 1, 65535, &number))
        return err_set(err, ERR_INVALID, "KUBERNETES_SERVICE_PORT: expected 1..65535, got \"%.20s\"", port);
    fresh.server = server_url(host, port);
    if (read_account(&fresh, dir, err) < 0)
        return err_wrap(err, "service account");
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}

static int find(struct kube_config *c, const char *path, const char *context, struct err *err)
{
    const char *listed = getenv("KUBECONFIG");
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *home = getenv("HOME");
    char fallback[PATH_BYTES];

    if (path)
        return kube_config_read(c, path, context, err);
    if (listed && *listed)
        return kube_config_read_list(c, listed, context, err) < 0 ? err_wrap(err, "KUBECONFIG") : 0;
    if (host && *host && !context)
        return kube_config_in_cluster(c, host, getenv("KUBERNETES_SERVICE_PORT"), KUBE_SERVICE_ACCOUNT_DIR,
                                      err);
    snprintf(fallback, sizeof(fallback), "%s/.kube/config", home ? home : "");
    if (kube_config_read(c, fallback, context, err) < 0)
        return err_wrap(err, context ? "no --kubeconfig, no KUBECONFIG"
                                     : "no --kubeconfig, no KUBECONFIG, not in a pod");
    return 0;
}

static const char *either(const char *upper, const char *lower)
{
    const char *value = getenv(upper);

    return value && *value ? value : getenv(lower);
}

int kube_config_find(struct kube_config *c, const char *path, const char *context, struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {0};

    if (find(&fresh, path, context, err) < 0 ||
        proxy_from_environment(either("HTTPS_PROXY", "https_proxy"), either("NO_PROXY", "no_proxy"),
                               fresh.server, &fresh.environment_proxy, err) < 0)
        return -1;
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}

const char *kube_config_warning(const struct kube_config *c)
{
    return c->insecure
               ? "insecure-skip-tls-verify: the server's certificate is not checked; whoever is between can "
                 "read the credentials and change everything"
               : NULL;
}
