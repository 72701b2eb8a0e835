/* test_json.c - paths in errors, exact integers, refusal of depth and trailing text. */
#include "common/json.h"
#include "test.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    cleanup_json cJSON *j = cJSON_CreateArray();
    cleanup_arena struct arena a = {0};
    cJSON_AddItemToArray(j, cJSON_CreateNumber(1e15)); /* cJSON's own printer writes 1e+15 */
    cJSON_AddItemToArray(j, cJSON_CreateNumber(9007199254740991));
    assert_string_equal(json_print(j, &a), "[1000000000000000,9007199254740991]");
}

static uint64_t hash_of(const char *text)
{
    cleanup_json cJSON *j = parse(text);

    return json_hash(j);
}

/* What was written reads back as the same doubles, and is written the same again. */
static void check_reads_back(const char *text)
{
    cleanup_json cJSON *j = parse(text);
    cleanup_arena struct arena a = {0};
    const char *once = json_print(j, &a);
    cleanup_json cJSON *again = parse(once);

    for (const cJSON *x = j->child, *y = again->child; x || y; x = x->next, y = y->next)
        if (!x || !y || x->valuedouble != y->valuedouble)
            fail_msg("%s was written as %s", text, once);
    assert_string_equal(json_print(again, &a), once);
}

static void test_numbers_read_back_equal(void **state)
{
    static const char *const texts[] = {
        "[9007199254740991,9007199254740992,9007199254740993,9223372036854775807,-9223372036854775808]",
        "[18446744073709551615,123456789012345678901234567890,1152921504606846976]",
        "[1e308,1.7976931348623157e308,1e309,1e400,-1e400,1e-400,5e-324,0e0,-0,-0.0]",
        "[0.1,0.10000000000000001,0.1000000000000000055511151231257827,1.0,1.50,1E5,1e+05,100000]",
    };
    static const char *const written[][2] = {
        {"[1e3,-0,-12,0.10,2.5E-7,1e21]", "[1000,0,-12,0.1,2.5e-07,1e+21]"},
        {"[9007199254740991,1152921504606846976]", "[9007199254740991,1152921504606846976]"},
    };
    cleanup_arena struct arena a = {0};
    uint64_t seed = 7;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        check_reads_back(texts[i]);
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        cleanup_json cJSON *j = parse(written[i][0]);
        assert_string_equal(json_print(j, &a), written[i][1]);
    }
    for (int round = 0; round < 20000; round++) {
        char digits[64];
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        int n = 1 + (int)(seed >> 59);
        snprintf(digits, sizeof(digits), "%0*llu", n,
                 (unsigned long long)(seed >> 8) % 10000000000000000000ULL);
        const char *sign = seed & 16 ? "-" : "";
        const char *text = seed & 32 ? arena_printf(&a, "[%s1%s]", sign, digits)
                           : seed & 64
                               ? arena_printf(&a, "[%s0.%s]", sign, digits)
                               : arena_printf(&a, "[%s3.%se%d]", sign, digits, (int)(seed >> 40) % 330);
        check_reads_back(text);
    }
    cleanup_json cJSON *nan = cJSON_CreateNumber(0.0 / 0.0);
    cleanup_buf struct buf out = BUF_INIT(100);
    struct err err;
    assert_int_equal(json_write(nan, &out, &err), -1);
}

static void test_numbers_hash_by_their_value(void **state)
{
    static const char *const same[][2] = {
        {"[100000]", "[1e5]"}, {"[-0.0]", "[0]"}, {"[1.50]", "[15e-1]"}, {"[0.1]", "[0.10]"}};
    static const char *const unlike[] = {"[9007199254740991]",
                                         "[9007199254740992]",
                                         "[12345678901234567000]",
                                         "[0.1]",
                                         "[1e400]",
                                         "[-1e400]",
                                         "[0]"};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        assert_true(hash_of(same[i][0]) == hash_of(same[i][1]));
    for (size_t i = 0; i < ARRAY_LEN(unlike); i++)
        for (size_t k = 0; k < i; k++)
            assert_true(hash_of(unlike[i]) != hash_of(unlike[k]));
    /* As release 0.1.0 computed them: a running job's template hash must not change with the operator. */
    static const double old[] = {0.5, 4, 1e21, 123456789, 1152921504606846976.0, 12345678901234567000.0,
                                 1e-7};
    static const char *const texts[] = {
        "0.5", "4", "1e+21", "123456789", "1152921504606846976", "12345678901234567000", "1e-07"};
    for (size_t i = 0; i < ARRAY_LEN(old); i++) {
        cleanup_json cJSON *made = cJSON_CreateNumber(old[i]);
        assert_true(hash_of(texts[i]) == json_hash(made));
    }
}

static void refused(const char *text, size_t len, const char *why, int code)
{
    struct err err = {0};
    cleanup_json cJSON *j = json_parse(text, len, &err);

    assert_null(j);
    assert_non_null(strstr(err.msg, why));
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(err.code, code);
}

static void test_what_would_be_cut_is_refused(void **state)
{
    static const char *const nul[] = {"{\"a\\u0000b\":1}", "[\"\\u0000\"]", "[\"\\\\\\u0000\"]"};
    char many[80];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(nul); i++)
        refused(nul[i], strlen(nul[i]), "a NUL character in a string", JSON_UNREADABLE);
    refused("[\"a\0b\"]", 7, "a NUL character in a string at byte 3", JSON_UNREADABLE);
    cleanup_json cJSON *ok = parse("[\"\\\\u0000\"]");
    assert_string_equal(ok->child->valuestring, "\\u0000");
    memset(many, '1', sizeof(many));
    refused(many, sizeof(many), "a number of over 63 characters", JSON_UNREADABLE);
    for (size_t i = 0; i < 6; i++) {
        static const char *const bad[] = {"[01]", "[1.]", "[-]", "[1e]", "[.5]", "[-a]"};
        refused(bad[i], strlen(bad[i]), "not JSON", 0);
    }
}

static void test_too_many_values(void **state)
{
    static char text[2 * JSON_VALUES_MAX + 16];
    size_t n = 0;

    (void)state;
    text[n++] = '[';
    for (int i = 0; i < JSON_VALUES_MAX - 2; i++, n += 2)
        memcpy(text + n, "1,", 2);
    text[n - 1] = ']';
    struct err err;
    cleanup_json cJSON *ok = json_parse(text, n, &err);
    assert_non_null(ok);
    assert_int_equal(cJSON_GetArraySize(ok), JSON_VALUES_MAX - 2);
    memcpy(text + n - 1, ",1,1]", 5);
    refused(text, n + 4, "more than 131072 values", JSON_UNREADABLE);
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

/* Exactly `len` bytes: the next one is on a page that nobody may read. */
static void test_nothing_behind_the_text_is_read(void **state)
{
    static const char TEXT[] = "{\"a\":[-12.5e-3,\"\\u00e9\\n\",true,null,{}]}";
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct err err;

    (void)state;
    assert_true(at != MAP_FAILED);
    assert_int_equal(mprotect(at + page, page, PROT_NONE), 0);
    for (size_t len = 0; len <= strlen(TEXT); len++) {
        char *text = at + page - len;
        memcpy(text, TEXT, len);
        cleanup_json cJSON *j = json_parse(text, len, &err);
        assert_int_equal(j != NULL, len == strlen(TEXT));
    }
    assert_int_equal(munmap(at, 2 * page), 0);
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

static void test_an_item_is_found_by_a_text(void **state)
{
    static const char TEXT[] = "[1, {\"name\": 2}, {\"name\": \"a\", \"n\": 1}, {\"name\": \"a\", \"n\": 2}]";
    struct err err;
    cleanup_json cJSON *list = json_parse(TEXT, strlen(TEXT), &err);

    (void)state;
    assert_non_null(list);
    assert_int_equal(json_i64(json_item_with(list, "name", "a"), "n", 0), 1);
    assert_null(json_item_with(list, "name", "b"));
    assert_null(json_item_with(list, "name", NULL));
    assert_null(json_item_with(NULL, "name", "a"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_names_the_path),
        cmocka_unit_test(test_absent_keeps_the_default),
        cmocka_unit_test(test_integers_are_exact),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_an_item_is_found_by_a_text),
        cmocka_unit_test(test_bad_text_is_refused),
        cmocka_unit_test(test_nothing_behind_the_text_is_read),
        cmocka_unit_test(test_hash_is_of_the_content),
        cmocka_unit_test(test_decimals_print_shortest),
        cmocka_unit_test(test_numbers_read_back_equal),
        cmocka_unit_test(test_numbers_hash_by_their_value),
        cmocka_unit_test(test_what_would_be_cut_is_refused),
        cmocka_unit_test(test_too_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
