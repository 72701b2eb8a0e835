/* test_mergepatch.c - the patch turns one document into the other, and is nothing when they are equal. */
#include "jsontext.h"
#include "operator/plan/mergepatch.h"
#include "test.h"
#include "yamldoc.h"

static void check(const char *from_text, const char *to_text, const char *want)
{
    cleanup_json cJSON *from = jsontext_parse(from_text);
    cleanup_json cJSON *to = jsontext_parse(to_text);
    cleanup_json cJSON *patch = mergepatch_diff(from, to);

    if (!want) {
        assert_null(patch);
        return;
    }
    assert_non_null(patch);
    cleanup_json cJSON *wanted = jsontext_parse(want);
    assert_true(cJSON_Compare(patch, wanted, true));
    yamldoc_merge(from, patch);
    assert_true(cJSON_Compare(from, to, true));
}

static void test_table(void **state)
{
    (void)state;
    check("{}", "{}", NULL);
    check("{'a':1,'b':{'c':[1,2]}}", "{'b':{'c':[1,2]},'a':1}", NULL);
    check("{'a':1}", "{'a':2}", "{'a':2}");
    check("{'a':1}", "{}", "{'a':null}");
    check("{}", "{'a':{'b':1}}", "{'a':{'b':1}}");
    check("{'a':{'b':1,'c':2}}", "{'a':{'b':1}}", "{'a':{'c':null}}");
    check("{'a':[1,2]}", "{'a':[1]}", "{'a':[1]}");
    check("{'a':{'b':1}}", "{'a':3}", "{'a':3}");
    check("{'a':[{'b':1}]}", "{'a':[{'B':1}]}", "{'a':[{'B':1}]}");
    check("{'a':[{'b':1,'c':[2]}]}", "{'a':[{'c':[2],'b':1}]}", NULL);
    check("{'a':[{'b':1}]}", "{'a':[{'b':1,'c':2}]}", "{'a':[{'b':1,'c':2}]}");
    check("{'a':[{'b':1,'c':2}]}", "{'a':[{'b':1}]}", "{'a':[{'b':1}]}");
    check("{'a':[1,true]}", "{'a':[1,false]}", "{'a':[1,false]}");
    check("{'a':[1]}", "{'a':['1']}", "{'a':['1']}");
    check("{'a':'x','A':1}", "{'a':'x'}", "{'A':null}");
}

/* {"a":{"a": ... value ... }} or {"a":[{"a": ... }]}, about as deep as json_parse lets anything be. */
static cJSON *nested(bool in_arrays, int value)
{
    cJSON *node = cJSON_CreateNumber(value);

    for (int level = 0; level < 30; level++) {
        cJSON *object = cJSON_CreateObject();
        cJSON *array = in_arrays ? cJSON_CreateArray() : NULL;
        cJSON_AddItemToObject(object, "a", node);
        if (array)
            cJSON_AddItemToArray(array, object);
        node = array ? array : object;
    }
    cJSON *root = cJSON_CreateObject();
    cJSON_AddItemToObject(root, "a", node);
    return root;
}

/* cJSON_Compare would not come to the end of either. */
static void test_depth_costs_no_more_than_length(void **state)
{
    (void)state;
    for (int in_arrays = 0; in_arrays < 2; in_arrays++) {
        cleanup_arena struct arena a = {0};
        cleanup_json cJSON *from = nested(in_arrays, 1);
        cleanup_json cJSON *alike = nested(in_arrays, 1);
        cleanup_json cJSON *to = nested(in_arrays, 2);
        cleanup_json cJSON *patch = mergepatch_diff(from, to);
        assert_null(mergepatch_diff(from, alike));
        assert_non_null(patch);
        assert_string_equal(json_print(patch, &a), json_print(to, &a));
        yamldoc_merge(from, patch);
        assert_string_equal(json_print(from, &a), json_print(to, &a));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_depth_costs_no_more_than_length)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
