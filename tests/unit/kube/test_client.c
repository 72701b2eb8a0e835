/* test_client.c - calls to their end, over the real transport: the object or the error, the content of an error, and the
 * tokens that are tried before it. */
#include "rig.h"

#include "common/fsutil.h"
#include "common/json.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POD_A "/api/v1/namespaces/ns/pods/a"
#define GET_POD (&(struct kube_request){.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"})

static struct kube_request create_pod(const char *body)
{
    return (struct kube_request){
        .verb = KUBE_CREATE, .resource = &KUBE_PODS, .ns = "ns", .body = sv_from(body)};
}

static void test_create_get_patch_delete(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;
    struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"},\"spec\":{\"n\":1}}");

    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    assert_int_equal(reply.status.code, 201);
    char *uid = strdup(json_str(cJSON_GetObjectItem(reply.object, "metadata"), "uid"));
    rig_reply_release(&reply);

    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_CONFLICT);
    assert_int_equal(reply.status.reason, KUBE_REASON_ALREADY_EXISTS);

    struct kube_request patch = {.verb = KUBE_PATCH,
                                 .resource = &KUBE_PODS,
                                 .ns = "ns",
                                 .name = "a",
                                 .subresource = "status",
                                 .body = sv_from("{\"status\":{\"phase\":\"Failed\"}}")};
    rig_call(r, &patch, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
    rig_call(r, GET_POD, &reply);
    assert_string_equal(json_str(cJSON_GetObjectItem(reply.object, "status"), "phase"), "Failed");
    rig_reply_release(&reply);

    cleanup_arena struct arena a = {0};
    struct kube_request drop = {.verb = KUBE_DELETE,
                                .resource = &KUBE_PODS,
                                .ns = "ns",
                                .name = "a",
                                .body = kube_delete_options(&a, "another-uid", NULL, false)};
    rig_call(r, &drop, &reply);
    assert_int_equal(reply.err.kind, ERR_CONFLICT);
    drop.body = kube_delete_options(&a, uid, NULL, false);
    rig_call(r, &drop, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_NOT_FOUND);
    free(uid);
}

static void test_faults(void **ctx)
{
    static const struct {
        struct fake_fault_plan plan;
        enum err_kind kind;
        int64_t retry_ms;
        bool effect;
    } rows[] = {
        {{.fault = FAKE_STATUS, .status = 409}, ERR_CONFLICT, -1, false},
        {{.fault = FAKE_STATUS, .status = 500}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_STATUS, .status = 503, .retry_after_s = 3}, ERR_TRANSIENT, 3000, false},
        {{.fault = FAKE_STATUS, .status = 429, .retry_after_s = 1}, ERR_TRANSIENT, 1000, false},
        {{.fault = FAKE_STATUS, .status = 422}, ERR_INVALID, -1, false},
        {{.fault = FAKE_STATUS, .status = 302}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_DROP_BEFORE}, ERR_TRANSIENT, -1, false},
        {{.fault = FAKE_DROP_AFTER}, ERR_TRANSIENT, -1, true},
        {{.fault = FAKE_RESET_BODY}, ERR_TRANSIENT, -1, true},
        {{.fault = FAKE_GARBAGE_BODY}, ERR_TRANSIENT, -1, true},
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct rig_reply reply;
        struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
        fake_plan_fault(r->server, &rows[i].plan);
        rig_call(r, &create, &reply);
        if (reply.err.kind != rows[i].kind || reply.status.retry_after_ms != rows[i].retry_ms)
            fail_msg("row %zu: %s: %s", i, err_kind_name(reply.err.kind), reply.err.msg);
        assert_null(reply.object);
        assert_int_equal(fake_count(r->server, "/api/v1/pods"), rows[i].effect ? 1 : 0);
        fake_remove(r->server, "/api/v1/namespaces/ns/pods/a");
    }
    fake_plan_fault(r->server, NULL);
    /* Nothing of this lingers: the next call works. */
    struct rig_reply reply;
    struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
    rig_call(r, &create, &reply);
    assert_int_equal(reply.err.kind, ERR_NONE);
    rig_reply_release(&reply);
}

/* Done is done, whatever the answer looks like: only who wants the object has to look. */
static void test_unreadable_answers(void **ctx)
{
    static char large[(4 << 20) + 3];
    const char *const raws[] = {"['\\u0000']", large};
    const struct kube_request patch = {.verb = KUBE_PATCH,
                                       .resource = &KUBE_PODS,
                                       .ns = "ns",
                                       .name = "a",
                                       .body = sv_from("{\"spec\":{\"n\":1}}")};
    struct rig *r = *ctx;
    struct rig_reply reply;

    memset(large, 'x', sizeof(large) - 1);
    large[0] = large[sizeof(large) - 2] = '"';
    for (size_t i = 0; i < ARRAY_LEN(raws); i++) {
        rig_put(r, POD_A, "{}");
        assert_true(fake_put_raw(r->server, POD_A, raws[i]));
        const struct kube_request *const requests[] = {&patch, GET_POD};
        for (size_t k = 0; k < ARRAY_LEN(requests); k++) {
            rig_call(r, requests[k], &reply);
            assert_int_equal(reply.err.kind, ERR_NONE);
            assert_int_equal(reply.status.code, 200);
            assert_null(reply.object);
            assert_true(reply.unreadable);
            assert_true(reply.uid[0]);
        }
        fake_remove(r->server, POD_A);
    }
}

static void test_errors_name_the_request_but_no_secret(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;

    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_DROP_BEFORE});
    rig_call(r, GET_POD, &reply);
    assert_non_null(strstr(reply.err.msg, "GET /api/v1/namespaces/ns/pods/a: "));
    assert_null(strstr(reply.err.msg, "secret-token"));
}

/* Whoever can make the server send us elsewhere gets neither the token nor the object. */
static void test_redirects_are_not_followed(void **ctx)
{
    static const int codes[] = {301, 302, 303, 307, 308};
    struct rig *r = *ctx;
    struct fake_apiserver *elsewhere = fake_apiserver_start();
    char url[128];

    fake_put(elsewhere, "/api/v1/namespaces/ns/pods/a", "{}");
    snprintf(url, sizeof(url), "%s/api/v1/namespaces/ns/pods/a", fake_apiserver_url(elsewhere));
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct kube_request create = create_pod("{\"metadata\":{\"name\":\"a\"}}");
        const struct kube_request *const requests[] = {GET_POD, &create};
        for (size_t k = 0; k < ARRAY_LEN(requests); k++) {
            struct rig_reply reply;
            fake_plan_fault(r->server, &(struct fake_fault_plan){
                                           .fault = FAKE_STATUS, .status = codes[i], .location = url});
            rig_call(r, requests[k], &reply);
            if (reply.err.kind == ERR_NONE || fake_faults_done(r->server) != 1)
                fail_msg("%d: %d answers: %s", codes[i], fake_faults_done(r->server), reply.err.msg);
            rig_reply_release(&reply);
        }
    }
    assert_int_equal(fake_connections(elsewhere), 0);
    fake_apiserver_stop(elsewhere);
}

static void write_token(const char *path, const char *token)
{
    struct err err;

    assert_int_equal(fs_write_atomic(path, token, strlen(token), &err), 0);
}

/* The rig has read "old", and the file has another token now. */
static void replace_token(struct rig *r, char path[64], const char *token)
{
    struct err err;

    snprintf(path, 64, "/tmp/test_http_token_%d", (int)getpid());
    write_token(path, "old");
    assert_int_equal(kube_credential_from_file(&r->config.token, path, &err), 0);
    r->config.read_ms = kube_loop_now_ms(r->loop);
    write_token(path, token);
}

/* A 401 makes the token be read again: with a new one the request goes out once more, and nobody hears of it. */
static void test_token_is_read_again_after_401(void **ctx)
{
    struct rig *r = *ctx;
    struct rig_reply reply;
    struct fake_request q;
    char path[64];

    replace_token(r, path, "new\n");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 401});
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_NOT_FOUND);
    assert_true(fake_log_at(r->server, 0, &q));
    assert_string_equal(q.authorization, "Bearer old");
    assert_true(fake_log_at(r->server, 1, &q));
    assert_string_equal(q.authorization, "Bearer new");
    assert_false(fake_log_at(r->server, 2, &q));
    /* The same token again, and one that is refused as well: that is the answer. */
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 401});
    rig_call(r, GET_POD, &reply);
    assert_int_equal(reply.err.kind, ERR_TRANSIENT);
    assert_int_equal(reply.status.code, 401);
    unlink(path);
}

/* Several left with the old token: the one that comes back first finds the new one for all of them. It is refused as well here,
 * which is the answer. */
static void test_all_that_left_with_the_old_token_go_again(void **ctx)
{
    enum { N = 6 };
    struct rig *r = *ctx;
    struct rig_reply replies[N] = {0};
    struct fake_request q;
    struct err err;
    char path[64];
    int logged = 0;

    replace_token(r, path, "new");
    fake_refuse(r->server, NULL, NULL, 401);
    for (int i = 0; i < N; i++)
        assert_non_null(kube_request_start(&r->api, GET_POD, rig_on_reply, &replies[i], &err));
    for (int i = 0; i < N; i++) {
        rig_until(r->loop, rig_is_over, &replies[i]);
        assert_int_equal(replies[i].status.code, 401);
    }
    while (fake_log_at(r->server, logged, &q))
        logged++;
    assert_int_equal(logged, 2 * N);
    unlink(path);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(test_create_get_patch_delete),
        T(test_faults),
        T(test_unreadable_answers),
        T(test_errors_name_the_request_but_no_secret),
        T(test_redirects_are_not_followed),
        T(test_token_is_read_again_after_401),
        T(test_all_that_left_with_the_old_token_go_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
