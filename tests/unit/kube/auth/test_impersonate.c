/* test_impersonate.c - four fields, their headers, and what must not become one. */
#include "kube/auth/impersonate.h"

#include "test.h"

#include <string.h>

static int decode(const char *json, struct arena *a, struct impersonate *ret, struct err *err)
{
    cleanup_json cJSON *tree = json_parse(json, strlen(json), err);

    assert_non_null(tree);
    struct json_at at = json_root(tree, "user");
    return impersonate_decode(&at, a, ret, err);
}

static void test_all_four(void **ctx)
{
    static const char *const want[] = {
        "Impersonate-User: jane@example.com",
        "Impersonate-Uid: 06e3",
        "Impersonate-Group: dev",
        "Impersonate-Group: ops team",
        "Impersonate-Extra-scopes: view",
        "Impersonate-Extra-scopes: edit",
        "Impersonate-Extra-acme.com%2Fa%25b%C3%A9: x",
    };
    cleanup_arena struct arena a = {0};
    struct impersonate got = {0};
    struct err err;

    (void)ctx;
    assert_int_equal(decode("{\"as\":\"jane@example.com\",\"as-uid\":\"06e3\",\"as-groups\":[\"dev\",\"ops "
                            "team\"],\"as-user-extra\":{\"scopes\":[\"view\",\"edit\"],\"acme.com/"
                            "a%b\\u00e9\":[\"x\"],\"none\":[]}}",
                            &a, &got, &err),
                     0);
    assert_int_equal(got.n, ARRAY_LEN(want));
    for (size_t i = 0; i < got.n; i++)
        assert_string_equal(got.lines[i], want[i]);
}

static void test_nobody(void **ctx)
{
    cleanup_arena struct arena a = {0};
    struct impersonate got = {0};
    struct err err;

    (void)ctx;
    assert_int_equal(decode("{\"token\":\"x\"}", &a, &got, &err), 0);
    assert_int_equal(got.n, 0);
    assert_int_equal(decode("{\"as\":\"\",\"as-groups\":null,\"as-user-extra\":{}}", &a, &got, &err), 0);
    assert_int_equal(got.n, 0);
}

static void test_refused(void **ctx)
{
    static const char *const rows[][2] = {
        {"{\"as\":7}", "user.as: expected a string"},
        {"{\"as\":\"a\\r\\nX-Evil: 1\"}", "user.as: expected no control character"},
        {"{\"as\":\"a\\u007f\"}", "user.as: expected no control character"},
        {"{\"as-uid\":\"1\"}", "user.as: not set"},
        {"{\"as-groups\":[\"g\"]}", "user.as: not set"},
        {"{\"as-user-extra\":{\"k\":[\"v\"]}}", "user.as: not set"},
        {"{\"as\":\"a\",\"as-groups\":\"g\"}", "user.as-groups: expected a list"},
        {"{\"as\":\"a\",\"as-groups\":[\"g\",1]}", "user.as-groups[1]: expected a string"},
        {"{\"as\":\"a\",\"as-groups\":[\"\"]}", "user.as-groups[0]: expected a name"},
        {"{\"as\":\"a\",\"as-user-extra\":[]}", "user.as-user-extra: expected an object"},
        {"{\"as\":\"a\",\"as-user-extra\":{\"\":[\"v\"]}}", "expected a key"},
        {"{\"as\":\"a\",\"as-user-extra\":{\"k\":\"v\"}}", "user.as-user-extra.k: expected a list"},
        {"{\"as\":\"a\",\"as-user-extra\":{\"k\":[\"a\\nb\"]}}", "user.as-user-extra.k[0]"},
    };

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_arena struct arena a = {0};
        struct impersonate got = {0};
        struct err err;
        if (decode(rows[i][0], &a, &got, &err) == 0)
            fail_msg("row %zu was accepted", i);
        if (!strstr(err.msg, rows[i][1]))
            fail_msg("row %zu: \"%s\" lacks \"%s\"", i, err.msg, rows[i][1]);
        assert_int_equal(got.n, 0);
    }
}

static void test_bounds(void **ctx)
{
    cleanup_arena struct arena a = {0};
    cleanup_json cJSON *user = cJSON_CreateObject();
    struct impersonate got = {0};
    struct err err;

    (void)ctx;
    cJSON_AddStringToObject(user, "as", "a");
    cJSON *groups = cJSON_AddArrayToObject(user, "as-groups");
    for (int i = 0; i < IMPERSONATE_MAX_LINES - 1; i++)
        cJSON_AddItemToArray(groups, cJSON_CreateString("g"));
    struct json_at at = json_root(user, "user");
    assert_int_equal(impersonate_decode(&at, &a, &got, &err), 0);
    assert_int_equal(got.n, IMPERSONATE_MAX_LINES);
    cJSON_AddItemToArray(groups, cJSON_CreateString("g"));
    assert_int_equal(impersonate_decode(&at, &a, &got, &err), -1);
    assert_non_null(strstr(err.msg, "more than 1000 headers"));
    static char big[IMPERSONATE_MAX_BYTES];
    memset(big, 'x', sizeof(big) - 1);
    cJSON_ReplaceItemInObject(user, "as-groups", cJSON_CreateArray());
    cJSON_ReplaceItemInObject(user, "as", cJSON_CreateString(big));
    assert_int_equal(impersonate_decode(&at, &a, &got, &err), -1);
    assert_non_null(strstr(err.msg, "32768 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_four),
        cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
