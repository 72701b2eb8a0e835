/* test_jobtext.c - a job put to rest and decoded again is the same job, less what nobody reads. */
#include "jsontext.h"
#include "operator/api/jobtext.h"
#include "test.h"

#include <string.h>

#define META "'name':'j','namespace':'n','uid':'u','resourceVersion':'7','generation':3"
#define BALLAST                                                                                              \
    "'managedFields':[{'manager':'kubectl'}],'annotations':{'note':'keep-me-not'},'labels':{'x':'keep-me-"   \
    "not'},'finalizers':['keep-me-not'],'ownerReferences':[{'uid':'keep-me-not'}],"
#define SPEC                                                                                                 \
    "'spec':{'replicaSpecs':[{'type':'node','replicas':2,'template':{'metadata':{'annotations':{'note':'"    \
    "mine'}},'spec':{'terminationGracePeriodSeconds':9007199254740991,'containers':[{'name':'c','args':['"   \
    "\\u00e9\\n\\'',''],'x':1.5,'y':null,'z':false}]}}}]}"
#define STATUS "'status':{'phase':'Running','attempt':2}"

static void test_there_and_back(void **state)
{
    struct err err;
    cleanup_json cJSON *object =
        jsontext_parse("{'kind':'k','metadata':{" BALLAST META "}," SPEC "," STATUS "}");
    cleanup_json cJSON *before = cJSON_Duplicate(object, true);
    cleanup_json cJSON *want = jsontext_parse("{'metadata':{" META "}," SPEC "," STATUS "}");

    (void)state;
    struct jobtext *t = jobtext_new(object, NULL, &err);
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
    free(t); /* the job borrows nothing from it */
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
    cleanup_json cJSON *object = jsontext_parse("{'metadata':{" META "}," SPEC "," STATUS "}");
    cJSON *spec = cJSON_GetObjectItem(object, "spec");
    cJSON *numbers = cJSON_CreateArray();

    (void)state;
    for (int i = 0; i < JOBTEXT_SPEC_BYTES / 2; i++)
        cJSON_AddItemToArray(numbers, cJSON_CreateNumber(0));
    cJSON_AddItemToObject(cJSON_GetObjectItem(spec, "replicaSpecs")->child, "template", numbers);
    cJSON_AddNumberToObject(cJSON_AddObjectToObject(spec, "runPolicy"), "ttlSecondsAfterFinished", 60);
    struct jobtext *t = jobtext_new(object, NULL, &err);
    assert_non_null(t);
    assert_in_range(t->json_len, 1, 1000);
    cleanup_trainjob struct trainjob *job = jobtext_decode(t, &err);
    free(t);
    assert_non_null(job);
    assert_string_equal(job->spec_error, "spec: expected at most 262144 bytes of JSON");
    assert_int_equal(job->status.attempt, 2);
    assert_int_equal(job->spec.run_policy.ttl_after_finished_s.v, 60);
    assert_string_equal(job->uid, "u");
}

/* Measured as the API server writes it: what is made of it comes back like that. */
static void test_escapes_count(void **state)
{
    static const char *const TEXTS[] = {"<", ">", "&", "\u2028", "\u2029", "x", "\u2027"};
    static const int BYTES[] = {6, 6, 6, 6, 6, 1, 3};
    static char text[JOBTEXT_SPEC_BYTES + 1];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(TEXTS); i++) {
        for (int over = 0; over < 2; over++) {
            struct err err;
            int n = (JOBTEXT_SPEC_BYTES - 8) / BYTES[i] + over * 2; /* {"a":""} are 8 */
            text[0] = '\0';
            char *to = text;
            for (int k = 0; k < n && to + 4 < text + sizeof(text); k++)
                to = stpcpy(to, TEXTS[i]);
            cleanup_json cJSON *object = jsontext_parse("{'metadata':{" META "}}");
            cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "spec"), "a", text);
            struct jobtext *t = jobtext_new(object, NULL, &err);
            assert_non_null(t);
            if (BYTES[i] > 1 || !over)
                assert_int_equal(t->too_large, over);
            free(t);
        }
    }
}

/* Of a spec that is too large, who manages the job is kept whatever the rest of runPolicy takes. */
static void test_the_manager_of_a_large_job(void **state)
{
    static const char *const SPECS[] = {"{'managedBy':'a/b','runPolicy':{}}",
                                        "{'runPolicy':{'managedBy':'a/b'}}"};
    static char filler[JOBTEXT_SPEC_BYTES];

    (void)state;
    memset(filler, 'x', sizeof(filler) - 1);
    for (size_t i = 0; i < ARRAY_LEN(SPECS); i++) {
        for (int large = 0; large < 2; large++) {
            struct err err;
            cleanup_json cJSON *object = jsontext_parse("{'metadata':{" META "}}");
            cJSON *spec = jsontext_parse(SPECS[i]);
            cJSON_AddItemToObject(object, "spec", spec);
            cJSON_AddStringToObject(large ? cJSON_GetObjectItem(spec, "runPolicy") : spec, "x", filler);
            struct jobtext *t = jobtext_new(object, NULL, &err);
            assert_non_null(t);
            assert_true(t->too_large);
            cleanup_trainjob struct trainjob *job = jobtext_decode(t, &err);
            free(t);
            assert_string_equal(job->spec.run_policy.managed_by, "a/b");
        }
    }
}

/* One of 1,024 replicas and ten long failures is read; one that only someone else can have written is not. */
static void test_status_bound(void **state)
{
    struct err err;
    cleanup_json cJSON *object =
        jsontext_parse("{'metadata':{" META "}," SPEC ",'status':{'tasks':[{'replicas':[]}]}}");
    cJSON *status = cJSON_GetObjectItem(object, "status");
    cJSON *replicas = cJSON_GetObjectItem(cJSON_GetObjectItem(status, "tasks")->child, "replicas");

    (void)state;
    for (int i = 0; i < JOBSTATUS_REPLICAS_MAX; i++)
        cJSON_AddItemToArray(
            replicas,
            jsontext_parse("{'name':'a-name-of-sixty-three-characters-is-the-longest-that-there-can-be-123','"
                           "uid':'01234567-0123-0123-0123-0123456789ab','phase':'Succeeded','restarts':0,'"
                           "containers':[{'name':'a-name-of-sixty-three-characters-is-the-longest-that-there-"
                           "can','state':'Terminated','exitCode':0}]}"));
    struct jobtext *t = jobtext_new(object, NULL, &err);
    assert_non_null(t);
    assert_false(t->too_large);
    struct trainjob *job = jobtext_decode(t, &err);
    assert_int_equal(job->status.tasks[0].n_replicas, JOBSTATUS_REPLICAS_MAX);
    trainjob_free(job);
    free(t);
    cJSON *junk = cJSON_AddArrayToObject(status, "conditions");
    for (int i = 0; i < JOBTEXT_STATUS_BYTES / 2; i++)
        cJSON_AddItemToArray(junk, cJSON_CreateNumber(0));
    assert_null(jobtext_new(object, NULL, &err));
    assert_non_null(strstr(err.msg, "status: over 524288 bytes"));
}

static void test_unreadable(void **state)
{
    struct err err, why;
    cleanup_json cJSON *object =
        jsontext_parse("{'metadata':{" BALLAST META "}," SPEC ",'status':{'phase':'Running','reason':'R'}}");

    (void)state;
    err_set(&why, ERR_INVALID, "because");
    struct jobtext *t = jobtext_new(object, &why, &err);
    assert_non_null(t);
    assert_string_equal(t->unreadable, "because");
    assert_in_range(t->json_len, 1, 200);
    cleanup_trainjob struct trainjob *job = jobtext_decode(t, &err);
    free(t);
    assert_string_equal(job->unreadable, "because");
    assert_string_equal(job->status.reason, "R");
    assert_int_equal(job->status.phase, JOB_NONE);
}

/* Nobody else's job, and none that is being deleted, is taken for ours. */
static void test_unreadable_but_not_ours(void **state)
{
    static const struct {
        const char *metadata, *policy, *manager;
        bool deleting;
    } ROWS[] = {
        {"", "{}", "", false},
        {"'deletionTimestamp':'2026-01-01T00:00:00Z',", "{}", "", true},
        {"", "{'managedBy':'k/multi','backoffLimit':77}", "k/multi", false},
        {"", "{'managedBy':'" TRAINJOB_MANAGED_BY "'}", TRAINJOB_MANAGED_BY, false},
        {"", "{},'managedBy':'k/multi'", "k/multi", false},
    };
    char text[600];
    struct err err, why;

    (void)state;
    err_set(&why, ERR_INVALID, "because");
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        snprintf(text, sizeof(text), "{'metadata':{%s" META "},'spec':{'x':[1],'runPolicy':%s}}",
                 ROWS[i].metadata, ROWS[i].policy);
        cleanup_json cJSON *object = jsontext_parse(text);
        struct jobtext *t = jobtext_new(object, &why, &err);
        assert_non_null(t);
        cleanup_trainjob struct trainjob *job = jobtext_decode(t, &err);
        free(t);
        assert_non_null(job);
        assert_int_equal(job->deleting, ROWS[i].deleting);
        const char *manager = job->spec.run_policy.managed_by;
        assert_string_equal(manager ? manager : "", ROWS[i].manager);
        assert_false(job->spec.run_policy.backoff_limit == 77);
    }
}

/* The text n times, with the number instead of its #. */
static void repeat(struct buf *out, int n, const char *text)
{
    int before = (int)strcspn(text, "#");
    struct err err;

    for (int i = 0; i < n; i++)
        assert_int_equal(buf_printf(out, &err, "%.*s%05d%s", before, text, i, text + before + 1), 0);
}

/* The largest that anyone may need: a full spec of short variables, each of them once more in managedFields and, quoted, in the
 * annotation of kubectl apply, and a status of 1,024 replicas. It is read, and with room to spare. */
static void test_the_largest_job_is_readable(void **state)
{
    enum { VARIABLES = JOBTEXT_SPEC_BYTES / 32 };
    cleanup_buf struct buf text = BUF_INIT(2 << 20); /* of the 3 MiB that a watch takes */
    struct err err;

    (void)state;
    assert_int_equal(buf_puts(&text, "{'metadata':{" META ",'annotations':{'a':'", &err), 0);
    repeat(&text, VARIABLES, "{\\'name\\':\\'V#\\',\\'value\\':\\'x\\'},");
    assert_int_equal(buf_puts(&text, "'},'managedFields':[{'f':{", &err), 0);
    repeat(&text, VARIABLES, "'k:{\\'name\\':\\'V#\\'}':{'.':{},'f:name':{},'f:value':{}},");
    assert_int_equal(buf_puts(&text, "'z':1}}]},'spec':{'env':[", &err), 0);
    repeat(&text, VARIABLES, "{'name':'V#','value':'x'},");
    assert_int_equal(buf_puts(&text, "{}]},'status':{'tasks':[{'replicas':[", &err), 0);
    repeat(&text, JOBSTATUS_REPLICAS_MAX,
           "{'name':'a-job-of-a-long-name-node-#','uid':'01234567-0123-0123-0123-0123456789ab','phase':'"
           "Running','restarts':0,'containers':[{'name':'pytorch','state':'Running','exitCode':0}]},");
    assert_int_equal(buf_puts(&text, "{}]}]}}", &err), 0);
    cleanup_json cJSON *object = jsontext_parse(buf_str(&text));
    struct jobtext *t = jobtext_new(object, NULL, &err);
    assert_non_null(t);
    assert_false(t->too_large);
    free(t);
}

static void test_unusable_metadata(void **state)
{
    static const char *const BAD[] = {
        "{}",
        "[]",
        "{'metadata':null}",
        "{'metadata':{'name':'j','uid':'u','resourceVersion':'1'}}",
        "{'metadata':{'namespace':'n','uid':'u','resourceVersion':'1'}}",
        "{'metadata':{'name':'j','namespace':'n','resourceVersion':'1'}}",
        "{'metadata':{'name':'j','namespace':'n','uid':'u'}}",
    };
    struct err err;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(BAD); i++) {
        cleanup_json cJSON *object = jsontext_parse(BAD[i]);
        assert_null(jobtext_new(object, NULL, &err));
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, "metadata without"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_a_spec_beyond_reason_is_not_kept),
        cmocka_unit_test(test_escapes_count),
        cmocka_unit_test(test_the_manager_of_a_large_job),
        cmocka_unit_test(test_status_bound),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_the_largest_job_is_readable),
        cmocka_unit_test(test_unusable_metadata),
        cmocka_unit_test(test_unreadable_but_not_ours),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
