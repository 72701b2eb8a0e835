/* test_gangs.c - the requests about PodGroups: what exists already, what is not ours, and APIs that the server lacks. */
#include "actionbench.h"
#include "test.h"

#include <string.h>

#define OWNER(uid)                                                                                           \
    "\"ownerReferences\":[{\"apiVersion\":\"batch.tensorstack.dev/"                                          \
    "v1beta1\",\"kind\":\"PyTorchTrainingJob\","                                                             \
    "\"name\":\"job\",\"uid\":\"" uid "\",\"controller\":true}]"
#define GROUP(meta, spec)                                                                                    \
    "{\"metadata\":{\"uid\":\"g1\",\"labels\":{\"batch.tensorstack.dev/job\":\"job\"}," meta                 \
    "},\"spec\":" spec "}"
#define STATUS(reason, text) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" text "\"}"
#define EXISTS STATUS("AlreadyExists", "podgroups \\\"job-0\\\" already exists")
#define NO_API STATUS("NotFound", "the server could not find the requested resource")
#define SPEC "{\"minMember\":4,\"queue\":\"q\"}"

static void begin(enum action_kind kind, enum gang_scheduler scheduler)
{
    bench_fresh();
    bench_add(kind, CHILD_GROUP, "job-0");
    B.actions[0].gang = scheduler;
    B.actions[0].body = "{\"spec\":" SPEC "}";
    bench_add(ACTION_CREATE, CHILD_POD, "job-node-0");
    B.actions[1].gang = scheduler;
    bench_run(NULL);
}

static void expect_last(const char *method, const char *path)
{
    assert_string_equal(B.calls[B.n - 1].method, method);
    if (!strstr(B.calls[B.n - 1].path, path))
        fail_msg("expected %s, got %s", path, B.calls[B.n - 1].path);
}

static void expect_pod_next(void)
{
    expect_last("POST", "/api/v1/namespaces/ns/pods");
    bench_created(B.n - 1);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_false(B.result.unseen);
}

static void expect_problem(enum problem_kind kind, const char *words)
{
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, kind);
    assert_int_equal(B.result.problem.child, CHILD_GROUP);
    if (!strstr(B.result.err.msg, words))
        fail_msg("expected %s, got %s", words, B.result.err.msg);
    assert_int_equal(bench_count("/pods"), 0);
}

static void test_created(void **state)
{
    (void)state;
    begin(ACTION_CREATE, GANG_COSCHEDULING);
    assert_int_equal(B.n, 1); /* no pod before the answer */
    expect_last("POST", "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups");
    bench_answer(0, 201, GROUP(OWNER("job-uid"), SPEC));
    expect_pod_next();
    begin(ACTION_CREATE, GANG_VOLCANO);
    expect_last("POST", "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups");
}

/* After a crash of the operator its PodGroup is there; every other object of that name stops the attempt. */
static void test_exists(void **state)
{
    static const struct {
        const char *name, *there;
        enum problem_kind problem;
        const char *words;
        bool deleted;
    } ROWS[] = {
        {"ours", GROUP(OWNER("job-uid"), SPEC), PROBLEM_NONE, "", false},
        {"ours, with defaults", GROUP(OWNER("job-uid"), "{\"minMember\":4,\"queue\":\"q\",\"more\":1}"),
         PROBLEM_NONE, "", false},
        {"ours, of an earlier spec", GROUP(OWNER("job-uid"), "{\"minMember\":3,\"queue\":\"q\"}"),
         PROBLEM_NAME_CONFLICT, "being deleted", true},
        {"ours, without a queue", GROUP(OWNER("job-uid"), "{\"minMember\":4}"), PROBLEM_NAME_CONFLICT,
         "being deleted", true},
        {"ours, and it is being deleted",
         GROUP(OWNER("job-uid") ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", SPEC),
         PROBLEM_NAME_CONFLICT, "being deleted", false},
        {"of a deleted namesake", GROUP(OWNER("other"), SPEC), PROBLEM_NAME_CONFLICT, "of an earlier job",
         false},
        {"foreign", "{\"metadata\":{\"uid\":\"g1\"},\"spec\":" SPEC "}", PROBLEM_NAME_CONFLICT,
         "belongs to another owner", false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        begin(ACTION_CREATE, GANG_VOLCANO);
        bench_answer(0, 409, EXISTS);
        expect_last("GET", "/namespaces/ns/podgroups/job-0");
        bench_answer(1, 200, ROWS[i].there);
        if (ROWS[i].deleted) {
            expect_last("DELETE", "/namespaces/ns/podgroups/job-0");
            assert_non_null(strstr(B.calls[2].body, "\"uid\":\"g1\""));
            bench_answer(2, 200, "{}");
        }
        if (ROWS[i].problem == PROBLEM_NONE)
            expect_pod_next();
        else
            expect_problem(ROWS[i].problem, ROWS[i].words);
    }
}

/* Of an attempt with pods, which name it already: whatever it is, it is left alone; also without permission, since the operator
 * may have lost that with its option. */
static void test_kept(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        begin(ACTION_CREATE, GANG_COSCHEDULING);
        B.actions[0].keep = true;
        bench_answer(0, i ? 403 : 409, i ? STATUS("Forbidden", "podgroups is forbidden") : EXISTS);
        assert_int_equal(bench_count("podgroups"), 1);
        expect_last("POST", "/api/v1/namespaces/ns/pods");
    }
}

static void test_refused(void **state)
{
    (void)state;
    begin(ACTION_CREATE, GANG_COSCHEDULING);
    bench_answer(0, 404, NO_API);
    expect_problem(PROBLEM_REFUSED, "the API server has no podgroups.scheduling.x-k8s.io: install that API, "
                                    "or run the operator with another --gang-scheduler than coscheduling");
    begin(ACTION_CREATE, GANG_VOLCANO);
    bench_answer(
        0, 403,
        STATUS(
            "Forbidden",
            "admission webhook \\\"validatepodgroup.volcano.sh\\\" denied the request: queue q is not Open"));
    expect_problem(PROBLEM_REFUSED, "queue q is not Open");
    begin(ACTION_CREATE, GANG_COSCHEDULING);
    bench_answer(0, 404, STATUS("NotFound", "namespaces \\\"ns\\\" not found"));
    expect_problem(PROBLEM_FAILED, "namespaces \"ns\" not found");
}

/* The version that answered is asked first from then on. */
static void test_native(void **state)
{
    static const char *const VERSIONS[] = {"v1beta1", "v1alpha3", "v1alpha2"};

    (void)state;
    begin(ACTION_CREATE, GANG_NATIVE);
    for (int i = 0; i < 3; i++) {
        expect_last("POST", "/apis/scheduling.k8s.io/");
        assert_non_null(strstr(B.calls[i].path, VERSIONS[i]));
        assert_int_equal(B.n, i + 1);
        bench_answer(i, 404, NO_API);
    }
    expect_problem(PROBLEM_REFUSED, "the API server has no podgroups.scheduling.k8s.io");
    begin(ACTION_CREATE, GANG_NATIVE);
    bench_answer(0, 404, "404 page not found");
    bench_answer(1, 201, GROUP(OWNER("job-uid"), SPEC));
    assert_int_equal(B.native_version, 1);
    expect_last("POST", "/pods");
    bench_answer(2, 201,
                 "{\"metadata\":{\"uid\":\"p\",\"resourceVersion\":\"9\",\"labels\":{\"batch.tensorstack.dev/"
                 "job\":\"job\"}},\"spec\":{\"schedulingGroup\":{\"podGroupName\":\"job-0\"}}}");
    assert_true(B.result.ok);
    assert_int_equal(B.result.pods_created, 1);
}

/* Without its feature gate the server drops the field of the pod, which would start alone. */
static void test_dropped(void **state)
{
    (void)state;
    begin(ACTION_CREATE, GANG_NATIVE);
    bench_answer(0, 201, GROUP(OWNER("job-uid"), SPEC));
    bench_answer(1, 201,
                 "{\"metadata\":{\"uid\":\"p\",\"resourceVersion\":\"9\",\"labels\":{\"batch.tensorstack.dev/"
                 "job\":\"job\"}},\"spec\":{}}");
    expect_last("DELETE", "/pods/job-node-0");
    assert_non_null(strstr(B.calls[2].body, "\"uid\":\"p\""));
    bench_answer(2, 200, "{\"metadata\":{\"resourceVersion\":\"10\"}}");
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, PROBLEM_REFUSED);
    assert_non_null(strstr(B.result.err.msg, "dropped spec.schedulingGroup of pod job-node-0"));
    assert_int_equal(B.result.pods_created, 0);
    assert_string_equal(B.result.versions[CHILD_POD], "10");
}

/* Only what is ours is deleted, and nothing but a failure of the server keeps the pods waiting for that. */
static void test_deleted(void **state)
{
    static const struct {
        const char *name;
        int get_status;
        const char *there;
        int delete_status; /* 0: no delete */
        bool ok;
    } ROWS[] = {
        {"ours", 200, GROUP(OWNER("job-uid"), SPEC), 200, true},
        {"ours, gone meanwhile", 200, GROUP(OWNER("job-uid"), SPEC), 404, true},
        {"ours, another one meanwhile", 200, GROUP(OWNER("job-uid"), SPEC), 409, true},
        {"ours, and we may not", 200, GROUP(OWNER("job-uid"), SPEC), 403, true},
        {"ours, and the server fails", 200, GROUP(OWNER("job-uid"), SPEC), 500, false},
        {"foreign", 200, GROUP("\"name\":\"job-0\"", SPEC), 0, true},
        {"of a namesake", 200, GROUP(OWNER("other"), SPEC), 0, true},
        {"none", 404, NO_API, 0, true},
        {"without permission", 403, "{}", 0, true},
        {"the server fails", 500, "{}", 0, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        begin(ACTION_DELETE, GANG_VOLCANO);
        expect_last("GET", "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups/job-0");
        bench_answer(0, ROWS[i].get_status, ROWS[i].there);
        if (ROWS[i].delete_status) {
            expect_last("DELETE", "/namespaces/ns/podgroups/job-0");
            assert_non_null(strstr(B.calls[1].body, "\"uid\":\"g1\""));
            bench_answer(1, ROWS[i].delete_status, "{}");
        }
        if (ROWS[i].ok)
            expect_pod_next();
        else
            assert_false(B.result.ok);
        assert_int_equal(bench_count("podgroups"), ROWS[i].delete_status ? 2 : 1);
        /* The server may have done the delete that it did not answer; a GET changes nothing. */
        assert_int_equal(B.result.lost, ROWS[i].delete_status == 500);
    }
    begin(ACTION_DELETE, GANG_NATIVE);
    bench_answer(0, 404, NO_API);
    bench_answer(1, 404, NO_API);
    bench_answer(2, 200, GROUP(OWNER("job-uid"), SPEC));
    expect_last("DELETE", "/apis/scheduling.k8s.io/v1alpha2/namespaces/ns/podgroups/job-0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_created), cmocka_unit_test(test_exists), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_native), cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_deleted),
    };

    return cmocka_run_group_tests(tests, NULL, bench_end);
}
