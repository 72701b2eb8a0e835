/* request.c - build the path, query, headers and body of a Kubernetes API request. */
#include "kube/request.h"

#include "common/buf.h"
#include "common/cleanup.h"
#include "common/json.h"

#include <string.h>

const struct kube_resource KUBE_PODS = {"", "v1", "pods", "Pod", false};
const struct kube_resource KUBE_SERVICES = {"", "v1", "services", "Service", false};
const struct kube_resource KUBE_CONFIGMAPS = {"", "v1", "configmaps", "ConfigMap", false};
const struct kube_resource KUBE_EVENTS = {"", "v1", "events", "Event", false};
const struct kube_resource KUBE_DEPLOYMENTS = {"apps", "v1", "deployments", "Deployment", false};
const struct kube_resource KUBE_SECRETS = {"", "v1", "secrets", "Secret", false};
const struct kube_resource KUBE_NETWORK_POLICIES = {"networking.k8s.io", "v1", "networkpolicies",
                                                    "NetworkPolicy", false};
const struct kube_resource KUBE_LEASES = {"coordination.k8s.io", "v1", "leases", "Lease", false};

/* Refuse long selectors here, before a proxy on the path to the server does. */
enum { PATH_MAX_BYTES = 16 << 10 };

static const struct {
    const char *name, *method, *content_type;
} VERBS[] = {
    [KUBE_GET] = {"get", "GET", NULL},
    [KUBE_LIST] = {"list", "GET", NULL},
    [KUBE_WATCH] = {"watch", "GET", NULL},
    [KUBE_CREATE] = {"create", "POST", "application/json"},
    [KUBE_UPDATE] = {"update", "PUT", "application/json"},
    [KUBE_PATCH] = {"patch", "PATCH", "application/merge-patch+json"},
    [KUBE_APPLY] = {"apply", "PATCH", "application/apply-patch+yaml"},
    [KUBE_DELETE] = {"delete", "DELETE", "application/json"},
};

/* Without a name, DELETE would delete the whole collection. */
static bool lacks_name(const struct kube_request *r)
{
    return !r->name && r->verb != KUBE_LIST && r->verb != KUBE_WATCH && r->verb != KUBE_CREATE;
}

static void put_encoded(struct buf *out, const char *s)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    while (*s) {
        size_t n = strspn(s, plain);
        buf_append(out, s, n, NULL);
        s += n;
        if (*s)
            buf_printf(out, NULL, "%%%02X", (unsigned char)*s++);
    }
}

/* Kubernetes' own rule for path segments: no ".", "..", "/" or "%". */
static int put_segment(struct buf *out, const char *what, const char *s, struct err *err)
{
    if (!s)
        return 0;
    if (!*s || strpbrk(s, "/%") || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
        return err_set(err, ERR_INVALID, "%s \"%.60s\": expected a name without / and %%", what, s);
    buf_puts(out, "/", NULL);
    put_encoded(out, s);
    return 0;
}

static int put_path(const struct kube_request *r, struct buf *out, struct err *err)
{
    bool core = !r->resource->group[0];
    const char *const parts[][2] = {
        {"root", core ? "api" : "apis"},
        {"group", core ? NULL : r->resource->group},
        {"version", r->resource->version},
        {"scope", r->ns ? "namespaces" : NULL},
        {"namespace", r->ns},
        {"resource", r->resource->plural},
        {"name", r->name},
        {"subresource", r->subresource},
    };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (put_segment(out, parts[i][0], parts[i][1], err) < 0)
            return -1;
    return 0;
}

static const char *number(struct arena *a, int n)
{
    return n ? arena_printf(a, "%d", n) : NULL;
}

static void put_queries(const struct kube_request *r, struct arena *a, struct buf *out)
{
    const char *const queries[][2] = {
        {"watch", r->verb == KUBE_WATCH ? "true" : NULL},
        {"labelSelector", r->label_selector},
        {"fieldSelector", r->field_selector},
        {"resourceVersion", r->resource_version},
        {"limit", number(a, r->limit)},
        {"continue", r->continue_token},
        {"allowWatchBookmarks", r->bookmarks ? "true" : NULL},
        {"timeoutSeconds", number(a, r->timeout_s)},
        {"fieldValidation", r->field_validation},
        {"fieldManager", r->field_manager},
        {"force", r->verb == KUBE_APPLY ? "true" : NULL},
    };
    char sign = '?';

    for (size_t i = 0; i < ARRAY_LEN(queries); i++) {
        if (!queries[i][1])
            continue;
        buf_printf(out, NULL, "%c%s=", sign, queries[i][0]);
        put_encoded(out, queries[i][1]);
        sign = '&';
    }
}

static size_t body_limit(enum kube_verb verb)
{
    if (verb == KUBE_LIST || verb == KUBE_WATCH)
        return KUBE_TRANSPORT_BODY_MAX_BYTES;
    return verb == KUBE_GET ? KUBE_OBJECT_MAX_BYTES : KUBE_WRITE_ANSWER_BYTES;
}

int kube_request_build(const struct kube_request *r, struct arena *a, struct kube_http_request *out,
                       struct err *err)
{
    const char *verb = VERBS[r->verb].name;
    cleanup_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);

    if (lacks_name(r))
        return err_set(err, ERR_INVALID, "%s %s: no name given", verb, r->resource->plural);
    int rc = put_path(r, &path, err);
    put_queries(r, a, &path);
    if (rc < 0 || buf_check(&path, err) < 0)
        return err_wrap(err, "%s %s", verb, r->resource->plural);
    *out = (struct kube_http_request){
        .method = VERBS[r->verb].method,
        .path = arena_strndup(a, buf_str(&path), path.len),
        .content_type = r->body.len ? VERBS[r->verb].content_type : NULL,
        .body = r->body,
        .ns = r->ns,
        .later = r->later,
        .timeout_ms = r->verb == KUBE_WATCH ? 0 : KUBE_TRANSPORT_TIMEOUT_MS,
        .body_max_bytes = body_limit(r->verb),
        .own_connection = r->verb == KUBE_WATCH,
    };
    return 0;
}

struct sv kube_delete_options(struct arena *a, const char *uid, const char *resource_version, bool at_once)
{
    cleanup_json cJSON *o = cJSON_CreateObject();

    cJSON_AddStringToObject(o, "apiVersion", "v1");
    cJSON_AddStringToObject(o, "kind", "DeleteOptions");
    if (uid || resource_version) {
        cJSON *pre = cJSON_AddObjectToObject(o, "preconditions");
        if (uid)
            cJSON_AddStringToObject(pre, "uid", uid);
        if (resource_version)
            cJSON_AddStringToObject(pre, "resourceVersion", resource_version);
    }
    cJSON_AddStringToObject(o, "propagationPolicy", "Background");
    if (at_once)
        cJSON_AddNumberToObject(o, "gracePeriodSeconds", 0);
    return sv_from(json_print(o, a));
}
