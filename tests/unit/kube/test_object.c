/* test_object.c - finalizers put and taken away, owner references, deletion. */
#include "kube/object.h"

#include "common/json.h"
#include "test.h"

#include <stdlib.h>

#define VERSIONED(list) "{\"metadata\":{\"resourceVersion\":\"7\",\"finalizers\":" list "}}"

static void test_finalizer_patches(void **state)
{
    static const struct {
        const char *object;
        bool present;
        const char *want; /* NULL: nothing to change */
    } rows[] = {
        {VERSIONED("[]"), true, "{\"metadata\":{\"finalizers\":[\"f\"],\"resourceVersion\":\"7\"}}"},
        {VERSIONED("[\"a\"]"), true,
         "{\"metadata\":{\"finalizers\":[\"a\",\"f\"],\"resourceVersion\":\"7\"}}"},
        {VERSIONED("[\"f\"]"), true, NULL},
        {VERSIONED("[\"a\",\"f\",\"b\"]"), false,
         "{\"metadata\":{\"finalizers\":[\"a\",\"b\"],\"resourceVersion\":\"7\"}}"},
        {VERSIONED("[\"f\"]"), false, "{\"metadata\":{\"finalizers\":[],\"resourceVersion\":\"7\"}}"},
        {VERSIONED("[\"a\"]"), false, NULL},
        {VERSIONED("null"), false, NULL},
        {VERSIONED("\"f\""), true, "{\"metadata\":{\"finalizers\":[\"f\"],\"resourceVersion\":\"7\"}}"},
        {VERSIONED("[7,null,{\"f\":1}]"), false, NULL},
        {"{\"metadata\":{}}", true, "{\"metadata\":{\"finalizers\":[\"f\"]}}"},
        {"{}", true, "{\"metadata\":{\"finalizers\":[\"f\"]}}"},
        {"[]", false, NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_json cJSON *object = cJSON_Parse(rows[i].object);
        cleanup_free char *got = kube_object_finalizer_patch(object, "f", rows[i].present);
        if (!rows[i].want || !got)
            assert_true(!rows[i].want && !got);
        else
            assert_string_equal(got, rows[i].want);
    }
    assert_null(kube_object_finalizer_patch(NULL, "f", false)); /* an object that is gone has none */
}

static void test_owner_reference(void **state)
{
    static const struct kube_resource ours = {"g.example", "v1", "things", "Thing", false};
    cleanup_json cJSON *owner = cJSON_Parse("{\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}");

    (void)state;
    cleanup_json cJSON *ref = kube_object_owner_reference(owner, &ours);
    cleanup_free char *got = cJSON_PrintUnformatted(ref);
    assert_string_equal(got,
                        "{\"apiVersion\":\"g.example/v1\",\"kind\":\"Thing\",\"name\":\"n\",\"uid\":\"u\","
                        "\"controller\":true,\"blockOwnerDeletion\":true}");
    cleanup_json cJSON *core = kube_object_owner_reference(owner, &KUBE_PODS);
    assert_string_equal(json_str(core, "apiVersion"), "v1");
}

static void test_deletion(void **state)
{
    cleanup_json cJSON *no = cJSON_Parse("{\"metadata\":{}}");
    cleanup_json cJSON *yes = cJSON_Parse("{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}");

    (void)state;
    assert_false(kube_object_is_deleting(no));
    assert_true(kube_object_is_deleting(yes));
    assert_false(kube_object_is_deleting(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_finalizer_patches),
                                       cmocka_unit_test(test_owner_reference),
                                       cmocka_unit_test(test_deletion)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
