/* test_validate.c - what is believed of an event, an object and a list's head, and what is said of the rest. */
#include "kube/validate.h"

#include "common/cleanup.h"
#include "common/json.h"
#include "test.h"

#include <string.h>

#define META(rv) "\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"" rv "\"}"
#define POD(rv) "{\"kind\":\"Pod\"," META(rv) "}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"

static cJSON *parse(const char *text)
{
    struct err err;
    cJSON *json = json_parse(text, strlen(text), &err);

    if (!json)
        fail_msg("%s: %s", text, err.msg);
    return json;
}

static void test_events(void **ctx)
{
    static const struct {
        const char *text, *version;
        enum watch_event_kind kind;
    } rows[] = {
        {EVENT("ADDED", POD("5")), "5", WATCH_UPSERT},
        {EVENT("MODIFIED", "{" META("6") "}"), "6", WATCH_UPSERT},
        {EVENT("DELETED", POD("7")), "7", WATCH_REMOVED},
        {EVENT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"7\"}}"), "7", WATCH_BOOKMARK},
        {EVENT("ERROR", "{\"kind\":\"Status\",\"code\":410}"), NULL, WATCH_ERROR},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_json cJSON *json = parse(rows[i].text);
        struct watch_event e;
        struct err err;
        if (validate_event(&KUBE_PODS, json, &e, &err) < 0)
            fail_msg("row %zu: %s", i, err.msg);
        assert_ptr_equal(e.object, cJSON_GetObjectItem(json, "object"));
        assert_int_equal(e.kind, rows[i].kind);
        if (rows[i].version)
            assert_string_equal(e.version, rows[i].version);
        else
            assert_null(e.version);
    }
}

static void test_events_refused(void **ctx)
{
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[]", "expected \"type\" and \"object\""},
        {"7", "expected \"type\" and \"object\""},
        {"{\"type\":\"ADDED\"}", "expected \"type\" and \"object\""},
        {"{\"type\":1,\"object\":{}}", "expected \"type\" and \"object\""},
        {EVENT("ERROR", "[]"), "expected \"type\" and \"object\""},
        {EVENT("RENAMED", POD("5")), "unknown event type \"RENAMED\""},
        {EVENT("added", POD("5")), "unknown event type \"added\""},
        {EVENT("ADDED", "{\"kind\":\"Service\"," META("5") "}"), "expected a Pod, got a Service"},
        {EVENT("ADDED", "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"5\"}}"),
         "a Pod without metadata.name"},
        {EVENT("DELETED", "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"5\"}}"),
         "a Pod without metadata.name, uid"},
        {EVENT("MODIFIED", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}"), "or resourceVersion"},
        {EVENT("MODIFIED", "{\"metadata\":7}"), "a Pod without"},
        {EVENT("BOOKMARK", "{\"metadata\":{}}"), "a bookmark without metadata.resourceVersion"},
        {EVENT("BOOKMARK", "{}"), "a bookmark without metadata.resourceVersion"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_json cJSON *json = parse(rows[i].text);
        struct watch_event e;
        struct err err;
        if (validate_event(&KUBE_PODS, json, &e, &err) == 0)
            fail_msg("row %zu was accepted, expected \"%s\"", i, rows[i].says);
        assert_int_equal(err.kind, ERR_INVALID);
        if (!strstr(err.msg, rows[i].says))
            fail_msg("row %zu: \"%s\" does not say \"%s\"", i, err.msg, rows[i].says);
    }
}

static void test_lists(void **ctx)
{
    static const struct {
        const char *text, *version, *more; /* version NULL: refused */
    } rows[] = {
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\"}}", "5", NULL},
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"\"}}", "5", NULL},
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"}}", "5", "t"},
        {"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"\"}}", NULL, NULL},
        {"{\"kind\":\"PodList\",\"metadata\":{}}", NULL, NULL},
        {"{\"kind\":\"PodListX\",\"metadata\":{\"resourceVersion\":\"5\"}}", NULL, NULL},
        {"{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"5\"}}", NULL, NULL},
        {"{\"metadata\":{\"resourceVersion\":\"5\"}}", NULL, NULL},
        {"[]", NULL, NULL},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_json cJSON *json = parse(rows[i].text);
        struct list_meta head;
        struct err err;
        int rc = validate_list(&KUBE_PODS, json, &head, &err);
        if ((rc == 0) != (rows[i].version != NULL))
            fail_msg("row %zu: %d", i, rc);
        if (rc < 0) {
            assert_int_equal(err.kind, ERR_INVALID);
            assert_non_null(
                strstr(err.msg, "list: expected a PodList with metadata.resourceVersion, got \""));
            continue;
        }
        assert_string_equal(head.version, rows[i].version);
        if (rows[i].more)
            assert_string_equal(head.more, rows[i].more);
        else
            assert_null(head.more);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_events_refused),
        cmocka_unit_test(test_lists),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
