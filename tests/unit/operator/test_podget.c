/* test_podget.c - one GET from a server that does what it likes: it ends, within its bounds, and only a sound answer counts. */
#include "fakepods.h"
#include "operator/podget.h"
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rig {
    struct kube_loop *loop;
    struct fakepods pods;
    struct podget get;
    int n_done;
    bool answered;
    char body[PODGET_BYTES + 1];
};

static void on_done(void *ctx, const struct sv *body)
{
    struct rig *r = ctx;

    r->n_done++;
    r->answered = body != NULL;
    if (body)
        snprintf(r->body, sizeof(r->body), "%.*s", (int)body->len, body->p);
}

/* A body of so many bytes. */
static void say_long(struct fakepods_reply *ret, size_t len)
{
    char body[FAKEPODS_BYTES];

    memset(body, 'x', len);
    body[len] = '\0';
    fakepods_say(ret, body);
}

#define OK "HTTP/1.1 200 OK\r\n"

static void answer(void *ctx, const char *path, struct fakepods_reply *ret)
{
    static const struct {
        const char *path;
        struct fakepods_reply reply;
    } ROWS[] = {
        {"silent", {FAKEPODS_WAITS, "", ""}},
        {"silent-body", {FAKEPODS_WAITS, OK "Content-Length: 10\r\n\r\n{", ""}},
        {"closes", {FAKEPODS_CLOSES, "", ""}},
        {"closes-in-body", {FAKEPODS_CLOSES, OK "Content-Length: 10\r\n\r\n{}", ""}},
        {"endless-body", {FAKEPODS_REPEATS, OK "\r\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
        {"endless-chunks", {FAKEPODS_REPEATS, OK "Transfer-Encoding: chunked\r\n\r\n", "4\r\nxxxx\r\n"}},
        {"endless-headers", {FAKEPODS_REPEATS, OK, "X-More: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n"}},
        {"endless-header", {FAKEPODS_REPEATS, OK "X-More: ", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
        {"endless-continue",
         {FAKEPODS_REPEATS, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"}},
        {"long-announced", {FAKEPODS_WAITS, OK "Content-Length: 1000000000000\r\n\r\n", ""}},
        {"moved",
         {FAKEPODS_CLOSES, "HTTP/1.1 302 Found\r\nLocation: /good\r\nContent-Length: 0\r\n\r\n", ""}},
        {"refused",
         {FAKEPODS_CLOSES,
          "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: 2\r\n\r\n{}",
          ""}},
        {"error", {FAKEPODS_CLOSES, "HTTP/1.1 500 Oh\r\nContent-Length: 2\r\n\r\n{}", ""}},
        {"no-content", {FAKEPODS_CLOSES, "HTTP/1.1 204 No Content\r\n\r\n", ""}},
        {"old", {FAKEPODS_CLOSES, "{}", ""}},
        {"cookie", {FAKEPODS_CLOSES, OK "Set-Cookie: a=b\r\nContent-Length: 2\r\n\r\n{}", ""}},
        {"chunks", {FAKEPODS_CLOSES, OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", ""}},
        {"until-close", {FAKEPODS_CLOSES, OK "\r\n{}", ""}},
    };

    (void)ctx;
    if (strcmp(path, "good") == 0)
        fakepods_say(ret, "{}");
    else if (strcmp(path, "longest") == 0)
        say_long(ret, PODGET_BYTES);
    else if (strcmp(path, "too-long") == 0)
        say_long(ret, PODGET_BYTES + 1);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        if (strcmp(path, ROWS[i].path) == 0)
            *ret = ROWS[i].reply;
}

static int rig_start(void **state)
{
    static struct rig rig;
    struct rig *r = *state = &rig;
    struct err err;

    *r = (struct rig){.loop = kube_loop_new(clock_system(), &err)};
    assert_non_null(r->loop);
    r->pods.loop = r->loop;
    r->pods.answer = answer;
    fakepods_start(&r->pods);
    r->get = (struct podget){.loop = r->loop, .done = on_done, .ctx = r};
    return 0;
}

static int rig_stop(void **state)
{
    struct rig *r = *state;

    podget_release(&r->get);
    fakepods_stop(&r->pods);
    kube_loop_free(r->loop);
    return 0;
}

/* Whether there was an answer. */
/* Both ends take turns, and an answer comes in small pieces: the server is not far ahead of the client. */
enum { TAKEN_BYTES = 256 << 10 };

static bool get(struct rig *r, const char *path)
{
    char url[PODADDRESS_URL_BYTES];
    struct err err;
    int before = r->n_done;

    assert_true(fakepods_url(path, url));
    assert_true(podget_start(&r->get, url));
    while (r->n_done == before)
        assert_int_equal(kube_loop_turn(r->loop, 1000, &err), 0);
    assert_int_equal(r->n_done, before + 1);
    return r->answered;
}

static void test_answers(void **state)
{
    struct rig *r = *state;
    static const char *const SHORT[] = {"good", "cookie", "chunks", "until-close"};

    for (size_t i = 0; i < ARRAY_LEN(SHORT); i++) {
        if (!get(r, SHORT[i]))
            fail_msg("%s: no answer", SHORT[i]);
        assert_string_equal(r->body, "{}");
    }
    assert_true(get(r, "longest"));
    assert_int_equal(strlen(r->body), PODGET_BYTES);
}

/* Nothing that would show the pod, or whoever answers instead of it, more than that somebody polls. */
static void test_request(void **state)
{
    struct rig *r = *state;
    static const char *const NEVER[] = {"Cookie", "Authorization", "Proxy", "Referer", "Range"};

    setenv("http_proxy", "http://127.0.0.1:9", 1);
    assert_true(get(r, "cookie"));
    assert_true(get(r, "good"));
    assert_memory_equal(r->pods.last, "GET /good HTTP/1.1\r\n", strlen("GET /good HTTP/1.1\r\n"));
    for (size_t i = 0; i < ARRAY_LEN(NEVER); i++)
        assert_null(strstr(r->pods.last, NEVER[i]));
    assert_int_equal(r->pods.requests, 2);
    unsetenv("http_proxy");
}

static void test_no_answers(void **state)
{
    struct rig *r = *state;
    char paths[] =
        "closes closes-in-body endless-body endless-chunks endless-headers endless-header endless-continue "
        "long-announced too-long refused error no-content old";

    for (const char *path = strtok(paths, " "); path; path = strtok(NULL, " ")) {
        int before = r->pods.requests;
        if (get(r, path))
            fail_msg("%s: an answer", path);
        assert_int_equal(r->pods.requests, before + 1);
        if (r->pods.sent > TAKEN_BYTES)
            fail_msg("%s: %zu bytes were taken", path, r->pods.sent);
        r->pods.sent = 0;
    }
    assert_false(get(r, "moved"));
    assert_memory_equal(r->pods.last, "GET /moved ", strlen("GET /moved "));
}

/* Only the time ends these, for which libcurl takes the real one. */
static void test_silence(void **state)
{
    struct rig *r = *state;
    struct podget b;
    char url[PODADDRESS_URL_BYTES];
    struct err err;

    b = (struct podget){.loop = r->loop, .done = on_done, .ctx = r};
    assert_true(fakepods_url("silent-body", url));
    assert_true(podget_start(&b, url));
    assert_true(fakepods_url("silent", url));
    assert_true(podget_start(&r->get, url));
    while (r->n_done < 2) {
        assert_int_equal(kube_loop_turn(r->loop, 1000, &err), 0);
        assert_false(r->answered);
    }
    assert_int_equal(r->pods.requests, 2);
    podget_release(&b);
}

static void test_nobody_listens(void **state)
{
    struct rig *r = *state;

    kube_loop_fd_remove(r->loop, &r->pods.listener);
    close(r->pods.listener.fd);
    r->pods.listener.fd = dup(0);
    assert_false(get(r, "good"));
}

/* Neither the server's end nor ours keeps it, and `done` never comes. */
static void test_release(void **state)
{
    struct rig *r = *state;
    char url[PODADDRESS_URL_BYTES];
    struct err err;

    assert_true(fakepods_url("silent", url));
    assert_true(podget_start(&r->get, url));
    while (r->pods.requests == 0)
        assert_int_equal(kube_loop_turn(r->loop, 1000, &err), 0);
    podget_release(&r->get);
    while (r->pods.open > 0)
        assert_int_equal(kube_loop_turn(r->loop, 1000, &err), 0);
    assert_int_equal(r->n_done, 0);
}

#define T(test) cmocka_unit_test_setup_teardown(test, rig_start, rig_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_answers), T(test_request),        T(test_no_answers),
        T(test_silence), T(test_nobody_listens), T(test_release),
    };

    return cmocka_run_group_tests_name("podget", tests, NULL, NULL);
}
