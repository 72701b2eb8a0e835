/* test_json.c - paths in errors, exact integers, refusal of depth and trailing text. */
#include "common/json.h"
#include "test.h"

#include <string.h>

static cJSON *parse(const char *text)
{
    struct err err;
    cJSON *j = json_parse(text, strlen(text), &err);

    if (!j)
        fail_msg("%s", err.msg);
    return j;
}

static void test_error_names_the_path(void **state)
{
    cleanup_json cJSON *j = parse("{\"spec\":{\"list\":[{\"n\":1},{\"n\":\"a\"}]}}");
    struct err err;
    int32_t n = 3;

    (void)state;
    struct json_at root = json_root(j, "job");
    struct json_at spec = json_member(&root, "spec");
    struct json_at list = json_member(&spec, "list");
    struct json_at item = json_item(&list, cJSON_GetArrayItem(list.node, 1), 1);
    assert_int_equal(json_get_i32(&item, "n", 0, 9, &n, &err), -1);
    assert_string_equal(err.msg, "job.spec.list[1].n: expected an integer 0..9, got \"a\"");
    assert_int_equal(n, 3);
}

static void test_absent_keeps_the_default(void **state)
{
    cleanup_json cJSON *j = parse("{\"a\":null}");
    struct err err;
    bool b = true;
    const char *s = "dflt";

    (void)state;
    struct json_at root = json_root(j, "x");
    assert_int_equal(json_get_bool(&root, "a", &b, &err), 0);
    assert_int_equal(json_get_str(&root, "b", &s, &err), 0);
    assert_true(b);
    assert_string_equal(s, "dflt");
    assert_false(json_has(&root, "a"));
}

static void test_integers_are_exact(void **state)
{
    const char *const bad[] = {"{\"n\":1.5}", "{\"n\":1e300}", "{\"n\":-1}", "{\"n\":11}", "{\"n\":true}"};
    struct err err;
    int64_t n = 0;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        cleanup_json cJSON *j = parse(bad[i]);
        struct json_at root = json_root(j, "x");
        assert_int_equal(json_get_i64(&root, "n", 0, 10, &n, &err), -1);
    }
    cleanup_json cJSON *j = parse("{\"n\":1e1}");
    struct json_at root = json_root(j, "x");
    assert_int_equal(json_get_i64(&root, "n", 0, 10, &n, &err), 0);
    assert_int_equal(n, 10);
}

static void test_round_trip(void **state)
{
    const char *const texts[] = {
        "{\"a\":[1,-2,2147483648,1000000000000000,9007199254740991]}",
        "{\"s\":\"q\\\"b\\\\n\\u000a\\u0001é\",\"t\":true,\"f\":false,\"z\":null,\"o\":{}}", "[0.5,1.25e-07]",
        "[]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        cleanup_json cJSON *j = parse(texts[i]);
        cleanup_arena struct arena a = {0};
        cleanup_json cJSON *again = parse(json_print(j, &a));
        assert_true(cJSON_Compare(j, again, true));
    }
    cleanup_json cJSON *j = parse("{\"a\":[1e15,9007199254740991]}");
    cleanup_arena struct arena a = {0};
    assert_string_equal(json_print(j, &a), "{\"a\":[1000000000000000,9007199254740991]}");
}

static void test_bad_text_is_refused(void **state)
{
    const char *const bad[] = {"", "{", "{\"a\":1}x", "[1,]", "\"abc", "nul"};
    struct err err;
    char deep[200];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_null(json_parse(bad[i], strlen(bad[i]), &err));
    memset(deep, '[', 100);
    memset(deep + 100, ']', 100);
    assert_null(json_parse(deep, sizeof(deep), &err));
    assert_non_null(strstr(err.msg, "64 levels"));
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    cleanup_json cJSON *ok = json_parse(deep, 128, &err);
    assert_non_null(ok);
}

static uint64_t hash_of(const char *text)
{
    cleanup_json cJSON *j = parse(text);

    return json_hash(j);
}

static void test_hash_is_of_the_content(void **state)
{
    const char *const unlike[] = {"{\"a\":1,\"b\":[1,2]}",
                                  "{\"a\":1,\"b\":[2,1]}",
                                  "{\"a\":[1,2],\"b\":1}",
                                  "{\"b\":[1,2]}",
                                  "{\"a\":\"1\",\"b\":[1,2]}",
                                  "{}",
                                  "[]",
                                  "null",
                                  "{\"a\":null}",
                                  "{\"a\":{\"b\":1}}",
                                  "{\"b\":{\"a\":1}}",
                                  "{\"a\":\"x\"}",
                                  "{\"\":\"xa\"}",
                                  "{\"xa\":\"\"}",
                                  "true"};

    (void)state;
    assert_true(hash_of("{\"a\":1,\"b\":{\"c\":2,\"d\":[3]}}") ==
                hash_of("{\"b\":{\"d\":[3],\"c\":2},\"a\":1}"));
    assert_true(hash_of("[-0.0]") == hash_of("[0]")); /* as which it comes back from a server */
    for (size_t i = 0; i < ARRAY_LEN(unlike); i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hash_of(unlike[i]) != hash_of(unlike[k]));
}

static void test_decimals_print_shortest(void **state)
{
    cleanup_json cJSON *j = parse("[0.1,0.30000000000000004]");
    cleanup_arena struct arena a = {0};

    (void)state;
    assert_string_equal(json_print(j, &a), "[0.1,0.30000000000000004]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_names_the_path),    cmocka_unit_test(test_absent_keeps_the_default),
        cmocka_unit_test(test_integers_are_exact),      cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bad_text_is_refused),     cmocka_unit_test(test_hash_is_of_the_content),
        cmocka_unit_test(test_decimals_print_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
