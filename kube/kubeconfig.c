/* kubeconfig.c - the part of kubectl's configuration format that we can honour; the rest is refused by name. */
#include "common/fsutil.h"
#include "common/json.h"
#include "kube/config.h"
#include "kube/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MAX = 1000, PATH_BYTES = 4096 };

static char *copy(const char *s)
{
    char *p = strdup(s);

    if (!p)
        abort();
    return p;
}

/* The entry of `list` (clusters, users, contexts) with this name; its member `inner` is what is wanted. */
static int find_named(const struct json_at *root, const char *list, const char *inner, const char *name,
                      const cJSON **ret, struct err *err)
{
    struct json_at at = json_member(root, list);
    const cJSON *entry;

    if (json_expect_array(&at, LIST_MAX, err) < 0)
        return -1;
    cJSON_ArrayForEach(entry, at.node)
    {
        const char *its = json_str(entry, "name");
        const cJSON *value = json_find(entry, (const char *[]){inner, NULL});
        if (!its || strcmp(its, name) != 0)
            continue;
        if (!cJSON_IsObject(value))
            return json_err(&at, err, "\"%.60s\" has no %s", name, inner);
        *ret = value;
        return 0;
    }
    return err_set(err, ERR_INVALID, "%s: expected one named \"%.60s\", got none", list, name);
}

static int refuse(const struct json_at *at, const char *const *keys, struct err *err)
{
    for (; *keys; keys++) {
        struct json_at m = json_member(at, *keys);
        if (m.node)
            return json_err(&m, err, "not supported here; use a token or a client certificate");
    }
    return 0;
}

static int secret_file(struct kube_secret *s, const char *dir, const char *file, struct err *err)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "%s%s%s", *file == '/' ? "" : dir, *file == '/' ? "" : "/", file);
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
    char path[ERR_MSG_BYTES / 2];
    json_path(&where, path, sizeof(path));
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

static int read_server(const struct json_at *at, struct kube_config *c, struct err *err)
{
    struct json_at where = json_member(at, "server");
    const char *server = NULL;

    if (json_get_str(at, "server", &server, err) < 0)
        return -1;
    if (!server || (strncmp(server, "https://", 8) != 0 && strncmp(server, "http://", 7) != 0) ||
        strpbrk(server, "@?# \t\r\n"))
        return json_err(&where, err, "expected https://host:port, got \"%.80s\"", server ? server : "");
    c->server = copy(server);
    size_t len = strlen(c->server);
    while (len && c->server[len - 1] == '/')
        c->server[--len] = '\0';
    return 0;
}

static int read_cluster(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    static const char *const unsupported[] = {"proxy-url", NULL};
    const char *name = NULL;

    if (refuse(at, unsupported, err) < 0 || read_server(at, c, err) < 0 ||
        read_secret(at, "certificate-authority", dir, &c->ca, err) < 0 ||
        json_get_str(at, "tls-server-name", &name, err) < 0)
        return -1;
    struct json_at where = json_member(at, "tls-server-name");
    if (name && (!*name || strpbrk(name, "/:@?# \t\r\n")))
        return json_err(&where, err, "expected a host name, got \"%.80s\"", name);
    c->tls_server_name = name ? copy(name) : NULL;
    return json_get_bool(at, "insecure-skip-tls-verify", &c->insecure, err);
}

static int read_token(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    const char *token = NULL;
    const char *file = NULL;
    int rc = 0;

    if (json_get_str(at, "token", &token, err) < 0 || json_get_str(at, "tokenFile", &file, err) < 0)
        return -1;
    struct json_at where = json_member(at, file ? "tokenFile" : "token");
    if (file)
        rc = secret_file(&c->token, dir, file, err);
    else if (token)
        rc = kube_secret_from_text(&c->token, token, err);
    if (rc == 0 && (file || token))
        rc = kube_secret_check_token(&c->token, err);
    char path[ERR_MSG_BYTES / 2];
    json_path(&where, path, sizeof(path));
    return rc < 0 ? err_wrap(err, "%s", path) : 0;
}

static int read_user(const struct json_at *at, const char *dir, struct kube_config *c, struct err *err)
{
    static const char *const unsupported[] = {"exec",   "auth-provider", "username",      "password", "as",
                                              "as-uid", "as-groups",     "as-user-extra", NULL};

    if (refuse(at, unsupported, err) < 0 || read_token(at, dir, c, err) < 0 ||
        read_secret(at, "client-certificate", dir, &c->client_cert, err) < 0 ||
        read_secret(at, "client-key", dir, &c->client_key, err) < 0)
        return -1;
    if (!c->client_cert.bytes.len != !c->client_key.bytes.len)
        return json_err(at, err, "client-certificate and client-key belong together, got only one");
    return 0;
}

static int read_context(const struct json_at *root, const char *context, const char *dir,
                        struct kube_config *c, struct err *err)
{
    const cJSON *node = NULL;
    const cJSON *cluster = NULL;
    const cJSON *user = NULL;
    const char *cluster_name = "";
    const char *user_name = "";
    const char *ns = "default";

    if (find_named(root, "contexts", "context", context, &node, err) < 0)
        return -1;
    struct json_at at = json_root(node, "context");
    if (json_get_str(&at, "cluster", &cluster_name, err) < 0 ||
        json_get_str(&at, "user", &user_name, err) < 0 || json_get_str(&at, "namespace", &ns, err) < 0)
        return err_wrap(err, "contexts \"%.60s\"", context);
    c->namespace_name = copy(*ns ? ns : "default");
    if (find_named(root, "clusters", "cluster", cluster_name, &cluster, err) < 0)
        return -1;
    struct json_at cluster_at = json_root(cluster, "cluster");
    if (read_cluster(&cluster_at, dir, c, err) < 0)
        return err_wrap(err, "clusters \"%.60s\"", cluster_name);
    if (!*user_name)
        return 0; /* anonymous */
    if (find_named(root, "users", "user", user_name, &user, err) < 0)
        return -1;
    struct json_at user_at = json_root(user, "user");
    return read_user(&user_at, dir, c, err) < 0 ? err_wrap(err, "users \"%.60s\"", user_name) : 0;
}

static int read_document(struct kube_config *c, const cJSON *doc, const char *context, const char *dir,
                         struct err *err)
{
    struct json_at root = json_root(doc, "kubeconfig");
    const char *kind = "Config";
    const char *current = "";

    if (json_expect_object(&root, err) < 0 || json_get_str(&root, "kind", &kind, err) < 0 ||
        json_get_str(&root, "current-context", &current, err) < 0)
        return -1;
    if (strcmp(kind, "Config") != 0)
        return err_set(err, ERR_INVALID, "kind: expected Config, got \"%.60s\"", kind);
    if (!context && !*current)
        return err_set(err, ERR_INVALID, "current-context: not set, and no context was asked for");
    return read_context(&root, context ? context : current, dir, c, err);
}

int kube_config_read(struct kube_config *c, const char *path, const char *context, struct err *err)
{
    cleanup_kube_config struct kube_config fresh = {0};
    cleanup_buf struct buf text = BUF_INIT(YAML_MAX_BYTES);
    char dir[PATH_BYTES];

    const char *slash = strrchr(path, '/');
    snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (fs_read(path, &text, err) < 0)
        return -1;
    cleanup_json cJSON *doc = yaml_parse((struct sv){buf_str(&text), text.len}, err);
    if (!doc || read_document(&fresh, doc, context, dir, err) < 0)
        return err_wrap(err, "%s", path);
    *c = fresh;
    fresh = (struct kube_config){0};
    return 0;
}
