/* test_request.c - tables of requests: what they become, and which are refused. */
#include "kube/request.h"

#include "common/cleanup.h"
#include "test.h"

#include <string.h>

static const struct kube_resource jobs = {"batch.example.com", "v1beta1", "trainjobs", "TrainJob", false};
static const struct kube_resource nodes = {"", "v1", "nodes", "Node", true};

struct row {
    struct kube_request r;
    const char *method, *path, *type;
};

#define BODY                                                                                                 \
    {                                                                                                        \
        "{}", 2                                                                                              \
    }
#define R(...)                                                                                               \
    {                                                                                                        \
        __VA_ARGS__                                                                                          \
    }

static const struct row good[] = {
    {R(.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "a", .name = "b"), "GET",
     "/api/v1/namespaces/a/pods/b", NULL},
    {R(.verb = KUBE_GET, .resource = &jobs, .ns = "a", .name = "b", .subresource = "status"), "GET",
     "/apis/batch.example.com/v1beta1/namespaces/a/trainjobs/b/status", NULL},
    {R(.verb = KUBE_GET, .resource = &nodes, .name = "n"), "GET", "/api/v1/nodes/n", NULL},
    {R(.verb = KUBE_LIST, .resource = &KUBE_PODS, .limit = 500), "GET", "/api/v1/pods?limit=500", NULL},
    {R(.verb = KUBE_LIST, .resource = &KUBE_PODS, .ns = "a", .label_selector = "app=x,tier in (a, b)",
       .field_selector = "metadata.name=\xc3\xa4", .limit = 5, .continue_token = "t/+="),
     "GET",
     "/api/v1/namespaces/a/"
     "pods?labelSelector=app%3Dx%2Ctier%20in%20%28a%2C%20b%29&fieldSelector=metadata.name%3D%C3%A4"
     "&limit=5&continue=t%2F%2B%3D",
     NULL},
    {R(.verb = KUBE_LIST, .resource = &nodes), "GET", "/api/v1/nodes", NULL},
    {R(.verb = KUBE_WATCH, .resource = &KUBE_PODS, .resource_version = "12", .bookmarks = true,
       .timeout_s = 300),
     "GET", "/api/v1/pods?watch=true&resourceVersion=12&allowWatchBookmarks=true&timeoutSeconds=300", NULL},
    {R(.verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = "a", .body = BODY), "POST",
     "/api/v1/namespaces/a/pods", "application/json"},
    {R(.verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = "a", .field_validation = "Strict", .body = BODY),
     "POST", "/api/v1/namespaces/a/pods?fieldValidation=Strict", "application/json"},
    {R(.verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = "a", .name = "p", .subresource = "eviction",
       .body = BODY),
     "POST", "/api/v1/namespaces/a/pods/p/eviction", "application/json"},
    {R(.verb = KUBE_UPDATE, .resource = &KUBE_LEASES, .ns = "a", .name = "l", .body = BODY), "PUT",
     "/apis/coordination.k8s.io/v1/namespaces/a/leases/l", "application/json"},
    {R(.verb = KUBE_PATCH, .resource = &jobs, .ns = "a", .name = "j", .subresource = "status",
       .field_manager = "me", .body = BODY),
     "PATCH", "/apis/batch.example.com/v1beta1/namespaces/a/trainjobs/j/status?fieldManager=me",
     "application/merge-patch+json"},
    {R(.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = "a", .name = "b"), "DELETE",
     "/api/v1/namespaces/a/pods/b", NULL},
    {R(.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = "a", .name = "b", .body = BODY), "DELETE",
     "/api/v1/namespaces/a/pods/b", "application/json"},
};

static void test_good(void **ctx)
{
    cleanup_arena struct arena a = {0};
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct kube_http_request out;
        if (kube_request_build(&good[i].r, &a, &out, &err) < 0)
            fail_msg("row %zu: %s", i, err.msg);
        assert_string_equal(out.method, good[i].method);
        assert_string_equal(out.path, good[i].path);
        if (good[i].type)
            assert_string_equal(out.content_type, good[i].type);
        else
            assert_null(out.content_type);
        assert_int_equal(out.own_connection, good[i].r.verb == KUBE_WATCH);
        assert_int_equal(out.timeout_ms, good[i].r.verb == KUBE_WATCH ? 0 : KUBE_TRANSPORT_TIMEOUT_MS);
    }
}

static const struct {
    struct kube_request r;
    const char *names; /* what the message must name */
} bad[] = {
    {R(.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "a"), "get pods: no name given"},
    {R(.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = "a"), "delete pods: no name given"},
    {R(.verb = KUBE_PATCH, .resource = &nodes, .body = BODY), "patch nodes: no name given"},
    {R(.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "..", .name = "b"), "namespace \"..\""},
    {R(.verb = KUBE_LIST, .resource = &KUBE_PODS, .ns = ""), "namespace \"\""},
    {R(.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "a", .name = "b/../c"), "name \"b/../c\""},
    {R(.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "a", .name = "%2e"), "name"},
    {R(.verb = KUBE_DELETE, .resource = &KUBE_PODS, .ns = "a", .name = ""), "name \"\""},
};

static void test_bad(void **ctx)
{
    cleanup_arena struct arena a = {0};
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct kube_http_request out = {.method = "untouched"};
        if (kube_request_build(&bad[i].r, &a, &out, &err) == 0)
            fail_msg("row %zu (%s) was accepted: %s", i, bad[i].names, out.path);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, bad[i].names))
            fail_msg("row %zu: \"%s\" does not name \"%s\"", i, err.msg, bad[i].names);
        assert_string_equal(out.method, "untouched");
    }
}

static void test_long_selector_is_refused(void **ctx)
{
    cleanup_arena struct arena a = {0};
    static char selector[20000];
    struct kube_http_request out;
    struct err err;
    struct kube_request r = {.verb = KUBE_LIST, .resource = &KUBE_PODS, .label_selector = selector};

    (void)ctx;
    memset(selector, 'x', sizeof(selector) - 1);
    assert_int_equal(kube_request_build(&r, &a, &out, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
}

static void test_delete_options(void **ctx)
{
    cleanup_arena struct arena a = {0};

    (void)ctx;
    assert_string_equal(
        kube_delete_options(&a, NULL, NULL, false).p,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"propagationPolicy\":\"Background\"}");
    assert_string_equal(
        kube_delete_options(&a, "u-1", "77", true).p,
        "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u-1\","
        "\"resourceVersion\":\"77\"},\"propagationPolicy\":\"Background\",\"gracePeriodSeconds\":0}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_long_selector_is_refused),
        cmocka_unit_test(test_delete_options),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
