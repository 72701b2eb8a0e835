/* test_auth.c - credential plugins under the real transport: run once for all who wait, again when it must be, and never
 * more often than that. The plugin is a shell script that counts its runs; the clock is the test's. */
#include "kube/auth/auth.h"

#include "../rig.h"
#include "common/fsutil.h"
#include "folder.h"
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define V1 "client.authentication.k8s.io/v1"
#define GET_POD (&(struct kube_request){.verb = KUBE_GET, .resource = &KUBE_PODS, .ns = "ns", .name = "a"})

static int64_t now_ms; /* moves when the test says so */

static int64_t read_now(void *ctx)
{
    (void)ctx;
    return now_ms;
}

static int n_runs(void)
{
    cleanup_buf struct buf text = BUF_INIT(10000);
    struct err err;

    return fs_read(folder_path("runs"), &text, &err) < 0 ? 0 : (int)(text.len / 2);
}

/* What the plugin does from now on: a piece of shell. */
static void behave(const char *script)
{
    char text[2000];

    snprintf(text, sizeof(text), "#!/bin/sh\ncd %s\necho x >>runs\n%s\n", folder_root(), script);
    folder_write("plugin.new", text);
    assert_int_equal(chmod(folder_path("plugin.new"), 0755), 0);
    char from[200];
    snprintf(from, sizeof(from), "%s", folder_path("plugin.new"));
    assert_int_equal(rename(from, folder_path("plugin")), 0);
}

/* It answers with this status. */
static void answer(const char *status)
{
    char text[1000];

    snprintf(text, sizeof(text),
             "echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":%s}'", status);
    behave(text);
}

/* It gives this token, good for so long. */
static void answer_for(const char *token, int64_t life_ms)
{
    char when[CLOCK_RFC3339_BYTES], status[200];

    clock_rfc3339(now_ms + life_ms, true, when);
    snprintf(status, sizeof(status), "{\"token\":\"%s\",\"expirationTimestamp\":\"%s\"}", token, when);
    answer(status);
}

static int setup(void **ctx)
{
    static char command[200];
    static const char *argv[] = {command, NULL};
    static const char *env[] = {"PLUGIN_VARIABLE=from the kubeconfig", "HOME=/nowhere", NULL};
    struct rig *r = calloc(1, sizeof(*r));
    struct err err;

    now_ms = 1000000000;
    assert_int_equal(folder_setup(ctx), 0);
    snprintf(command, sizeof(command), "%s", folder_path("plugin"));
    r->server = fake_apiserver_start();
    fake_put(r->server, "/api/v1/namespaces/ns/pods/a", "{}");
    r->config = (struct kube_config){.server = strdup(fake_apiserver_url(r->server)),
                                     .namespace_name = strdup("default"),
                                     .exec = {argv, env, V1, "install it from example.com", false}};
    r->loop = kube_loop_new((struct clock){read_now, read_now, read_now, NULL}, &err);
    r->http = http_new(r->loop, &r->config, &(struct http_options){.user_agent = "test"}, &err);
    assert_non_null(r->http);
    r->api = http_transport(r->http);
    *ctx = r;
    return 0;
}

static int teardown(void **ctx)
{
    rig_teardown(ctx);
    folder_teardown(ctx);
    /* No child of ours is left, dead or alive. */
    return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

/* So much later: a loop reads its clock once in a turn. */
static void pass_ms(struct rig *r, int64_t ms)
{
    struct err err;

    now_ms += ms;
    assert_int_equal(kube_loop_turn(r->loop, 0, &err), 0);
}

static bool plugin_ran_since(void *ctx)
{
    return n_runs() > *(int *)ctx;
}

static void expect_authorization(struct rig *r, int i, const char *want)
{
    struct fake_request q;

    assert_true(fake_log_at(r->server, i, &q));
    assert_string_equal(q.authorization, want);
}

/* A GET that works, with this header. */
static void get_with(struct rig *r, const char *authorization)
{
    struct rig_reply reply;

    fake_log_clear(r->server);
    rig_call(r, GET_POD, &reply);
    if (reply.err.kind != ERR_NONE)
        fail_msg("%s", reply.err.msg);
    rig_reply_release(&reply);
    expect_authorization(r, 0, authorization);
}

static struct err get_fails(struct rig *r)
{
    struct rig_reply reply;

    rig_call(r, GET_POD, &reply);
    assert_true(reply.err.kind != ERR_NONE);
    assert_null(reply.object);
    return reply.err;
}

/* --- one run for all ------------------------------------------------------------------------------------ */

struct crowd {
    int left;
    int failed;
};

static void on_reply(void *ctx, struct kube_reply *reply)
{
    struct crowd *c = ctx;

    c->left--;
    c->failed += reply->err != NULL;
}

static void on_done(void *ctx, const struct kube_http_response *r, const struct err *err)
{
    struct crowd *c = ctx;

    (void)r;
    c->left--;
    c->failed += err != NULL;
}

static bool all_over(void *ctx)
{
    return ((struct crowd *)ctx)->left == 0;
}

/* 30 ordinary calls, an urgent one and one on a connection of its own. */
static void start_crowd(struct rig *r, struct crowd *c)
{
    struct kube_http_request own = {
        .method = "GET", .path = "/api/v1/namespaces/ns/pods/a", .own_connection = true};
    struct kube_http_request urgent = {
        .method = "GET", .path = "/api/v1/namespaces/ns/pods/a", .urgent = true};
    struct kube_http_handler handler = {.ctx = c, .done = on_done};
    struct err err;

    *c = (struct crowd){.left = 32};
    for (int i = 0; i < 30; i++)
        assert_non_null(kube_call_start(&r->api, GET_POD, on_reply, c, &err));
    assert_non_null(kube_transport_start(&r->api, &own, &handler, &err));
    assert_non_null(kube_transport_start(&r->api, &urgent, &handler, &err));
}

static void test_one_run_for_all(void **ctx)
{
    struct rig *r = *ctx;
    struct crowd c;

    answer("{\"token\":\"t-1\"}");
    start_crowd(r, &c);
    rig_until(r->loop, all_over, &c);
    assert_int_equal(c.failed, 0);
    assert_int_equal(n_runs(), 1);
    for (int i = 0; i < 32; i++)
        expect_authorization(r, i, "Bearer t-1");
    get_with(r, "Bearer t-1"); /* for ever, if it does not say for how long */
    pass_ms(r, 1000000000);
    get_with(r, "Bearer t-1");
    assert_int_equal(n_runs(), 1);
}

static void test_all_fail_together_and_not_again_at_once(void **ctx)
{
    struct rig *r = *ctx;
    struct crowd c;

    behave("echo 'line one' >&2; echo '  no   session: log in' >&2; echo top-secret; exit 3");
    start_crowd(r, &c);
    rig_until(r->loop, all_over, &c);
    assert_int_equal(c.failed, 32);
    assert_int_equal(n_runs(), 1);
    assert_int_equal(fake_log_count(r->server, NULL, NULL), 0); /* nothing left without a credential */
    struct err err = get_fails(r);
    assert_int_equal(err.kind, ERR_TRANSIENT);
    assert_non_null(strstr(err.msg, "GET /api/v1/namespaces/ns/pods/a: credential plugin /tmp/"));
    assert_non_null(strstr(err.msg, "ended with exit code 3: line one no session: log in"));
    assert_null(strstr(err.msg, "top-secret"));
    assert_int_equal(n_runs(), 1); /* too early: the answer is the one from before */
    pass_ms(r, 1000);
    get_fails(r);
    assert_int_equal(n_runs(), 2);
    pass_ms(r, 1000);
    get_fails(r);
    assert_int_equal(n_runs(), 2); /* 2 s now */
    pass_ms(r, 1000);
    answer("{\"token\":\"t-2\"}");
    get_with(r, "Bearer t-2");
    assert_int_equal(n_runs(), 3);
}

/* --- when it runs again ----------------------------------------------------------------------------------- */

static bool has_token_2(void *ctx)
{
    return strcmp(buf_str(&((struct rig *)ctx)->config.token.bytes), "t-2") == 0;
}

static void test_fetched_before_it_expires(void **ctx)
{
    struct rig *r = *ctx;
    int before = 2;

    answer_for("t-1", 1000000);
    get_with(r, "Bearer t-1");
    pass_ms(r, 1000000 - AUTH_EARLY_MS - 10000);
    get_with(r, "Bearer t-1");
    assert_int_equal(n_runs(), 1);
    answer_for("t-2", 2000000);
    pass_ms(r, 20000);
    get_with(r, "Bearer t-1"); /* nobody waits for the new one */
    rig_until(r->loop, has_token_2, r);
    get_with(r, "Bearer t-2");
    pass_ms(r, 2000000 - 30000);
    /* In the last minute, but there is no new one: the old one is used to its end. */
    behave("exit 1");
    get_with(r, "Bearer t-2");
    rig_until(r->loop, plugin_ran_since, &before);
    pass_ms(r, 5000);
    get_with(r, "Bearer t-2");
    pass_ms(r, 26000);
    struct err err = get_fails(r);
    assert_non_null(strstr(err.msg, "exit code 1"));
}

static void test_expired_while_nobody_asked(void **ctx)
{
    struct rig *r = *ctx;

    answer_for("t-1", 100000);
    get_with(r, "Bearer t-1");
    answer_for("t-2", 500000);
    pass_ms(r, 200000);
    get_with(r, "Bearer t-2"); /* waits for it */
    assert_int_equal(n_runs(), 2);
}

/* A clock that is wrong, or a plugin that is: used by those who waited, and no run for each request. */
static void test_expired_when_it_comes(void **ctx)
{
    struct rig *r = *ctx;
    struct crowd c;

    answer_for("t-1", -500000);
    start_crowd(r, &c);
    rig_until(r->loop, all_over, &c);
    assert_int_equal(c.failed, 0);
    assert_int_equal(n_runs(), 1);
    pass_ms(r, 2000);
    get_with(r, "Bearer t-1");
    assert_int_equal(n_runs(), 2);
}

static void test_refused_by_the_server(void **ctx)
{
    struct rig *r = *ctx;

    answer("{\"token\":\"t-1\"}");
    get_with(r, "Bearer t-1");
    answer("{\"token\":\"t-2\"}");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.request = 1, .fault = FAKE_STATUS, .status = 401});
    get_fails(r);
    assert_int_equal(n_runs(), 1);
    get_with(r, "Bearer t-2"); /* the next one waits for a new one */
    assert_int_equal(n_runs(), 2);
}

/* Whatever the plugin says, the server says no: a run now and then, not one for each request. */
static void test_refused_for_ever(void **ctx)
{
    struct rig *r = *ctx;

    answer("{\"token\":\"t\"}");
    fake_plan_fault(r->server, &(struct fake_fault_plan){.fault = FAKE_STATUS, .status = 401});
    for (int i = 0; i < 20; i++)
        get_fails(r);
    int at_once = n_runs();
    assert_int_equal(at_once, 2); /* the first, and one after the first 401 */
    for (int i = 0; i < 100; i++) {
        pass_ms(r, 1000);
        get_fails(r);
    }
    assert_in_range(n_runs(), at_once + 5, at_once + 8); /* after 1, 2, 4, 8, 16, 30, 30 s */
    fake_plan_fault(r->server, NULL);
    pass_ms(r, 31000);
    get_with(r, "Bearer t");
}

/* --- what it is told, what it gives ---------------------------------------------------------------------- */

static void test_environment(void **ctx)
{
    struct rig *r = *ctx;
    cleanup_buf struct buf text = BUF_INIT(10000);
    char want[500];
    struct err err;

    r->config.exec.provide_cluster_info = true;
    r->config.exec_config = "{\"audience\":1}";
    setenv("PLUGIN_INHERITED", "from us", 1);
    setenv("PLUGIN_VARIABLE", "ours, which does not count", 1);
    behave(
        "cat; { echo \"$PLUGIN_INHERITED|$PLUGIN_VARIABLE|$HOME\"; echo \"$KUBERNETES_EXEC_INFO\"; } >seen\n"
        "echo '{\"apiVersion\":\"" V1 "\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"t\"}}'");
    get_with(r, "Bearer t");
    unsetenv("PLUGIN_INHERITED");
    unsetenv("PLUGIN_VARIABLE");
    assert_int_equal(fs_read(folder_path("seen"), &text, &err), 0);
    snprintf(
        want, sizeof(want),
        "from us|from the kubeconfig|/nowhere\n{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
        "\",\"spec\":{\"cluster\":{\"server\":\"%s\",\"config\":{\"audience\":1}},\"interactive\":false}}\n",
        fake_apiserver_url(r->server));
    assert_string_equal(buf_str(&text), want);
}

static void test_certificate(void **ctx)
{
    struct rig *r = *ctx;

    answer(
        "{\"token\":\"t\",\"clientCertificateData\":\"-----BEGIN CERT\",\"clientKeyData\":\"-----BEGIN KEY\","
        "\"expirationTimestamp\":\"1970-01-01T00:00:01Z\"}");
    get_with(r, "Bearer t");
    assert_string_equal(buf_str(&r->config.client_cert.bytes), "-----BEGIN CERT");
    assert_string_equal(buf_str(&r->config.client_key.bytes), "-----BEGIN KEY");
    answer("{\"token\":\"only\"}");
    pass_ms(r, 2000);
    get_with(r, "Bearer only");
    assert_int_equal(r->config.client_cert.bytes.len, 0);
    assert_int_equal(r->config.client_key.bytes.len, 0);
}

/* The certificate authority is a file all the same: who renews it does not restart everyone. */
static void test_the_authority_is_read_again(void **ctx)
{
    struct rig *r = *ctx;
    struct err err;
    struct rig_reply reply;

    folder_write("ca.crt", "one");
    assert_int_equal(kube_secret_from_file(&r->config.ca, folder_path("ca.crt"), &err), 0);
    answer("{\"token\":\"t\"}");
    folder_write("ca.crt", "two");
    pass_ms(r, 61000);
    rig_call(r, GET_POD, &reply);
    rig_reply_release(&reply);
    assert_string_equal(buf_str(&r->config.ca.bytes), "two");
}

static void test_answers_that_are_none(void **ctx)
{
    static const char *const rows[][2] = {
        {"echo top-secret", "not JSON"},
        {"true", "not JSON"},
        {"echo '{\"apiVersion\":\"v1\",\"kind\":\"ExecCredential\",\"status\":{\"token\":\"top-secret\"}}'",
         "apiVersion: expected " V1},
        {"head -c 300000 /dev/zero", "wrote more than 262144 bytes, killed"},
        {"kill -9 $$", "ended by signal 9"},
    };
    struct rig *r = *ctx;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        behave(rows[i][0]);
        pass_ms(r, 100000);
        struct err err = get_fails(r);
        if (!strstr(err.msg, rows[i][1]) || strstr(err.msg, "top-secret"))
            fail_msg("row %zu: %s", i, err.msg);
        assert_int_equal(err.kind, ERR_TRANSIENT);
    }
}

static void test_not_installed(void **ctx)
{
    static const char *argv[] = {"no-such-plugin", NULL};
    struct rig *r = *ctx;

    r->config.exec.argv = argv;
    struct err err = get_fails(r);
    assert_non_null(strstr(err.msg, "credential plugin: no-such-plugin: No such file"));
    assert_non_null(strstr(err.msg, "install it from example.com"));
}

/* --- and when it does not end ----------------------------------------------------------------------------- */

static void test_takes_too_long(void **ctx)
{
    struct rig *r = *ctx;
    struct crowd c;
    int before = 0;

    behave("echo asking >&2; sleep 1000 & sleep 1000");
    start_crowd(r, &c);
    rig_until(r->loop, plugin_ran_since, &before);
    pass_ms(r, AUTH_RUN_MAX_MS);
    rig_until(r->loop, all_over, &c);
    assert_int_equal(c.failed, 32);
    struct err err = get_fails(r);
    assert_non_null(strstr(err.msg, "not done after 60 s, killed"));
}

static void test_freed_and_cancelled_meanwhile(void **ctx)
{
    struct rig *r = *ctx;
    struct kube_http_request urgent = {
        .method = "GET", .path = "/api/v1/namespaces/ns/pods/a", .urgent = true};
    struct kube_http_request own = {.method = "GET", .path = "/", .own_connection = true};
    struct crowd c = {.left = 100};
    struct kube_http_handler handler = {.ctx = &c, .done = on_done};
    struct kube_http_call *calls[3];
    struct err err;
    int before = 0;

    behave("sleep 1000");
    calls[0] = kube_transport_start(&r->api, &urgent, &handler, &err);
    calls[1] = kube_transport_start(&r->api, &own, &handler, &err);
    urgent.urgent = false;
    calls[2] = kube_transport_start(&r->api, &urgent, &handler, &err);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        assert_non_null(calls[i]);
    rig_until(r->loop, plugin_ran_since, &before);
    kube_transport_cancel(&r->api, calls[1]);
    kube_transport_cancel(&r->api, calls[2]);
    http_free(
        r->http); /* with one that still waits, and the plugin asleep: teardown looks for what is left */
    r->http = NULL;
    assert_int_equal(kube_loop_turn(r->loop, 0, &err), 0);
    assert_int_equal(c.left, 100);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_one_run_for_all),
        T(test_all_fail_together_and_not_again_at_once),
        T(test_fetched_before_it_expires),
        T(test_expired_while_nobody_asked),
        T(test_expired_when_it_comes),
        T(test_refused_by_the_server),
        T(test_refused_for_ever),
        T(test_environment),
        T(test_certificate),
        T(test_the_authority_is_read_again),
        T(test_answers_that_are_none),
        T(test_not_installed),
        T(test_takes_too_long),
        T(test_freed_and_cancelled_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
