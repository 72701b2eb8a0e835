/* test_child.c - Services and Deployments cut down to what plan reads. */
#include "jsontext.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "test.h"

#include <stdio.h>

#define META                                                                                                 \
    "'metadata':{'name':'p','namespace':'n','uid':'u','ownerReferences':[{'uid':'not'},{'apiVersion':"       \
    "'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND "','uid':'job','controller':true}]}"

static void test_what_is_read(void **state)
{
    struct err err;
    const char *text = "{" META ",'spec':{'replicas':0},'status':{'availableReplicas':1}}";
    cleanup_json cJSON *j = jsontext_parse(text);
    struct child *c = child_decode(j, NULL, &err);

    (void)state;
    assert_non_null(c);
    assert_string_equal(c->owner_uid, "job");
    assert_int_equal(c->replicas, 0);
    assert_int_equal(c->available, 1);
    assert_false(c->deleting);
    free(c);
    cleanup_json cJSON *empty = cJSON_CreateObject();
    assert_null(child_decode(empty, NULL, &err));
    cJSON_ReplaceItemInObjectCaseSensitive(cJSON_GetObjectItemCaseSensitive(j, "metadata"), "uid",
                                           cJSON_CreateString(""));
    assert_null(child_decode(j, NULL, &err));
    assert_int_equal(err.kind, ERR_INVALID);
}

static void test_conditions(void **state)
{
#define SINCE(type, status, message)                                                                         \
    "{'type':'" type "','status':'" status "','message':'" message                                           \
    "','lastTransitionTime':'1970-01-01T00:00:05Z'}"
    static const struct {
        const char *conditions, *trouble;
        int64_t unavailable_ms;
        bool refused;
    } ROWS[] = {
        {"", "", 0, false},
        {"1,{'type':'Available'},{'status':'False'}", "", 0, false},
        {SINCE("Available", "True", "a") "," SINCE("Progressing", "True", "p"), "", 0, false},
        {SINCE("Available", "False", "a") "," SINCE("Progressing", "True", "p"), "a", 5000, false},
        {SINCE("Available", "False", "a") "," SINCE("Progressing", "False", "p"), "p", 5000, false},
        {SINCE("ReplicaFailure", "True", "r") "," SINCE("Available", "False", "a") "," SINCE("Progressing",
                                                                                             "False", "p"),
         "r", 5000, true},
        {SINCE("ReplicaFailure", "False", "r"), "", 0, false},
        {"{'type':'Available','status':'False','lastTransitionTime':'x'}", "", 0, false},
    };
    char text[800];
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), "{" META ",'status':{'conditions':[%s]}}", ROWS[i].conditions);
        cleanup_json cJSON *j = jsontext_parse(text);
        struct child *c = child_decode(j, NULL, &err);
        assert_non_null(c);
        assert_string_equal(c->trouble, ROWS[i].trouble);
        assert_int_equal(c->unavailable_ms, ROWS[i].unavailable_ms);
        assert_int_equal(c->refused, ROWS[i].refused);
        free(c);
    }
}

static void test_unreadable(void **state)
{
    struct err err, why;
    cleanup_json cJSON *j = jsontext_parse("{" META "}");

    (void)state;
    err_set(&why, ERR_INVALID, "because");
    struct child *c = child_decode(j, &why, &err);
    assert_string_equal(c->unreadable, "because");
    assert_string_equal(c->owner_uid, "job");
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read),
        cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_unreadable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
