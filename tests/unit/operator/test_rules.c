/* test_rules.c - the rules that every run is held to see each way to break them, and nothing in a decent run. */
#include "common/cleanup.h"
#include "jsontext.h"
#include "operator/api/pod.h"
#include "operator/api/trainjob.h"
#include "test.h"
#include "tests/fakes/direct.h"
#include "tests/fakes/rules.h"

#include <stdio.h>
#include <string.h>

#define JOB "/apis/" TRAINJOB_GROUP "/" TRAINJOB_VERSION "/namespaces/ns/" TRAINJOB_PLURAL "/j"
#define PODS "/api/v1/namespaces/ns/pods/"

static int setup(void **state)
{
    struct fake_apiserver *s = fake_apiserver_alone();

    fake_add_kind(s, "/apis/" TRAINJOB_GROUP "/" TRAINJOB_VERSION, TRAINJOB_PLURAL, TRAINJOB_KIND);
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    fake_apiserver_stop(*state);
    return 0;
}

static void put_job(struct fake_apiserver *s, const char *status)
{
    char body[512];

    snprintf(body, sizeof(body), "{'spec':{'runPolicy':{'backoffLimit':2}},'status':%s}", status);
    assert_true(fake_put(s, JOB, body));
}

static void expect(struct fake_apiserver *s, unsigned leave_out, const char *want)
{
    int at;
    const char *got = fake_broken_rule(s, leave_out, &at);

    if (!want)
        assert_null(got);
    else
        assert_string_equal(got, want);
}

/* A status of the job; a pod of it, "NAME INDEX ATTEMPT"; "NAME": one of nobody; "-NAME": what goes. */
static void take(struct fake_apiserver *s, const char *step, char uid[64])
{
    char path[128], name[32];
    char body[640] = "{}";
    int index, attempt;

    if (step[0] == '{') {
        put_job(s, step);
        cleanup_json cJSON *job = fake_json(s, JOB);
        snprintf(uid, 64, "%s", json_meta(job, "uid"));
        return;
    }
    bool goes = step[0] == '-';
    if (sscanf(step + goes, "%31s %d %d", name, &index, &attempt) == 3)
        snprintf(body, sizeof(body),
                 "{'metadata':{'labels':{'" LABEL_TYPE "':'node','" LABEL_INDEX "':'%d','" LABEL_ATTEMPT
                 "':'%d'},"
                 "'ownerReferences':[{'apiVersion':'" TRAINJOB_API_VERSION "','kind':'" TRAINJOB_KIND
                 "','controller':true,'uid':'%s'}]}}",
                 index, attempt, uid);
    snprintf(path, sizeof(path), PODS "%s", name);
    if (goes)
        assert_true(fake_remove(s, strcmp(name, "j") == 0 ? JOB : path));
    else
        assert_true(fake_put(s, path, body));
}

#define END "{'phase':'Succeeded','completionTime':'t'}"
#define BOTH "{'conditions':[{'type':'Completed','status':'True'},{'type':'Failed','status':'True'}]}"

static void test_objects(void **state)
{
    static const struct {
        const char *want;
        unsigned may_be_left_out; /* then nothing is wrong; FAKE_RULES_ALL: it may not */
        const char *steps[11];
    } ROWS[] = {
        {NULL,
         FAKE_RULES_ALL,
         {"{'attempt':0}", "a 0 0", "b 1 0", "{'attempt':1,'backoffCount':1}", "-a", "-b", "a 0 1", END,
          "{'ready':'0/1'}", "stranger"}},
        {"a pod was created beside one of another attempt", FAKE_RULES_NO_PODS, {"{}", "a 0 0", "b 1 1"}},
        {"a second pod was created for one index", FAKE_RULES_NO_PODS, {"{}", "a 0 0", "b 0 0"}},
        {"a pod was created after the job's end", FAKE_RULES_ALL, {END, "a 0 0"}},
        {"a pod was created for a job that is gone", FAKE_RULES_ALL, {"{}", "-j", "a 0 0"}},
        {"a counter fell", FAKE_RULES_NO_COUNTERS, {"{'attempt':2}", "{'attempt':1}"}},
        {"a counter fell", FAKE_RULES_NO_COUNTERS, {"{'backoffCount':2}", "{'backoffCount':1}"}},
        {"a counter fell", FAKE_RULES_NO_COUNTERS, {"{'disruptionCount':2}", "{'disruptionCount':1}"}},
        {"a counter fell",
         FAKE_RULES_NO_COUNTERS,
         {"{'tasks':[{'restartCount':2}]}", "{'tasks':[{'restartCount':1}]}"}},
        {"more restarts were counted than backoffLimit allows", FAKE_RULES_ALL, {"{'backoffCount':3}"}},
        {"the end did not stay as it was", FAKE_RULES_ALL, {END, "{'phase':'Failed'}"}},
        {"a job succeeded and failed", FAKE_RULES_ALL, {BOTH}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct fake_apiserver *s;
        char uid[64];
        setup((void **)&s);
        for (const char *const *step = ROWS[i].steps; *step; step++)
            take(s, *step, uid);
        expect(s, FAKE_RULES_ALL, ROWS[i].want);
        if (ROWS[i].may_be_left_out != FAKE_RULES_ALL)
            expect(s, ROWS[i].may_be_left_out, NULL);
        fake_apiserver_stop(s);
    }
}

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    (void)err;
    *(int *)ctx = r ? r->status : -1;
}

static struct fake_tamper NONE;

/* One process that sends requests. */
struct client {
    struct kube_loop *loop;
    struct fake_direct *direct;
};

static struct client client_new(struct fake_apiserver *s)
{
    struct err err;
    struct kube_loop *loop = kube_loop_new(clock_system(), &err);

    return (struct client){loop, fake_direct_new(s, loop, &NONE)};
}

static void client_free(struct client *c)
{
    fake_direct_free(c->direct);
    kube_loop_free(c->loop);
}

/* The status of the answer. */
static int ask(struct client *c, const char *method, const char *path, const char *body)
{
    struct err err;
    int status = 0;
    cleanup_free char *json = jsontext(body);
    struct kube_transport t = fake_direct_transport(c->direct);
    struct kube_http_request r = {.method = method, .path = path, .body = sv_from(json)};
    struct kube_http_handler h = {.ctx = &status, .done = on_done};

    assert_non_null(t.start(t.ctx, &r, &h, &err));
    while (!status)
        assert_int_equal(kube_loop_turn(c->loop, 0, &err), 0);
    return status;
}

static void test_idle_write(void **state)
{
    struct client c = client_new(*state);

    put_job(*state, "{}");
    for (int i = 0; i < 2; i++) {
        expect(*state, FAKE_RULES_ALL, NULL);
        assert_int_equal(ask(&c, "PATCH", JOB "/status", "{'status':{'phase':'Running'}}"), 200);
    }
    expect(*state, FAKE_RULES_ALL, "a write of the status changed nothing");
    client_free(&c);
}

/* After a 429 with Retry-After: 3 for the create of pod a. */
static void test_patience(void **state)
{
    static const char TOO_SOON[] = "a request came sooner than Retry-After said";
    static const char A[] = "{'metadata':{'name':'a'}}";
    static const struct {
        const char *method, *path, *body;
        int after_s;
        bool broken, another;
    } ROWS[] = {
        {"POST", "/api/v1/namespaces/ns/pods", A, 0, true, false},
        {"POST", "/api/v1/namespaces/ns/pods?fieldManager=x", A, 2, true, false},
        {"POST", "/api/v1/namespaces/ns/pods", A, 3, false, false},
        {"POST", "/api/v1/namespaces/ns/pods", "{'metadata':{'name':'b'}}", 0, false, false},
        {"POST", "/api/v1/namespaces/ns/pods", "{'metadata':{'name':'b'}}", 2, true, false},
        {"GET", "/api/v1/namespaces/ns/pods/a", "", 0, false, false},
        {"POST", "/api/v1/namespaces/other/pods", A, 0, false, false},
        {"POST", "/api/v1/namespaces/ns/pods", A, 0, false, true},
    };
    const struct fake_fault_plan busy = {
        .request = 1, .fault = FAKE_STATUS, .status = 429, .retry_after_s = 3};

    (void)state;
    for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
        struct fake_apiserver *s;
        setup((void **)&s);
        struct client c = client_new(s);
        struct client another = client_new(s);
        fake_set_time(s, 1000000);
        fake_plan_fault(s, &busy);
        assert_int_equal(ask(&c, "POST", "/api/v1/namespaces/ns/pods", A), 429);
        fake_set_time(s, 1000000 + ROWS[i].after_s * 1000);
        ask(ROWS[i].another ? &another : &c, ROWS[i].method, ROWS[i].path, ROWS[i].body);
        expect(s, FAKE_RULES_ALL, ROWS[i].broken ? TOO_SOON : NULL);
        client_free(&c);
        client_free(&another);
        fake_apiserver_stop(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_objects),
        cmocka_unit_test_setup_teardown(test_idle_write, setup, teardown),
        cmocka_unit_test(test_patience),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
