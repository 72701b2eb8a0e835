/* execcred.c - write the environment of a credential plugin (ExecCredential) and parse what it prints. */
#include "kube/auth/execcred.h"

#include "common/clock.h"
#include "kube/auth/base64.h"

#include <string.h>

static void wipe(cJSON *node)
{
    for (; node; node = node->next) {
        if (cJSON_IsString(node) && node->valuestring)
            explicit_bzero(node->valuestring, strlen(node->valuestring));
        wipe(node->child);
    }
}

void exec_tree_free(cJSON *tree)
{
    wipe(tree);
    cJSON_Delete(tree);
}

static int add_config(cJSON *to, const char *config, struct err *err)
{
    cJSON *tree = config ? json_parse(config, strlen(config), err) : NULL;

    if (config && !tree)
        return -1;
    if (tree)
        cJSON_AddItemToObject(to, "config", tree);
    return 0;
}

static int add_cluster(cJSON *spec, const struct exec_cluster *c, struct err *err)
{
    cJSON *to = cJSON_AddObjectToObject(spec, "cluster");
    cleanup_buf struct buf ca = BUF_INIT(EXEC_INFO_MAX_BYTES);

    cJSON_AddStringToObject(to, "server", c->server);
    if (c->tls_server_name)
        cJSON_AddStringToObject(to, "tls-server-name", c->tls_server_name);
    if (c->insecure)
        cJSON_AddBoolToObject(to, "insecure-skip-tls-verify", true);
    if (base64_encode(c->ca.p, c->ca.len, &ca, err) < 0)
        return err_wrap(err, "certificate-authority");
    if (ca.len)
        cJSON_AddStringToObject(to, "certificate-authority-data", buf_str(&ca));
    if (c->proxy_url)
        cJSON_AddStringToObject(to, "proxy-url", c->proxy_url);
    if (c->disable_compression)
        cJSON_AddBoolToObject(to, "disable-compression", true);
    return add_config(to, c->config, err);
}

int exec_info(const char *api_version, const struct exec_cluster *cluster, struct buf *out, struct err *err)
{
    cleanup_json cJSON *doc = cJSON_CreateObject();

    cJSON_AddStringToObject(doc, "kind", "ExecCredential");
    cJSON_AddStringToObject(doc, "apiVersion", api_version);
    cJSON *spec = cJSON_AddObjectToObject(doc, "spec");
    if (cluster && add_cluster(spec, cluster, err) < 0)
        return err_wrap(err, "KUBERNETES_EXEC_INFO");
    cJSON_AddBoolToObject(spec, "interactive", false);
    return json_write(doc, out, err) < 0 ? err_wrap(err, "KUBERNETES_EXEC_INFO") : 0;
}

static int check_type(const struct json_at *doc, const char *api_version, struct err *err)
{
    const char *kind = "";
    const char *version = "";

    if (json_get_str(doc, "kind", &kind, err) < 0 || json_get_str(doc, "apiVersion", &version, err) < 0)
        return -1;
    if (strcmp(kind, "ExecCredential") != 0)
        return json_err(doc, err, "kind: expected ExecCredential, got \"%.40s\"", kind);
    if (strcmp(version, api_version) != 0)
        return json_err(doc, err, "apiVersion: expected %s as in the kubeconfig, got \"%.60s\"", api_version,
                        version);
    return 0;
}

/* A string that is there and not empty. Its value never gets into a message, so json_get_str is not used. */
static int secret_member(const struct json_at *status, const char *key, const char **ret, struct err *err)
{
    struct json_at at = json_member(status, key);

    if (!at.node)
        return 0;
    if (!cJSON_IsString(at.node))
        return json_err(&at, err, "expected a string");
    *ret = at.node->valuestring[0] ? at.node->valuestring : NULL;
    return 0;
}

static int check_token(const struct json_at *status, const char *token, struct err *err)
{
    struct json_at at = json_member(status, "token");

    for (const char *p = token; p && *p; p++)
        if (*p <= ' ' || *p > '~')
            return json_err(&at, err, "byte %zu is not a printable character", (size_t)(p - token));
    return 0;
}

static int check_pem(const struct json_at *status, const char *key, const char *pem, struct err *err)
{
    struct json_at at = json_member(status, key);

    return !pem || strstr(pem, "-----BEGIN ") ? 0 : json_err(&at, err, "expected PEM");
}

static int read_expiry(const struct json_at *status, int64_t *ret, struct err *err)
{
    struct json_at at = json_member(status, "expirationTimestamp");
    const char *text = NULL;

    if (json_get_str(status, "expirationTimestamp", &text, err) < 0)
        return -1;
    if (text && !clock_parse_rfc3339(text, ret))
        return json_err(&at, err, "expected a time such as 2026-01-02T03:04:05Z");
    return 0;
}

static int read_status(const struct json_at *doc, struct exec_credential *c, struct err *err)
{
    struct json_at status = json_member(doc, "status");

    if (!status.node)
        return json_err(&status, err, "not set: the plugin gave no credential");
    if (!cJSON_IsObject(status.node))
        return json_err(&status, err, "expected an object");
    if (secret_member(&status, "token", &c->token, err) < 0 ||
        secret_member(&status, "clientCertificateData", &c->cert, err) < 0 ||
        secret_member(&status, "clientKeyData", &c->key, err) < 0 ||
        read_expiry(&status, &c->expires_ms, err) < 0)
        return -1;
    if (!c->token && !c->cert && !c->key)
        return json_err(&status, err,
                        "expected token, or clientCertificateData and clientKeyData; got neither");
    if (!c->cert != !c->key)
        return json_err(&status, err,
                        "clientCertificateData and clientKeyData belong together, got only one");
    if (check_token(&status, c->token, err) < 0 ||
        check_pem(&status, "clientCertificateData", c->cert, err) < 0)
        return -1;
    return check_pem(&status, "clientKeyData", c->key, err);
}

int exec_credential_decode(struct sv text, const char *api_version, cJSON **ret_tree,
                           struct exec_credential *ret, struct err *err)
{
    struct exec_credential c = {.expires_ms = INT64_MAX};
    struct sv json = sv_trim(text);
    cJSON *tree = json_parse(json.p, json.len, err);

    *ret_tree = NULL;
    if (!tree)
        return err_wrap(err, "ExecCredential");
    struct json_at doc = json_root(tree, "ExecCredential");
    if (!cJSON_IsObject(tree)) {
        exec_tree_free(tree);
        return json_err(&doc, err, "expected an object");
    }
    if (check_type(&doc, api_version, err) < 0 || read_status(&doc, &c, err) < 0) {
        exec_tree_free(tree);
        return -1;
    }
    *ret_tree = tree;
    *ret = c;
    return 0;
}
