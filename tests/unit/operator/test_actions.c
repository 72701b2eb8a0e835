/* test_actions.c - which requests of a pass are sent beside each other, and what their answers mean for the pass. */
#include "actionbench.h"
#include "operator/refusal.h"
#include "test.h"

#include <string.h>

static void test_pods_beside_each_other(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    assert_int_equal(bench_n_open(), 1); /* the Service, alone */
    bench_created(0);
    assert_int_equal(bench_n_open(), 1); /* the first pod, alone */
    bench_created(1);
    assert_int_equal(bench_n_open(), 2);
    bench_created(3); /* in any order */
    assert_int_equal(bench_n_open(), 3);
    for (int i = 4; i < 12; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 8); /* and no more */
    bench_created(2);
    for (int i = 12; i < BENCH_PODS; i++)
        bench_created(i);
    assert_int_equal(bench_count("/pods"), BENCH_PODS);
    assert_int_equal(bench_count("/events"), 0); /* one pod is still under way */
    assert_int_equal(B.n_done, 0);
    bench_created(BENCH_PODS);
    assert_int_equal(bench_count("/events"), 1);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_int_equal(B.result.pods_created, BENCH_PODS);
    assert_string_equal(B.result.versions[CHILD_SERVICE], "100");
    assert_string_equal(B.result.versions[CHILD_POD], "120"); /* the highest */
}

static void test_a_failure_begins_nothing_more(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    for (int i = 0; i < 4; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 4);
    int before = B.n;
    bench_answer(5, 503, "{}");
    bench_answer(7, 500, "{}");
    bench_created(4); /* what went well counts, and is awaited in the cache */
    assert_int_equal(B.n, before);
    assert_int_equal(B.n_done, 0);
    bench_created(6);
    assert_int_equal(B.n_done, 1);
    assert_false(B.result.ok);
    assert_non_null(strstr(B.result.err.msg, "503")); /* the first one */
    assert_int_equal(B.result.pods_created, 5);
    assert_string_equal(B.result.versions[CHILD_POD], "106");
    assert_true(B.result.lost);
    assert_int_equal(bench_count("/events"), 0);
}

/* The name is taken by an older object of ours. Its delete without an answer is a lost write, as any other; a GET is none. */
static void test_older_and_no_answer(void **state)
{
    static const char OLDER[] = "{\"metadata\":{\"uid\":\"old\",\"ownerReferences\":[{\"apiVersion\":"
                                "\"batch.tensorstack.dev/v1beta1\",\"kind\":\"PyTorchTrainingJob\",\"name\":"
                                "\"job\",\"uid\":\"job-uid\",\"controller\":true}]}}";

    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        bench_begin(1);
        bench_answer(0, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
        assert_string_equal(B.calls[1].method, "GET");
        bench_answer(1, lost ? 200 : 500, lost ? OLDER : "{}");
        if (lost) {
            assert_string_equal(B.calls[2].method, "DELETE");
            bench_answer(2, 500, "{}");
        }
        assert_int_equal(B.n_done, 1);
        assert_false(B.result.ok);
        assert_int_equal(B.result.lost, lost);
    }
}

static void add_guarded(void)
{
    bench_fresh();
    bench_add(ACTION_CREATE, CHILD_SERVICE, "j-rdzv");
    bench_add(ACTION_CREATE, CHILD_POLICY, "j-u");
    bench_add(ACTION_CREATE, CHILD_KEY, "j-u");
    bench_add(ACTION_CREATE, CHILD_POD, "j-node-0");
    bench_run(NULL);
    assert_int_equal(bench_n_open(), 3); /* beside each other, and no pod yet */
}

/* That the name of a guard is taken means that it is there. Nothing is read, and nothing has to be seen. */
static void test_guards_come_before_the_pods(void **state)
{
    (void)state;
    add_guarded();
    bench_answer(2, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    bench_created(0);
    assert_int_equal(B.n, 3);
    bench_created(1);
    assert_int_equal(B.n, 4);
    bench_created(3);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_int_equal(B.result.pods_created, 1);
    assert_false(B.result.unseen);
}

/* Of a later attempt, whose Service is there. */
static void test_pods_wait_for_the_last_guard(void **state)
{
    (void)state;
    bench_fresh();
    bench_add(ACTION_CREATE, CHILD_POLICY, "j-u");
    bench_add(ACTION_CREATE, CHILD_KEY, "j-u");
    bench_add(ACTION_CREATE, CHILD_POD, "j-node-0");
    bench_run(NULL);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(B.n, 2);
        bench_answer(i, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    }
    assert_int_equal(bench_count("/pods"), 1);
}

static void test_without_its_guards_there_is_no_pod(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        add_guarded();
        bench_answer(1 + i, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}");
        bench_created(0);
        bench_created(2 - i);
        assert_int_equal(B.n, 3);
        assert_int_equal(B.n_done, 1);
        assert_int_equal(B.result.problem.kind, PROBLEM_REFUSED);
        assert_int_equal(B.result.problem.child, i == 0 ? CHILD_POLICY : CHILD_KEY);
    }
}

/* A quota may have room for pods of the first replicaSpec and none for those of the second. */
static void test_the_first_pod_of_each_spec_goes_alone(void **state)
{
    (void)state;
    bench_fresh();
    for (int i = 0; i < 8; i++)
        bench_add(ACTION_CREATE, CHILD_POD, i < 4 ? "node" : "worker");
    B.actions[0].first = B.actions[4].first = true;
    bench_run(NULL);
    assert_int_equal(B.n, 1);
    bench_created(0);
    bench_created(1);
    bench_created(2);
    assert_int_equal(B.n, 4);
    bench_created(3);
    assert_int_equal(B.n, 5);
    assert_int_equal(bench_n_open(), 1);
    bench_answer(4, 500, "{}");
    assert_int_equal(B.n, 5);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_created, 4);
}

/* Another pod of the first spec never goes beside the first of the second one. */
static void test_after_the_first_of_a_spec_one_more_at_a_time(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    B.actions[5].first = true; /* the fifth pod */
    for (int i = 0; i < 5; i++)
        bench_created(i);
    assert_int_equal(bench_n_open(), 1);
    bench_created(5);
    assert_int_equal(bench_n_open(), 2);
    bench_created(6);
    assert_int_equal(bench_n_open(), 3);
}

/* Those of an attempt go beside each other; what comes behind them waits for the last. */
static void test_deletes_beside_each_other(void **state)
{
    (void)state;
    bench_fresh();
    for (int i = 0; i < 12; i++) {
        bench_add(ACTION_DELETE, CHILD_POD, "pod");
        B.actions[i].uid = "u";
    }
    bench_add(ACTION_CREATE, CHILD_POD, "pod");
    bench_run(NULL);
    assert_int_equal(B.n, 8);
    for (int i = 0; i < 11; i++)
        bench_answer(i, 200, "{}");
    assert_int_equal(B.n, 12);
    bench_answer(11, 200, "{}");
    assert_int_equal(B.n, 13);
    bench_created(12);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_deleted, 12);
}

static bool is_few(void *ctx)
{
    (void)ctx;
    return B.n < 4;
}

/* The job is gone: what is under way ends, and nothing is sent any more, not even to look at what has a name. */
static void test_nothing_more_is_sent(void **state)
{
    (void)state;
    bench_prepare(BENCH_PODS);
    bench_run(is_few);
    for (int i = 0; i < 3; i++)
        bench_created(i);
    assert_int_equal(B.n, 4);
    bench_answer(3, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    assert_int_equal(B.n, 4);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.pods_created, 2);
}

/* Events go behind what makes jobs run. */
static void test_what_can_wait(void **state)
{
    (void)state;
    bench_begin(1);
    B.actions[3] = (struct action){.kind = ACTION_STATUS, .child = CHILD_JOB, .name = "job", .body = "{}"};
    B.plan.n_actions = 4;
    for (int i = 0; i < 2; i++)
        bench_created(i);
    assert_int_equal(B.n, 4);
    for (int i = 0; i < B.n; i++) {
        assert_string_equal(B.calls[i].ns, "ns");
        assert_int_equal(B.calls[i].later, strstr(B.calls[i].path, "/events") != NULL);
    }
    assert_int_equal(bench_count("/events"), 1);
}

static void test_cancel(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    for (int i = 0; i < 5; i++)
        bench_created(i);
    int under_way = bench_n_open();
    assert_in_range(under_way, 2, 8);
    actions_cancel(TAKE(B.run));
    assert_int_equal(B.cancelled, under_way);
    assert_int_equal(B.n_done, 0);
}

#define STATUS(code, message) "{\"kind\":\"Status\",\"code\":" #code ",\"message\":\"" message "\"}"

/* What Kubernetes 1.34 answered to STRICT_BODY. */
static const char STRICT_BODY[] =
    "{\"metadata\":{\"labels\":{\"" LABEL_TYPE
    "\":\"worker\"}},\"spec\":{\"nodeselector\":{},\"initContainers\":[{\"name\":"
    "\"launcher\"},{\"name\":\"prepare\",\"commands\":[]}],\"tolerations\":[{\"kee\":1}],\"containers\":[{"
    "\"name\":\"pytorch\","
    "\"env\":[{\"name\":\"A\"},{\"name\":\"FOO\",\"vale\":1}],\"resource\":{}}]}}";
static const char STRICT[] = STATUS(
    400,
    "Pod in version \\\"v1\\\" cannot be handled as a Pod: strict decoding error: unknown field "
    "\\\"spec.nodeselector\\\", unknown field \\\"spec.initContainers[1].commands\\\", unknown field "
    "\\\"spec.tolerations[0].kee\\\", unknown field \\\"spec.containers[0].env[1].vale\\\", duplicate field "
    "\\\"spec.containers[0].resource\\\"");
#define IN "spec.replicaSpecs[worker].template.spec."
static const char STRICT_TOLD[] =
    "Pod in version \"v1\" cannot be handled as a Pod: strict decoding error: unknown field \"" IN
    "nodeselector\", unknown field \"" IN "initContainers[prepare].commands\", unknown field \"" IN
    "tolerations[0].kee\", unknown field \"" IN "containers[pytorch].env[FOO].vale\", duplicate field \"" IN
    "containers[pytorch].resource\" (HTTP 400)";

/* The first pod gets this answer: what the job's problem is then, and in which words. */
static void refused(int status, const char *body, enum problem_kind kind, const char *words)
{
    bench_begin(2);
    B.actions[1].body = STRICT_BODY;
    bench_created(0);
    assert_non_null(strstr(B.calls[1].path, "fieldValidation=Strict"));
    assert_null(strstr(B.calls[0].path, "fieldValidation")); /* the Service */
    bench_answer(1, status, body);
    assert_int_equal(B.n, 2);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, kind);
    assert_string_equal(B.result.problem.message, words);
}

static void test_who_refused_decides(void **state)
{
    (void)state;
    refused(400, STRICT, PROBLEM_INVALID, STRICT_TOLD);
    refused(
        400,
        STATUS(400, "Pod in version \\\"v1\\\" cannot be handled as a Pod: json: cannot unmarshal number"),
        PROBLEM_INVALID,
        "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number (HTTP 400)");
    refused(422, STATUS(422, "Pod \\\"j-node-0\\\" is invalid: spec.containers[0].image: Required value"),
            PROBLEM_INVALID,
            "Pod \"j-node-0\" is invalid: spec.containers[0].image: Required value (HTTP 422)");
    refused(422,
            STATUS(422, "pods \\\"j\\\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: strict "
                        "decoding error: no"),
            PROBLEM_REFUSED,
            "pods \"j\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: strict decoding error: "
            "no (HTTP 422)");
    refused(400, STATUS(400, "admission webhook \\\"w\\\" denied the request: Pod \\\"j\\\" is invalid: no"),
            PROBLEM_REFUSED,
            "admission webhook \"w\" denied the request: Pod \"j\" is invalid: no (HTTP 400)");
    /* A quota that is used up gets one request, not eight. */
    refused(403, STATUS(403, "exceeded quota"), PROBLEM_REFUSED, "exceeded quota (HTTP 403)");
    /* It was made, and would be made and removed again for ever. */
    refused(201, "{\"metadata\":{\"uid\":\"u\",\"labels\":{\"a\":\"b\"}}}", PROBLEM_REFUSED,
            "a webhook or a policy removed the label " LABEL_JOB " from Pod pod");
}

/* A group stands behind the kinds of some. */
static void test_whose_words(void **state)
{
    (void)state;
    assert_int_equal(refusal_of("Deployment", "Deployment.apps \"b\" is invalid: spec: no"), REFUSAL_VALUE);
    assert_int_equal(refusal_of("Deployment", "deployments.apps \"b\" is forbidden: \"x\" is invalid: no"),
                     REFUSAL_POLICY);
    assert_int_equal(refusal_of("Pod", "Podium in version \"v1\": strict decoding error: "), REFUSAL_POLICY);
    assert_int_equal(refusal_of("Pod", "Pod"), REFUSAL_POLICY);
    assert_int_equal(refusal_of("Pod", ""), REFUSAL_POLICY);
}

/* A job that once ran: the same pod without what the server does not know, and the pods behind it at once; reported once. */
static void test_a_job_that_ran_goes_on_without_the_field(void **state)
{
    (void)state;
    bench_begin(2);
    for (int i = 1; i <= 2; i++)
        B.actions[i] = (struct action){
            .kind = ACTION_CREATE, .child = CHILD_POD, .name = "pod", .body = STRICT_BODY, .lenient = true};
    bench_created(0);
    bench_answer(1, 400, STRICT);
    assert_int_equal(B.n, 3);
    assert_non_null(strstr(B.calls[2].path, "fieldValidation=Ignore"));
    bench_created(2);
    assert_int_equal(B.n, 4);
    assert_non_null(strstr(B.calls[3].path, "fieldValidation=Ignore"));
    bench_created(3);
    assert_int_equal(B.n_done, 1);
    assert_true(B.result.ok);
    assert_int_equal(B.result.pods_created, 2);
    assert_non_null(strstr(B.result.ignored, STRICT_TOLD));
    bench_answer(4, 201, "{}");
    assert_int_equal(bench_count("/events"), 2); /* ReplicaCreated and Ignored */
}

/* One that is refused leniently, too, is not sent for ever. */
static void test_a_lenient_pod_may_be_refused(void **state)
{
    (void)state;
    bench_begin(1);
    B.actions[1].lenient = true;
    bench_created(0);
    bench_answer(1, 400, STRICT);
    bench_answer(2, 400, STRICT);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, PROBLEM_INVALID);
}

static const char OVERLOADED[] = "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":"
                                 "\"overloaded\",\"code\":429,\"details\":{"
                                 "\"retryAfterSeconds\":7}}";

/* What it failed on: the child, the server's message, and when the create may be sent again. */
static void test_a_failed_create_is_a_problem(void **state)
{
    (void)state;
    bench_begin(BENCH_PODS);
    bench_created(0);
    bench_answer(1, 429, OVERLOADED);
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, PROBLEM_FAILED);
    assert_string_equal(B.result.problem.name, "pod");
    assert_string_equal(B.result.problem.message, "creating Pod pod: overloaded (HTTP 429 TooManyRequests)");
    assert_int_equal(B.result.retry_after_ms, 7000);
}

/* One action that is no create, answered so. */
static void do_one(enum action_kind kind, enum child_kind child, int status, const char *body)
{
    bench_fresh();
    bench_add(kind, child, "one");
    B.actions[0].uid = "u";
    bench_run(NULL);
    bench_answer(0, status, body);
    assert_int_equal(B.n_done, 1);
}

/* No watch would ever show it: nothing is awaited, and it is reported. */
static void test_children_without_the_label(void **state)
{
    static const enum child_kind KINDS[] = {CHILD_POD, CHILD_SERVICE, CHILD_DEPLOYMENT};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(KINDS); i++) {
        do_one(ACTION_CREATE, KINDS[i], 201, "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"}}");
        assert_int_equal(B.result.problem.kind, PROBLEM_REFUSED);
        assert_string_equal(B.result.versions[KINDS[i]], "");
    }
}

/* What the pass may believe after the answer to a delete, or to a write of the status. */
static void test_what_an_answer_says(void **state)
{
#define DELETED ACTION_DELETE, CHILD_POD
#define ENDED ACTION_DELETE, CHILD_JOB
#define WROTE ACTION_STATUS, CHILD_JOB
#define SEVEN "{\"metadata\":{\"resourceVersion\":\"7\"}}"
    static const struct {
        enum action_kind kind;
        enum child_kind child;
        int status;
        const char *body, *version;
        bool ok, unseen, doubt, lost;
        int pods_deleted;
    } ROWS[] = {
        {DELETED, 200, SEVEN, "7", true, false, false, false, 1},
        {DELETED, 200, "{\"kind\":\"Status\"}", "", true, true, false, false, 1},
        {DELETED, 404, "{}", "", true, true, false, false, 0},
        {DELETED, 409, "{}", "", true, true, false, false, 0},
        {DELETED, 500, "{}", "", false, false, false, true, 0},
        {DELETED, 403, "{}", "", false, false, false, false, 0},
        {ACTION_DELETE, CHILD_SERVICE, 503, "{}", "", false, false, false, true, 0},
        {ENDED, 200, "{}", "", true, true, false, false, 0},
        {ENDED, 404, "{}", "", false, false, true, false, 0},
        {ENDED, 409, "{}", "", false, false, true, false, 0},
        {ENDED, 500, "{}", "", false, false, true, true, 0},
        {ENDED, 403, "{}", "", false, false, false, false, 0},
        {WROTE, 200, SEVEN, "7", true, false, false, false, 0},
        {WROTE, 200, "{\"metadata\":{}}", "", true, false, true, false,
         0}, /* as of one that was cut before it */
        {WROTE, 200, "no JSON", "", false, false, true, true, 0},
        {WROTE, 404, "{}", "", false, false, true, false, 0},
        {WROTE, 409, "{}", "", false, false, true, false, 0},
        {WROTE, 500, "{}", "", false, false, true, true, 0},
        {WROTE, 422, "{}", "", false, false, false, false, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        const struct actions_result *r = &B.result;
        do_one(ROWS[i].kind, ROWS[i].child, ROWS[i].status, ROWS[i].body);
        if (r->ok != ROWS[i].ok || r->unseen != ROWS[i].unseen || r->doubt != ROWS[i].doubt ||
            r->lost != ROWS[i].lost || r->pods_deleted != ROWS[i].pods_deleted ||
            r->status_written != (ROWS[i].kind == ACTION_STATUS && ROWS[i].ok))
            fail_msg("row %zu: ok %d, unseen %d, doubt %d, lost %d, %d deleted, status %d", i, r->ok,
                     r->unseen, r->doubt, r->lost, r->pods_deleted, r->status_written);
        assert_string_equal(r->versions[ROWS[i].child], ROWS[i].version);
    }
}

/* A pod is patched to keep its log. One that may not be patched is deleted, at the version that was planned; what happened to
 * it since is seen first. */
static void test_patches_of_pods(void **state)
{
    static const struct {
        int status, n_requests;
        bool ok;
    } ROWS[] = {{200, 1, true},  {403, 2, true},  {422, 2, true},  {400, 2, true},
                {409, 1, false}, {404, 1, false}, {500, 1, false}, {429, 1, false}};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        bench_fresh();
        bench_add(ACTION_PATCH, CHILD_POD, "one");
        B.actions[0].uid = "u";
        B.actions[0].version = "7";
        bench_run(NULL);
        assert_string_equal(B.calls[0].method, "PATCH");
        bench_answer(0, ROWS[i].status, "{}");
        assert_int_equal(B.n, ROWS[i].n_requests);
        if (B.n == 2) {
            assert_string_equal(B.calls[1].method, "DELETE");
            assert_string_equal(
                B.calls[1].body,
                "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\","
                "\"resourceVersion\":\"7\"},\"propagationPolicy\":\"Background\"}");
            bench_answer(1, 200, "{}");
            assert_int_equal(B.result.pods_deleted, 1);
            assert_true(B.result.err.msg[0]);
        }
        assert_int_equal(B.n_done, 1);
        assert_int_equal(B.result.ok, ROWS[i].ok);
    }
    bench_fresh();
    bench_add(ACTION_PATCH, CHILD_POD, "one");
    B.actions[0].uid = "u";
    bench_run(NULL);
    bench_answer(0, 403, "{}");
    bench_answer(1, 403, "{}");
    assert_false(B.result.ok);
    assert_non_null(strstr(B.result.err.msg, "deleting Pod one"));
}

#define WORKLOAD(version)                                                                                    \
    "{\"metadata\":{\"name\":\"w\",\"uid\":\"u\",\"resourceVersion\":\"" version                             \
    "\"},\"spec\":{\"queueName\":\"a\"}}"

static void edit_workload(const char *got)
{
    bench_fresh();
    bench_add(ACTION_EDIT, CHILD_WORKLOAD, "w");
    B.actions[0].uid = "u";
    B.actions[0].version = "7";
    B.actions[0].edit = EDIT_SPEC;
    B.actions[0].body = "{\"spec\":{\"queueName\":\"b\"}}";
    bench_run(NULL);
    assert_string_equal(B.calls[0].method, "GET");
    bench_answer(0, 200, got);
}

/* Only what was planned from is changed, and never unseen. */
static void test_edits(void **state)
{
    (void)state;
    edit_workload(WORKLOAD("7"));
    assert_string_equal(B.calls[1].method, "PUT");
    assert_non_null(strstr(B.calls[1].body, "\"resourceVersion\":\"7\"},\"spec\":{\"queueName\":\"b\"}"));
    bench_answer(1, 200, WORKLOAD("8"));
    assert_true(B.result.ok);
    assert_string_equal(B.result.versions[CHILD_WORKLOAD], "8");
    edit_workload(WORKLOAD("8"));
    assert_int_equal(B.n, 1);
    assert_int_equal(B.result.err.kind, ERR_CONFLICT);
    assert_string_equal(B.result.err.msg, "changing Workload w: it has changed since it was planned");
    edit_workload("{\"metadata\":{\"name\":\"w\",\"uid\":\"v\",\"resourceVersion\":\"7\"}}");
    assert_int_equal(B.n, 1);
    assert_int_equal(B.result.err.kind, ERR_CONFLICT);
    edit_workload("{\"metadata\":{\"name\":\"w\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}");
    assert_int_equal(B.n, 1); /* it has no spec */
    assert_true(B.result.ok && B.result.unseen);
    bench_fresh();
    edit_workload(WORKLOAD("7"));
    bench_answer(1, 404, "{\"kind\":\"Status\",\"reason\":\"NotFound\"}");
    assert_true(B.result.ok && B.result.unseen);
    edit_workload(WORKLOAD("7"));
    bench_answer(1, 409, "{\"kind\":\"Status\",\"reason\":\"Conflict\"}");
    assert_false(B.result.ok);
    assert_int_equal(B.result.problem.kind, PROBLEM_NONE);
    edit_workload(WORKLOAD("7"));
    bench_answer(1, 422, "{\"kind\":\"Status\",\"reason\":\"Invalid\",\"message\":\"no such queue\"}");
    assert_int_equal(B.result.problem.kind, PROBLEM_REFUSED);
    assert_int_equal(B.result.problem.child, CHILD_WORKLOAD);
    assert_non_null(strstr(B.result.problem.message, "no such queue"));
    /* Of an admitted Workload that is no problem of the job. */
    edit_workload(WORKLOAD("7"));
    B.actions[0].keep = true;
    bench_answer(1, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}");
    assert_int_equal(B.result.problem.kind, PROBLEM_NONE);
}

static void test_retry_after(void **state)
{
    (void)state;
    do_one(ACTION_STATUS, CHILD_JOB, 429, OVERLOADED);
    assert_false(B.result.ok);
    assert_int_equal(B.result.retry_after_ms, 7000);
    assert_int_equal(B.result.problem.kind, PROBLEM_NONE);
    do_one(ACTION_DELETE, CHILD_POD, 500, "{}");
    assert_int_equal(B.result.retry_after_ms, -1);
    do_one(ACTION_CREATE, CHILD_POD, 503,
           "{\"kind\":\"Status\",\"code\":503,\"message\":\"no\",\"details\":{\"retryAfterSeconds\":80000}}");
    assert_int_equal(B.result.retry_after_ms, 60000); /* a webhook's word, perhaps */
}

static void test_a_taken_name_beside_others(void **state)
{
    (void)state;
    bench_begin(3);
    bench_created(0);
    bench_created(1);
    assert_int_equal(bench_n_open(), 2);
    bench_answer(2, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"exists\"}");
    assert_int_equal(B.n, 5);
    assert_string_equal(B.calls[4].method, "GET");
    bench_created(3);
    assert_int_equal(B.n_done, 0);
    bench_answer(4, 200, "{\"metadata\":{\"uid\":\"other\"}}");
    assert_int_equal(B.n_done, 1);
    assert_int_equal(B.result.problem.kind, PROBLEM_NAME_CONFLICT);
    assert_int_equal(B.result.pods_created, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_beside_each_other),
        cmocka_unit_test(test_a_failure_begins_nothing_more),
        cmocka_unit_test(test_older_and_no_answer),
        cmocka_unit_test(test_guards_come_before_the_pods),
        cmocka_unit_test(test_pods_wait_for_the_last_guard),
        cmocka_unit_test(test_without_its_guards_there_is_no_pod),
        cmocka_unit_test(test_the_first_pod_of_each_spec_goes_alone),
        cmocka_unit_test(test_after_the_first_of_a_spec_one_more_at_a_time),
        cmocka_unit_test(test_deletes_beside_each_other),
        cmocka_unit_test(test_nothing_more_is_sent),
        cmocka_unit_test(test_what_can_wait),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_who_refused_decides),
        cmocka_unit_test(test_whose_words),
        cmocka_unit_test(test_a_job_that_ran_goes_on_without_the_field),
        cmocka_unit_test(test_a_lenient_pod_may_be_refused),
        cmocka_unit_test(test_a_failed_create_is_a_problem),
        cmocka_unit_test(test_children_without_the_label),
        cmocka_unit_test(test_what_an_answer_says),
        cmocka_unit_test(test_patches_of_pods),
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_a_taken_name_beside_others),
    };

    return cmocka_run_group_tests(tests, NULL, bench_end);
}
