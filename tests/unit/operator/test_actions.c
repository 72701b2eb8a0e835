/* test_actions.c - what is begun when, over a transport that answers when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kube/loop.h"
#include "operator/actions.h"
#include "operator/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 64, PODS = 20 };

static const struct actions_target TARGET = {.ns = "ns", .job = "job", .uid = "job-uid"};

/* The n-th request ever made is calls[n]. */
struct kube_transfer {
    struct kube_http_handler handler;
    char method[8];
    char path[160];
    char ns[16];
    char body[256];
    bool open, later;
};

struct bench {
    struct kube_transfer calls[CALLS_MAX];
    int n, cancelled;
    struct kube_loop *loop;
    struct kube_transport transport;
    struct kube_recorder *recorder;
    struct arena arena;
    struct action actions[PODS + 4];
    struct plan plan;
    struct actions *run;
    struct actions_result result;
    int n_done;
};

static struct kube_transfer *start(void *ctx, const struct kube_http_request *req,
                                   const struct kube_http_handler *handler, struct err *err)
{
    struct bench *b = ctx;

    (void)err;
    assert_in_range(b->n, 0, CALLS_MAX - 1);
    struct kube_transfer *c = &b->calls[b->n++];
    *c = (struct kube_transfer){.handler = *handler, .open = true, .later = req->later};
    snprintf(c->ns, sizeof(c->ns), "%s", req->ns);
    snprintf(c->method, sizeof(c->method), "%s", req->method);
    snprintf(c->path, sizeof(c->path), "%s", req->path);
    snprintf(c->body, sizeof(c->body), "%.*s", (int)req->body.len, req->body.p ? req->body.p : "");
    return c;
}

static void cancel(void *ctx, struct kube_transfer *call)
{
    struct bench *b = ctx;

    assert_true(call->open);
    call->open = false;
    b->cancelled++;
}

static void on_done(void *ctx, const struct actions_result *r)
{
    struct bench *b = ctx;

    b->n_done++;
    b->result = *r;
    b->run = NULL;
}

static int open_calls(const struct bench *b)
{
    int n = 0;

    for (int i = 0; i < b->n; i++)
        n += b->calls[i].open;
    return n;
}

static int count(const struct bench *b, const char *path_part)
{
    int n = 0;

    for (int i = 0; i < b->n; i++)
        n += strstr(b->calls[i].path, path_part) != NULL;
    return n;
}

static void answer(struct bench *b, int i, int status, const char *body)
{
    struct kube_http_response r = {.status = status, .retry_after_ms = -1, .body = sv_from(body)};

    assert_true(i < b->n && b->calls[i].open);
    b->calls[i].open = false;
    b->calls[i].handler.done(b->calls[i].handler.ctx, &r, NULL);
}

static void created(struct bench *b, int i)
{
    char body[64];

    snprintf(body, sizeof(body), "{\"metadata\":{\"resourceVersion\":\"%d\"}}", 100 + i);
    answer(b, i, 201, body);
}

static void add(struct bench *b, enum action_kind kind, enum child_kind child, const char *name)
{
    struct action *act = &b->actions[b->plan.n_actions++];

    *act = (struct action){.kind = kind, .child = child, .name = name, .body = "{}"};
    act->reason = act->message = name;
}

/* A Service, then the pods, then the event that tells of them. */
static void begin(struct bench *b, int pods)
{
    struct err err;

    *b = (struct bench){.transport = {.start = start, .cancel = cancel, .ctx = b}};
    b->loop = kube_loop_new(clock_system(), &err);
    assert_non_null(b->loop);
    b->recorder = kube_recorder_new(b->loop, &b->transport, "test");
    b->plan.actions = b->actions;
    add(b, ACTION_CREATE, CHILD_SERVICE, "service");
    for (int i = 0; i < pods; i++)
        add(b, ACTION_CREATE, CHILD_POD, "pod");
    add(b, ACTION_EVENT, CHILD_JOB, "ReplicaCreated");
    b->run = actions_new(&b->transport, b->recorder, &TARGET, &b->plan, &b->arena, on_done, b);
    actions_run(b->run);
}

static void end(struct bench *b)
{
    actions_cancel(b->run);
    kube_recorder_free(b->recorder);
    kube_loop_free(b->loop);
    arena_release(&b->arena);
}

static void test_pods_beside_each_other(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    assert_int_equal(open_calls(&b), 1); /* the Service, alone */
    created(&b, 0);
    assert_int_equal(open_calls(&b), 1); /* the first pod, alone */
    created(&b, 1);
    assert_int_equal(open_calls(&b), 2);
    created(&b, 3); /* in any order */
    assert_int_equal(open_calls(&b), 3);
    for (int i = 4; i < 12; i++)
        created(&b, i);
    assert_int_equal(open_calls(&b), 8); /* and no more */
    created(&b, 2);
    for (int i = 12; i < PODS; i++)
        created(&b, i);
    assert_int_equal(count(&b, "/pods"), PODS);
    assert_int_equal(count(&b, "/events"), 0); /* one pod is still under way */
    assert_int_equal(b.n_done, 0);
    created(&b, PODS);
    assert_int_equal(count(&b, "/events"), 1);
    assert_int_equal(b.n_done, 1);
    assert_true(b.result.ok);
    assert_int_equal(b.result.pods_created, PODS);
    assert_string_equal(b.result.versions[CHILD_SERVICE], "100");
    assert_string_equal(b.result.versions[CHILD_POD], "120"); /* the highest */
    end(&b);
}

static void test_a_failure_begins_nothing_more(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    for (int i = 0; i < 4; i++)
        created(&b, i);
    assert_int_equal(open_calls(&b), 4);
    int before = b.n;
    answer(&b, 5, 503, "{}");
    answer(&b, 7, 500, "{}");
    created(&b, 4); /* what went well counts, and is awaited in the cache */
    assert_int_equal(b.n, before);
    assert_int_equal(b.n_done, 0);
    created(&b, 6);
    assert_int_equal(b.n_done, 1);
    assert_false(b.result.ok);
    assert_non_null(strstr(b.result.err.msg, "503")); /* the first one */
    assert_int_equal(b.result.pods_created, 5);
    assert_string_equal(b.result.versions[CHILD_POD], "106");
    assert_true(b.result.lost);
    assert_int_equal(count(&b, "/events"), 0);
    end(&b);
}

/* A quota that is used up answers once, not eight times. */
static void test_a_spent_quota_is_asked_once(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    created(&b, 0);
    answer(&b, 1, 403, "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"exceeded quota\"}");
    assert_int_equal(b.n, 2);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_REFUSED);
    end(&b);
}
/* A quota may have room for pods of the first replicaSpec and none for those of the second. */
static void test_the_first_pod_of_each_spec_goes_alone(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 0);
    b.plan.n_actions = 0;
    for (int i = 0; i < 8; i++)
        add(&b, ACTION_CREATE, CHILD_POD, i < 4 ? "node" : "worker");
    b.actions[0].first = b.actions[4].first = true;
    actions_cancel(TAKE(b.run));
    b.n = b.cancelled = 0;
    b.run = actions_new(&b.transport, b.recorder, &TARGET, &b.plan, &b.arena, on_done, &b);
    actions_run(b.run);
    assert_int_equal(b.n, 1);
    created(&b, 0);
    created(&b, 1);
    created(&b, 2);
    assert_int_equal(b.n, 4);
    created(&b, 3);
    assert_int_equal(b.n, 5);
    assert_int_equal(open_calls(&b), 1);
    answer(&b, 4, 500, "{}");
    assert_int_equal(b.n, 5);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.pods_created, 4);
    end(&b);
}

/* Another pod of the first spec never goes beside the first of the second one. */
static void test_after_the_first_of_a_spec_one_more_at_a_time(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    b.actions[5].first = true; /* the fifth pod */
    for (int i = 0; i < 5; i++)
        created(&b, i);
    assert_int_equal(open_calls(&b), 1);
    created(&b, 5);
    assert_int_equal(open_calls(&b), 2);
    created(&b, 6);
    assert_int_equal(open_calls(&b), 3);
    end(&b);
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
    static struct bench b;

    begin(&b, 2);
    b.actions[1].body = STRICT_BODY;
    created(&b, 0);
    assert_non_null(strstr(b.calls[1].path, "fieldValidation=Strict"));
    assert_null(strstr(b.calls[0].path, "fieldValidation")); /* the Service */
    answer(&b, 1, status, body);
    assert_int_equal(b.n, 2);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, kind);
    assert_string_equal(b.result.problem.message, words);
    end(&b);
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
    refused(403, STATUS(403, "exceeded quota"), PROBLEM_REFUSED, "exceeded quota (HTTP 403)");
    /* It was made, and would be made and removed again for ever. */
    refused(201, "{\"metadata\":{\"labels\":{\"a\":\"b\"}}}", PROBLEM_REFUSED,
            "a webhook or a policy took the label " LABEL_JOB " from pod pod");
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

/* A job that once ran: the same pod without what the server does not know, and the pods behind it at once; told once. */
static void test_a_job_that_ran_goes_on_without_the_field(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 2);
    for (int i = 1; i <= 2; i++)
        b.actions[i] = (struct action){
            .kind = ACTION_CREATE, .child = CHILD_POD, .name = "pod", .body = STRICT_BODY, .lenient = true};
    created(&b, 0);
    answer(&b, 1, 400, STRICT);
    assert_int_equal(b.n, 3);
    assert_non_null(strstr(b.calls[2].path, "fieldValidation=Ignore"));
    created(&b, 2);
    assert_int_equal(b.n, 4);
    assert_non_null(strstr(b.calls[3].path, "fieldValidation=Ignore"));
    created(&b, 3);
    assert_int_equal(b.n_done, 1);
    assert_true(b.result.ok);
    assert_int_equal(b.result.pods_created, 2);
    assert_non_null(strstr(b.result.ignored, STRICT_TOLD));
    answer(&b, 4, 201, "{}");
    assert_int_equal(count(&b, "/events"), 2); /* ReplicaCreated and Ignored */
    end(&b);
}

/* One that is refused leniently, too, is not sent for ever. */
static void test_a_lenient_pod_may_be_refused(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 1);
    b.actions[1].lenient = true;
    created(&b, 0);
    answer(&b, 1, 400, STRICT);
    answer(&b, 2, 400, STRICT);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_INVALID);
    end(&b);
}

static const char OVERLOADED[] = "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":"
                                 "\"overloaded\",\"code\":429,\"details\":{"
                                 "\"retryAfterSeconds\":7}}";

/* What it came to grief on: the child, the server's words, and when it may be asked again. */
static void test_a_failed_create_is_a_problem(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    created(&b, 0);
    answer(&b, 1, 429, OVERLOADED);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_FAILED);
    assert_string_equal(b.result.problem.name, "pod");
    assert_string_equal(b.result.problem.message, "creating Pod pod: overloaded (HTTP 429 TooManyRequests)");
    assert_int_equal(b.result.retry_after_ms, 7000);
    end(&b);
}

/* One action that is no create, answered so. */
static void do_one(struct bench *b, enum action_kind kind, enum child_kind child, int status,
                   const char *body)
{
    begin(b, 0);
    actions_cancel(TAKE(b->run));
    b->plan.n_actions = b->n = b->cancelled = 0;
    add(b, kind, child, "one");
    b->actions[0].uid = "u";
    b->run = actions_new(&b->transport, b->recorder, &TARGET, &b->plan, &b->arena, on_done, b);
    actions_run(b->run);
    answer(b, 0, status, body);
    assert_int_equal(b->n_done, 1);
}

/* Those of an attempt go beside each other; what comes behind them waits for the last. */
static void test_deletes_beside_each_other(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 0);
    actions_cancel(TAKE(b.run));
    b.plan.n_actions = b.n = b.cancelled = 0;
    for (int i = 0; i < 12; i++) {
        add(&b, ACTION_DELETE, CHILD_POD, "pod");
        b.actions[i].uid = "u";
    }
    add(&b, ACTION_CREATE, CHILD_POD, "pod");
    b.run = actions_new(&b.transport, b.recorder, &TARGET, &b.plan, &b.arena, on_done, &b);
    actions_run(b.run);
    assert_int_equal(b.n, 8);
    for (int i = 0; i < 11; i++)
        answer(&b, i, 200, "{}");
    assert_int_equal(b.n, 12);
    answer(&b, 11, 200, "{}");
    assert_int_equal(b.n, 13);
    created(&b, 12);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.pods_deleted, 12);
    end(&b);
}

static bool is_few(void *ctx)
{
    const struct bench *b = ctx;

    return b->n < 4;
}

/* The job is gone: what is under way ends, and nothing is sent any more, not even to look at what has a name. */
static void test_nothing_more_is_sent(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    actions_cancel(TAKE(b.run));
    b.n = b.cancelled = 0;
    const struct actions_target target = {"ns", "job", "job-uid", is_few, &b, false};
    b.run = actions_new(&b.transport, b.recorder, &target, &b.plan, &b.arena, on_done, &b);
    actions_run(b.run);
    for (int i = 0; i < 3; i++)
        created(&b, i);
    assert_int_equal(b.n, 4);
    answer(&b, 3, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\"}");
    assert_int_equal(b.n, 4);
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.pods_created, 2);
    end(&b);
}

static void test_deletes(void **state)
{
    static const struct {
        enum child_kind child;
        int status;
        const char *body;
        bool ok;
        const char *version;
        bool unseen, doubt;
        int pods_deleted;
    } ROWS[] = {
        {CHILD_POD, 200, "{\"metadata\":{\"resourceVersion\":\"7\"}}", true, "7", false, false, 1},
        {CHILD_POD, 200, "{\"kind\":\"Status\"}", true, "", true, false, 1},
        {CHILD_POD, 404, "{}", true, "", true, false, 0},
        {CHILD_POD, 409, "{}", true, "", true, false, 0},
        {CHILD_POD, 500, "{}", false, "", false, false, 0},
        {CHILD_POD, 403, "{}", false, "", false, false, 0},
        {CHILD_SERVICE, 503, "{}", false, "", false, false, 0},
        {CHILD_JOB, 200, "{}", true, "", true, false, 0},
        {CHILD_JOB, 404, "{}", false, "", false, true, 0},
        {CHILD_JOB, 409, "{}", false, "", false, true, 0},
        {CHILD_JOB, 500, "{}", false, "", false, true, 0},
        {CHILD_JOB, 403, "{}", false, "", false, false, 0},
    };
    static struct bench b;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        do_one(&b, ACTION_DELETE, ROWS[i].child, ROWS[i].status, ROWS[i].body);
        if (b.result.ok != ROWS[i].ok || b.result.unseen != ROWS[i].unseen ||
            b.result.doubt != ROWS[i].doubt || b.result.pods_deleted != ROWS[i].pods_deleted)
            fail_msg("row %zu: ok %d, unseen %d, doubt %d, %d deleted", i, b.result.ok, b.result.unseen,
                     b.result.doubt, b.result.pods_deleted);
        assert_string_equal(b.result.versions[ROWS[i].child], ROWS[i].version);
        assert_int_equal(b.result.lost, ROWS[i].status >= 500);
        end(&b);
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
    static struct bench b;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        begin(&b, 0);
        actions_cancel(TAKE(b.run));
        b.plan.n_actions = b.n = b.cancelled = 0;
        add(&b, ACTION_PATCH, CHILD_POD, "one");
        b.actions[0].uid = "u";
        b.actions[0].version = "7";
        b.run = actions_new(&b.transport, b.recorder, &TARGET, &b.plan, &b.arena, on_done, &b);
        actions_run(b.run);
        assert_string_equal(b.calls[0].method, "PATCH");
        answer(&b, 0, ROWS[i].status, "{}");
        assert_int_equal(b.n, ROWS[i].n_requests);
        if (b.n == 2) {
            assert_string_equal(b.calls[1].method, "DELETE");
            assert_string_equal(
                b.calls[1].body,
                "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\",\"preconditions\":{\"uid\":\"u\","
                "\"resourceVersion\":\"7\"},\"propagationPolicy\":\"Background\"}");
            answer(&b, 1, 200, "{}");
            assert_int_equal(b.result.pods_deleted, 1);
            assert_true(b.result.err.msg[0]);
        }
        assert_int_equal(b.n_done, 1);
        assert_int_equal(b.result.ok, ROWS[i].ok);
        end(&b);
    }
}

/* What the pass may believe of the job's version after it wrote the status. */
static void test_status_versions(void **state)
{
    static const struct {
        int status;
        const char *body, *version;
        bool ok, doubt, lost;
    } ROWS[] = {
        {200, "{\"metadata\":{\"resourceVersion\":\"7\"}}", "7", true, false, false},
        {200, "{\"metadata\":{\"annotations\":{}}}", "", true, true,
         false}, /* as of one that was cut before it */
        {200, "no JSON", "", false, true, true},
        {404, "{}", "", false, true, false},
        {409, "{}", "", false, true, false},
        {500, "{}", "", false, true, true},
        {422, "{}", "", false, false, false},
    };
    static struct bench b;

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        do_one(&b, ACTION_STATUS, CHILD_JOB, ROWS[i].status, ROWS[i].body);
        if (b.result.ok != ROWS[i].ok || b.result.status_written != ROWS[i].ok ||
            b.result.doubt != ROWS[i].doubt || b.result.lost != ROWS[i].lost)
            fail_msg("row %zu: ok %d, doubt %d, lost %d", i, b.result.ok, b.result.doubt, b.result.lost);
        assert_string_equal(b.result.versions[CHILD_JOB], ROWS[i].version);
        end(&b);
    }
}

static void test_retry_after(void **state)
{
    static struct bench b;

    (void)state;
    do_one(&b, ACTION_STATUS, CHILD_JOB, 429, OVERLOADED);
    assert_false(b.result.ok);
    assert_int_equal(b.result.retry_after_ms, 7000);
    assert_int_equal(b.result.problem.kind, PROBLEM_NONE);
    end(&b);
    do_one(&b, ACTION_DELETE, CHILD_POD, 500, "{}");
    assert_int_equal(b.result.retry_after_ms, -1);
    end(&b);
    do_one(&b, ACTION_CREATE, CHILD_POD, 503,
           "{\"kind\":\"Status\",\"code\":503,\"message\":\"no\",\"details\":{\"retryAfterSeconds\":80000}}");
    assert_int_equal(b.result.retry_after_ms, 60000); /* a webhook's word, perhaps */
    end(&b);
}

static void test_a_taken_name_beside_others(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 3);
    created(&b, 0);
    created(&b, 1);
    assert_int_equal(open_calls(&b), 2);
    answer(&b, 2, 409, "{\"kind\":\"Status\",\"reason\":\"AlreadyExists\",\"message\":\"exists\"}");
    assert_int_equal(b.n, 5);
    assert_string_equal(b.calls[4].method, "GET");
    created(&b, 3);
    assert_int_equal(b.n_done, 0);
    answer(&b, 4, 200, "{\"metadata\":{\"uid\":\"other\"}}");
    assert_int_equal(b.n_done, 1);
    assert_int_equal(b.result.problem.kind, PROBLEM_NAME_CONFLICT);
    assert_int_equal(b.result.pods_created, 2);
    end(&b);
}

/* Events go behind what makes jobs run. */
static void test_what_can_wait(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, 1);
    b.actions[3] = (struct action){.kind = ACTION_STATUS, .child = CHILD_JOB, .name = "job", .body = "{}"};
    b.plan.n_actions = 4;
    for (int i = 0; i < 2; i++)
        created(&b, i);
    assert_int_equal(b.n, 4);
    for (int i = 0; i < b.n; i++) {
        assert_string_equal(b.calls[i].ns, "ns");
        assert_int_equal(b.calls[i].later, strstr(b.calls[i].path, "/events") != NULL);
    }
    assert_int_equal(count(&b, "/events"), 1);
    end(&b);
}

static void test_cancel(void **state)
{
    static struct bench b;

    (void)state;
    begin(&b, PODS);
    for (int i = 0; i < 5; i++)
        created(&b, i);
    int under_way = open_calls(&b);
    assert_in_range(under_way, 2, 8);
    actions_cancel(TAKE(b.run));
    assert_int_equal(b.cancelled, under_way);
    assert_int_equal(b.n_done, 0);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_beside_each_other),
        cmocka_unit_test(test_a_failure_begins_nothing_more),
        cmocka_unit_test(test_a_spent_quota_is_asked_once),
        cmocka_unit_test(test_the_first_pod_of_each_spec_goes_alone),
        cmocka_unit_test(test_after_the_first_of_a_spec_one_more_at_a_time),
        cmocka_unit_test(test_who_refused_decides),
        cmocka_unit_test(test_whose_words),
        cmocka_unit_test(test_a_job_that_ran_goes_on_without_the_field),
        cmocka_unit_test(test_a_lenient_pod_may_be_refused),
        cmocka_unit_test(test_a_failed_create_is_a_problem),
        cmocka_unit_test(test_deletes_beside_each_other),
        cmocka_unit_test(test_nothing_more_is_sent),
        cmocka_unit_test(test_deletes),
        cmocka_unit_test(test_patches_of_pods),
        cmocka_unit_test(test_status_versions),
        cmocka_unit_test(test_retry_after),
        cmocka_unit_test(test_a_taken_name_beside_others),
        cmocka_unit_test(test_what_can_wait),
        cmocka_unit_test(test_cancel),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
