/* userinfo.c - decode a user and a cluster of a kubeconfig; fields that are not supported are refused by name. */
#include "kube/auth/userinfo.h"

#include "common/memory.h"
#include "kube/auth/proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096, EXTENSIONS_MAX = 100, PLUGIN_CONFIG_MAX_BYTES = 64 << 10 };

static int wrap_at(const struct json_at *at, struct err *err)
{
    char path[ERR_MSG_BYTES / 2];

    json_path(at, path, sizeof(path));
    return err_wrap(err, "%s", path);
}

static void resolve(const char *dir, const char *file, char path[static PATH_BYTES])
{
    snprintf(path, PATH_BYTES, "%s%s%s", *file == '/' ? "" : dir, *file == '/' ? "" : "/", file);
}

static int secret_file(struct kube_secret *s, const char *dir, const char *file, struct err *err)
{
    char path[PATH_BYTES];

    resolve(dir, file, path);
    return kube_secret_from_file(s, path, err);
}

/* `key`-data wins over `key`, as in kubectl. */
static int read_secret(const struct json_at *at, const char *key, const char *dir, struct kube_secret *s,
                       struct err *err)
{
    char data_key[64];
    const char *data = NULL;
    const char *file = NULL;

    snprintf(data_key, sizeof(data_key), "%s-data", key);
    if (json_get_str(at, data_key, &data, err) < 0 || json_get_str(at, key, &file, err) < 0)
        return -1;
    struct json_at where = json_member(at, data && *data ? data_key : key);
    int rc = 0;
    if (data && *data)
        rc = kube_secret_from_base64(s, data, err);
    else if (file && *file)
        rc = secret_file(s, dir, file, err);
    return rc < 0 ? wrap_at(&where, err) : 0;
}

/* --- cluster ------------------------------------------------------------------------------------------- */

static int read_server(const struct json_at *at, struct kube_config *c, struct err *err)
{
    struct json_at where = json_member(at, "server");
    const char *server = NULL;

    if (json_get_str(at, "server", &server, err) < 0)
        return -1;
    if (!server || (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0) ||
        strpbrk(server, "@?# \t\r\n"))
        return json_err(&where, err, "expected https://host:port, got \"%.80s\"", server ? server : "");
    c->server = memory_strdup(server);
    size_t len = strlen(c->server);
    while (len && c->server[len - 1] == '/')
        c->server[--len] = '\0';
    return 0;
}

/* The extension of this name is the plugin's; all others are someone else's. */
static int read_plugin_config(const struct json_at *at, struct kube_config *c, struct err *err)
{
    struct json_at list = json_member(at, "extensions");
    cleanup_buf struct buf text = BUF_INIT(PLUGIN_CONFIG_MAX_BYTES);
    const cJSON *item;

    if (json_expect_array(&list, EXTENSIONS_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(item, list.node)
    {
        const char *name = json_str(item, "name");
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(item, "extension");
        if (!name || !value || strcmp(name, "client.authentication.k8s.io/exec") != 0)
            continue;
        if (json_write(value, &text, err) < 0)
            return wrap_at(&list, err);
        c->exec_config = arena_strdup(&c->arena, buf_str(&text));
        return 0;
    }
    return 0;
}

static int read_proxy(const struct json_at *at, struct kube_config *c, struct err *err)
{
    struct json_at where = json_member(at, "proxy-url");
    const char *url = "";

    if (json_get_str(at, "proxy-url", &url, err) < 0)
        return -1;
    if (!*url)
        return 0;
    if (proxy_check(url, err) < 0)
        return wrap_at(&where, err);
    c->proxy_url = memory_strdup(url);
    return 0;
}

int clusterinfo_read(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    const char *name = NULL;

    if (read_server(at, c, err) < 0 || read_secret(at, "certificate-authority", dir, &c->ca, err) < 0 ||
        json_get_str(at, "tls-server-name", &name, err) < 0 ||
        json_get_bool(at, "insecure-skip-tls-verify", &c->insecure, err) < 0 ||
        json_get_bool(at, "disable-compression", &c->disable_compression, err) < 0 ||
        read_plugin_config(at, c, err) < 0)
        return -1;
    struct json_at where = json_member(at, "tls-server-name");
    if (name && (!*name || strpbrk(name, "/:@?# \t\r\n")))
        return json_err(&where, err, "expected a host name, got \"%.80s\"", name);
    c->tls_server_name = memory_strdup(name);
    where = json_member(at, "insecure-skip-tls-verify");
    if (c->insecure && c->ca.bytes.len)
        return json_err(&where, err,
                        "true although a certificate-authority is given; take one of the two away");
    return read_proxy(at, c, err);
}

/* --- user ---------------------------------------------------------------------------------------------- */

/* A tokenFile that cannot be read yet leaves the token in its place, if there is one. */
static int read_token_file(struct kube_config *c, const char *dir, const char *file, struct err *err)
{
    struct kube_secret fresh = {0};
    char path[PATH_BYTES];

    resolve(dir, file, path);
    if (kube_secret_from_file(&fresh, path, err) < 0 || kube_secret_check_token(&fresh, err) < 0) {
        kube_secret_release(&fresh);
        if (!c->token.bytes.len)
            return -1;
        kube_secret_follow(&c->token, path);
        return 0;
    }
    kube_secret_release(&c->token);
    c->token = fresh;
    return 0;
}

static int read_token(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    struct json_at token_at = json_member(at, "token");
    struct json_at file_at = json_member(at, "tokenFile");
    const char *token = NULL;
    const char *file = NULL;

    if (json_get_str(at, "token", &token, err) < 0 || json_get_str(at, "tokenFile", &file, err) < 0)
        return -1;
    if (token &&
        (kube_secret_from_text(&c->token, token, err) < 0 || kube_secret_check_token(&c->token, err) < 0))
        return wrap_at(&token_at, err);
    if (file && read_token_file(c, dir, file, err) < 0)
        return wrap_at(&file_at, err);
    return 0;
}

static int read_password(const struct json_at *at, struct kube_config *c, struct err *err)
{
    struct json_at name_at = json_member(at, "username");
    const char *name = "";
    const char *password = "";

    if (json_get_str(at, "username", &name, err) < 0 || json_get_str(at, "password", &password, err) < 0)
        return -1;
    if (!*name && !*password)
        return 0;
    if (strchr(name, ':'))
        return json_err(&name_at, err, "expected a name without \":\", got \"%.60s\"", name);
    if (c->token.bytes.len)
        return json_err(&name_at, err, "username and password beside a token: expected one of the two");
    c->username = memory_strdup(name);
    return *password ? kube_secret_from_text(&c->password, password, err) : 0;
}

/* Built into clients until Kubernetes 1.26; what took its place for each. */
static int refuse_provider(const struct json_at *at, struct err *err)
{
    static const char *const now[][2] = {{"gcp", "gke-gcloud-auth-plugin"},
                                         {"azure", "kubelogin convert-kubeconfig"},
                                         {"oidc", "kubectl oidc-login"}};
    struct json_at provider = json_member(at, "auth-provider");
    const char *name = "";

    if (!provider.node)
        return 0;
    if (json_expect_object(&provider, err) < 0 || json_get_str(&provider, "name", &name, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_LEN(now); i++)
        if (strcmp(name, now[i][0]) == 0)
            return json_err(&provider, err, "\"%s\" is not supported; use exec with %s, or a token", name,
                            now[i][1]);
    return json_err(&provider, err,
                    "\"%.40s\" is not supported; use exec with a credential plugin, or a token", name);
}

/* What else says who we are wins, so that a plugin may stay in a file beside it; it must be right all the same. */
static int read_exec(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    struct json_at exec = json_member(at, "exec");
    struct exec_spec spec;

    if (!exec.node)
        return 0;
    if (exec_spec_decode(&exec, dir, &c->arena, &spec, err) < 0)
        return -1;
    if (!c->token.bytes.len && !c->username && !c->client_cert.bytes.len)
        c->exec = spec;
    return 0;
}

int userinfo_read(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    if (refuse_provider(at, err) < 0 || read_token(at, dir, c, err) < 0 || read_password(at, c, err) < 0 ||
        read_secret(at, "client-certificate", dir, &c->client_cert, err) < 0 ||
        read_secret(at, "client-key", dir, &c->client_key, err) < 0)
        return -1;
    if (!c->client_cert.bytes.len != !c->client_key.bytes.len)
        return json_err(at, err, "client-certificate and client-key belong together, got only one");
    if (impersonate_decode(at, &c->arena, &c->as, err) < 0)
        return -1;
    return read_exec(at, dir, c, err);
}
