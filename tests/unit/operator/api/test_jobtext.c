/* test_jobtext.c - a job put to rest and decoded again is the same job, less what nobody reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/api/jobtext.h"

#include <string.h>

#define META "\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"7\",\"generation\":3"
#define BALLAST                                                                                              \
    "\"managedFields\":[{\"manager\":\"kubectl\"}],\"annotations\":{\"note\":\"keep-me-not\"},"              \
    "\"labels\":{\"x\":\"keep-me-not\"},\"finalizers\":[\"keep-me-not\"],\"ownerReferences\":[{\"uid\":"     \
    "\"keep-me-not\"}],"
#define SPEC                                                                                                 \
    "\"spec\":{\"replicaSpecs\":[{\"type\":\"node\",\"replicas\":2,\"template\":{\"metadata\":{"             \
    "\"annotations\":{\"note\":\"mine\"}},\"spec\":{\"terminationGracePeriodSeconds\":9007199254740991,"     \
    "\"containers\":[{\"name\":\"c\",\"args\":[\"\\u00e9\\n\\\"\",\"\"],\"x\":1.5,\"y\":null,\"z\":false}]}" \
    "}}]}"
#define STATUS "\"status\":{\"phase\":\"Running\",\"attempt\":2}"

static cJSON *parse(const char *text)
{
    struct err err;
    cJSON *j = json_parse(text, strlen(text), &err);

    assert_non_null(j);
    return j;
}

static void test_there_and_back(void **state)
{
    struct err err;
    cleanup_json cJSON *object =
        parse("{\"kind\":\"k\",\"metadata\":{" BALLAST META "}," SPEC "," STATUS "}");
    cleanup_json cJSON *before = cJSON_Duplicate(object, true);
    cleanup_json cJSON *want = parse("{\"kind\":\"k\",\"metadata\":{" META "}," SPEC "," STATUS "}");

    (void)state;
    struct jobtext *t = jobtext_new(object, &err);
    assert_non_null(t);
    assert_true(cJSON_Compare(object, before, true)); /* borrowed, and left as it was */
    assert_string_equal(t->ns, "n");
    assert_string_equal(t->name, "j");
    assert_string_equal(t->uid, "u");
    assert_string_equal(t->resource_version, "7");
    assert_int_equal(t->generation, 3);
    assert_int_equal(strlen(t->json), t->json_len);
    assert_null(strstr(t->json, "managedFields"));
    assert_null(strstr(t->json, "keep-me-not"));
    assert_non_null(strstr(t->json, "9007199254740991"));
    struct trainjob *job = jobtext_decode(t, &err);
    jobtext_free(t); /* the job borrows nothing from it */
    assert_non_null(job);
    assert_null(job->spec_error);
    assert_true(cJSON_Compare(job->tree, want, true));
    assert_int_equal(job->spec.pods, 2);
    assert_int_equal(job->status.attempt, 2);
    cleanup_trainjob struct trainjob *direct = trainjob_decode(TAKE(want), &err);
    assert_string_equal(job->spec.hash, direct->spec.hash);
    trainjob_free(job);
}

/* A list of numbers takes forty times its text when it is decoded: who may make a job must not be able to end the operator. */
static void test_a_spec_beyond_reason_is_not_kept(void **state)
{
    struct err err;
    cleanup_json cJSON *object = parse("{\"metadata\":{" META "}," SPEC "," STATUS "}");
    cJSON *spec = cJSON_GetObjectItem(object, "spec");
    cJSON *numbers = cJSON_CreateArray();

    (void)state;
    for (int i = 0; i < JOBTEXT_SPEC_BYTES / 2; i++)
        cJSON_AddItemToArray(numbers, cJSON_CreateNumber(0));
    cJSON_AddItemToObject(cJSON_GetObjectItem(spec, "replicaSpecs")->child, "template", numbers);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(spec, "runPolicy"), "ttlSecondsAfterFinished", 60);
    struct jobtext *t = jobtext_new(object, &err);
    assert_non_null(t);
    assert_in_range(t->json_len, 1, 1000);
    cleanup_trainjob struct trainjob *job = jobtext_decode(t, &err);
    jobtext_free(t);
    assert_non_null(job);
    assert_string_equal(job->spec_error, "spec: expected at most 262144 bytes of JSON");
    assert_int_equal(job->status.attempt, 2);
    assert_int_equal(job->spec.run_policy.ttl_after_finished_s.v, 60);
    assert_string_equal(job->uid, "u");
}

static void test_unusable_metadata(void **state)
{
    static const char *const BAD[] = {
        "{}",
        "[]",
        "{\"metadata\":null}",
        "{\"metadata\":{\"name\":\"j\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"resourceVersion\":\"1\"}}",
        "{\"metadata\":{\"name\":\"j\",\"namespace\":\"n\",\"uid\":\"u\"}}",
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        cleanup_json cJSON *object = parse(BAD[i]);
        assert_null(jobtext_new(object, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, "metadata without"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_spec_beyond_reason_is_not_kept),
        cmocka_unit_test(test_unusable_metadata),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
