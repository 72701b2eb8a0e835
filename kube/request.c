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
const struct kube_resource KUBE_LEASES = {"coordination.k8s.io", "v1", "leases", "Lease", false};

/* Long selectors are refused here rather than by some proxy on the way. */
enum { PATH_MAX_BYTES = 16 << 10 };

enum {
    P_NS = 1 << 0,
    P_NAME = 1 << 1,
    P_SUB = 1 << 2,
    P_LABELS = 1 << 3,
    P_FIELDS = 1 << 4,
    P_RV = 1 << 5,
    P_CONTINUE = 1 << 6,
    P_MANAGER = 1 << 7,
    P_LIMIT = 1 << 8,
    P_TIMEOUT = 1 << 9,
    P_BOOKMARKS = 1 << 10,
    P_BODY = 1 << 11,
    P_VALIDATION = 1 << 12,
};

static const char *const param_names[] = {
    "namespace",       "name",     "subresource",     "label selector", "field selector",
    "resourceVersion", "continue", "field manager",   "limit",          "timeout",
    "bookmarks",       "body",     "field validation"};

struct verb_row {
    const char *name;
    const char *method;
    const char *content_type;
    unsigned needs;
    unsigned may;
};

#define P_SELECT (P_NS | P_LABELS | P_FIELDS | P_RV)
#define P_WRITE (P_NS | P_SUB | P_MANAGER)

static const struct verb_row verbs[] = {
    [KUBE_GET] = {"get", "GET", NULL, P_NAME, P_NS | P_SUB | P_RV},
    [KUBE_LIST] = {"list", "GET", NULL, 0, P_SELECT | P_CONTINUE | P_LIMIT},
    [KUBE_WATCH] = {"watch", "GET", NULL, 0, P_SELECT | P_TIMEOUT | P_BOOKMARKS},
    [KUBE_CREATE] = {"create", "POST", "application/json", P_BODY, P_WRITE | P_NAME | P_VALIDATION},
    [KUBE_UPDATE] = {"update", "PUT", "application/json", P_NAME | P_BODY, P_WRITE},
    [KUBE_PATCH] = {"patch", "PATCH", "application/merge-patch+json", P_NAME | P_BODY, P_WRITE},
    [KUBE_DELETE] = {"delete", "DELETE", "application/json", P_NAME, P_NS | P_BODY},
};

static unsigned given(const struct kube_request *r)
{
    const bool set[] = {r->ns,
                        r->name,
                        r->subresource,
                        r->label_selector,
                        r->field_selector,
                        r->resource_version,
                        r->continue_token,
                        r->field_manager,
                        r->limit,
                        r->timeout_s,
                        r->bookmarks,
                        r->body.len > 0,
                        r->field_validation};
    unsigned bits = 0;

    for (unsigned i = 0; i < ARRAY_LEN(set); i++)
        bits |= set[i] ? 1U << i : 0;
    return bits;
}

static const char *first_param(unsigned bits)
{
    return param_names[__builtin_ctz(bits)];
}

static int check_params(const struct kube_request *r, const struct verb_row *v, struct err *err)
{
    unsigned set = given(r);
    unsigned needs = v->needs;

    /* A single object of a namespaced resource lives in a namespace; lists may span them all. */
    if (!r->resource->cluster_scoped && r->verb != KUBE_LIST && r->verb != KUBE_WATCH)
        needs |= P_NS;
    if (r->subresource && r->verb == KUBE_CREATE)
        needs |= P_NAME;
    if (needs & ~set)
        return err_set(err, ERR_INVALID, "%s %s: no %s given", v->name, r->resource->plural,
                       first_param(needs & ~set));
    unsigned extra = set & ~(needs | v->may);
    if (r->resource->cluster_scoped)
        extra |= set & P_NS;
    if (r->verb == KUBE_CREATE && !r->subresource)
        extra |= set & P_NAME;
    if (extra)
        return err_set(err, ERR_INVALID, "%s %s: %s does not belong to it", v->name, r->resource->plural,
                       first_param(extra));
    return 0;
}

static int put_encoded(struct buf *out, const char *s, struct err *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    while (*s) {
        size_t n = strspn(s, plain);
        if (buf_append(out, s, n, err) < 0)
            return -1;
        s += n;
        if (*s && buf_printf(out, err, "%%%02X", (unsigned char)*s++) < 0)
            return -1;
    }
    return 0;
}

/* Kubernetes' own rule for path segments: no ".", "..", "/" or "%". */
static int put_segment(struct buf *out, const char *what, const char *s, struct err *err)
{
    if (!s)
        return 0;
    if (!*s || strpbrk(s, "/%") || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
        return err_set(err, ERR_INVALID, "%s \"%.60s\": expected a name without / and %%", what, s);
    return buf_append(out, "/", 1, err) < 0 ? -1 : put_encoded(out, s, err);
}

static int put_query(struct buf *out, const char *key, const char *value, struct err *err)
{
    if (!value)
        return 0;
    if (buf_printf(out, err, "%c%s=", strchr(buf_str(out), '?') ? '&' : '?', key) < 0)
        return -1;
    return put_encoded(out, value, err);
}

static int put_query_int(struct buf *out, const char *key, int value, struct err *err)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    return value ? put_query(out, key, text, err) : 0;
}

static int put_path(const struct kube_request *r, struct buf *out, struct err *err)
{
    bool core = !r->resource->group[0];

    if (buf_puts(out, core ? "/api" : "/apis", err) < 0 ||
        put_segment(out, "group", core ? NULL : r->resource->group, err) < 0 ||
        put_segment(out, "version", r->resource->version, err) < 0)
        return -1;
    if (r->ns && (buf_puts(out, "/namespaces", err) < 0 || put_segment(out, "namespace", r->ns, err) < 0))
        return -1;
    if (put_segment(out, "resource", r->resource->plural, err) < 0 ||
        put_segment(out, "name", r->name, err) < 0)
        return -1;
    return put_segment(out, "subresource", r->subresource, err);
}

static int put_queries(const struct kube_request *r, struct buf *out, struct err *err)
{
    /* An exact version would ask the server for history; "at least this fresh" is what a list wants. */
    bool fresh = r->verb == KUBE_LIST && r->resource_version;

    if (put_query(out, "watch", r->verb == KUBE_WATCH ? "true" : NULL, err) < 0 ||
        put_query(out, "labelSelector", r->label_selector, err) < 0 ||
        put_query(out, "fieldSelector", r->field_selector, err) < 0 ||
        put_query(out, "resourceVersion", r->resource_version, err) < 0 ||
        put_query(out, "resourceVersionMatch", fresh ? "NotOlderThan" : NULL, err) < 0 ||
        put_query_int(out, "limit", r->limit, err) < 0 ||
        put_query(out, "continue", r->continue_token, err) < 0 ||
        put_query(out, "allowWatchBookmarks", r->bookmarks ? "true" : NULL, err) < 0 ||
        put_query_int(out, "timeoutSeconds", r->timeout_s, err) < 0 ||
        put_query(out, "fieldValidation", r->field_validation, err) < 0)
        return -1;
    return put_query(out, "fieldManager", r->field_manager, err);
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
    const struct verb_row *v = &verbs[r->verb];
    cleanup_buf struct buf path = BUF_INIT(PATH_MAX_BYTES);

    if (r->limit < 0 || r->timeout_s < 0)
        return err_set(err, ERR_INVALID, "%s %s: limit and timeout cannot be negative", v->name,
                       r->resource->plural);
    if (check_params(r, v, err) < 0)
        return -1;
    if (put_path(r, &path, err) < 0 || put_queries(r, &path, err) < 0)
        return err_wrap(err, "%s %s", v->name, r->resource->plural);
    *out = (struct kube_http_request){
        .method = v->method,
        .path = arena_strndup(a, buf_str(&path), path.len),
        .content_type = r->body.len ? v->content_type : NULL,
        .body = r->body,
        .ns = r->ns,
        .later = r->later,
        .timeout_ms = r->verb == KUBE_WATCH ? 0 : KUBE_TRANSPORT_TIMEOUT_MS,
        .body_max_bytes = body_limit(r->verb),
        .own_connection = r->verb == KUBE_WATCH,
    };
    return 0;
}

struct sv kube_delete_options(struct arena *a, const char *uid, const char *resource_version,
                              const char *propagation, int64_t grace_s)
{
    cJSON *o = cJSON_CreateObject();
    struct sv body;

    cJSON_AddStringToObject(o, "apiVersion", "v1");
    cJSON_AddStringToObject(o, "kind", "DeleteOptions");
    if (uid || resource_version) {
        cJSON *pre = cJSON_AddObjectToObject(o, "preconditions");
        if (uid)
            cJSON_AddStringToObject(pre, "uid", uid);
        if (resource_version)
            cJSON_AddStringToObject(pre, "resourceVersion", resource_version);
    }
    if (propagation)
        cJSON_AddStringToObject(o, "propagationPolicy", propagation);
    if (grace_s >= 0)
        cJSON_AddNumberToObject(o, "gracePeriodSeconds", (double)grace_s);
    body = sv_from(json_print(o, a));
    cJSON_Delete(o);
    return body;
}
