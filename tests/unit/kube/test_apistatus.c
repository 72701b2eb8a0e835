/* test_apistatus.c - what answers mean: a table of codes, reasons and bodies. */
#include "kube/apistatus.h"

#include "common/json.h"
#include "jsontext.h"
#include "test.h"

#include <string.h>

struct row {
    int code;
    const char *body;
    enum err_kind kind;
    enum kube_reason reason;
    const char *message;
    int64_t header_retry_ms, retry_ms;
};

#define S(code, reason, more)                                                                                \
    "{'kind':'Status','status':'Failure','message':'it says so','reason':'" reason "','code':" #code more "}"

static const struct row rows[] = {
    {404, S(404, "NotFound", ""), ERR_NOT_FOUND, KUBE_REASON_OTHER, "it says so", -1, -1},
    {404, "404 page not found\n", ERR_NOT_FOUND, KUBE_REASON_OTHER, "404 page not found", -1, -1},
    {409, S(409, "AlreadyExists", ""), ERR_CONFLICT, KUBE_REASON_ALREADY_EXISTS, "it says so", -1, -1},
    {409, S(409, "Conflict", ""), ERR_CONFLICT, KUBE_REASON_OTHER, "it says so", -1, -1},
    {400, S(400, "BadRequest", ""), ERR_INVALID, KUBE_REASON_OTHER, "it says so", -1, -1},
    {403, S(403, "Forbidden", ""), ERR_INVALID, KUBE_REASON_OTHER, "it says so", -1, -1},
    {422, S(422, "Invalid", ""), ERR_INVALID, KUBE_REASON_OTHER, "it says so", -1, -1},
    {401, S(401, "Unauthorized", ""), ERR_TRANSIENT, KUBE_REASON_OTHER, "it says so", -1, -1},
    {410, S(410, "Expired", ""), ERR_TRANSIENT, KUBE_REASON_EXPIRED, "it says so", -1, -1},
    {410, S(410, "Gone", ""), ERR_TRANSIENT, KUBE_REASON_EXPIRED, "it says so", -1, -1},
    {429, S(429, "TooManyRequests", ""), ERR_TRANSIENT, KUBE_REASON_OTHER, "it says so", 5000, 5000},
    {429, S(429, "TooManyRequests", ",'details':{'retryAfterSeconds':7}"), ERR_TRANSIENT, KUBE_REASON_OTHER,
     "it says so", -1, 7000},
    {500, "", ERR_TRANSIENT, KUBE_REASON_OTHER, "no message", -1, -1},
    {502, "<html>Bad Gateway</html>\r\nmore", ERR_TRANSIENT, KUBE_REASON_OTHER, "<html>Bad Gateway</html>",
     -1, -1},
    {503, S(503, "ServiceUnavailable", ""), ERR_TRANSIENT, KUBE_REASON_OTHER, "it says so", 1000, 1000},
    {503, "maintenance", ERR_TRANSIENT, KUBE_REASON_OTHER, "maintenance", 3600000, 60000},
    {429, S(429, "TooManyRequests", ",'details':{'retryAfterSeconds':9000000000000000}"), ERR_TRANSIENT,
     KUBE_REASON_OTHER, "it says so", -1, 60000},
    {504, S(504, "Timeout", ""), ERR_TRANSIENT, KUBE_REASON_OTHER, "it says so", -1, -1},
    {301, "", ERR_TRANSIENT, KUBE_REASON_OTHER, "no message", -1, -1},
    /* A proxy's code and the server's: the proxy's was sent. */
    {503, S(409, "Conflict", ""), ERR_TRANSIENT, KUBE_REASON_OTHER, "it says so", -1, -1},
    {404, "{'kind':'Pod'}", ERR_NOT_FOUND, KUBE_REASON_OTHER, "{'kind':'Pod'}", -1, -1},
    {400, "{'kind':'Status'}", ERR_INVALID, KUBE_REASON_OTHER, "no message", -1, -1},
};

static void test_rows(void **ctx)
{
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        cleanup_free char *body = jsontext(rows[i].body);
        cleanup_free char *message = jsontext(rows[i].message);
        struct kube_http_response r = {rows[i].code, rows[i].header_retry_ms, sv_from(body), false};
        struct kube_status status;
        struct err err = {0};
        assert_int_equal(kube_status_check(&r, &status, &err), -1);
        if (err.kind != rows[i].kind || status.reason != rows[i].reason || !strstr(err.msg, message))
            fail_msg("row %zu: kind %d, reason %d, \"%s\"", i, (int)err.kind, (int)status.reason, err.msg);
        assert_int_equal(status.code, rows[i].code);
        assert_int_equal(err.code, rows[i].code);
        assert_int_equal(status.retry_after_ms, rows[i].retry_ms);
    }
}

/* Pod Security's message about one container takes 500 bytes. */
static void test_a_sentence_is_whole_up_to_1_kib(void **ctx)
{
    char body[4096], words[2001] = "", want[4096];

    (void)ctx;
    for (int i = 0; i < 200; i++)
        strcat(words, "must sets ");
    for (size_t len = 1000; len <= 1100; len += 25) {
        struct kube_status status;
        struct err err;
        bool whole = len <= 1024;
        snprintf(body, sizeof(body), "{'kind':'Status','code':403,'message':'%.*s'}", (int)len, words);
        cleanup_free char *json = jsontext(body);
        struct kube_http_response r = {403, -1, sv_from(json), false};
        snprintf(want, sizeof(want), "%.*s%s (HTTP 403)", whole ? (int)len : 1019, words, whole ? "" : "…");
        assert_int_equal(kube_status_check(&r, &status, &err), -1);
        assert_string_equal(err.msg, want);
        r.body = (struct sv){words, len};
        assert_int_equal(kube_status_check(&r, &status, &err), -1);
        assert_string_equal(err.msg, want);
    }
}

static void test_success_touches_nothing(void **ctx)
{
    struct kube_status status = {.code = 77};
    struct err err = {.kind = ERR_FATAL};

    (void)ctx;
    for (int code = 200; code <= 204; code++) {
        struct kube_http_response r = {code, -1, sv_from(""), false};
        assert_int_equal(kube_status_check(&r, &status, &err), 0);
    }
    assert_int_equal(status.code, 77);
    assert_int_equal(err.kind, ERR_FATAL);
}

static void test_in_stream(void **ctx)
{
    static const struct {
        const char *json;
        int code;
        enum kube_reason reason;
    } in_stream[] = {
        {S(410, "Expired", ""), 410, KUBE_REASON_EXPIRED},
        {"{'kind':'Status','reason':'Gone','code':410}", 410, KUBE_REASON_EXPIRED},
        {"{'kind':'Status','reason':'Expired'}", 500, KUBE_REASON_EXPIRED},
        {"{'kind':'Status','code':1e300}", 500, KUBE_REASON_OTHER},
        {"{'kind':'Status','code':-5}", 500, KUBE_REASON_OTHER},
        {"{}", 500, KUBE_REASON_OTHER},
    };
    struct kube_status status;
    struct err err;

    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(in_stream); i++) {
        cleanup_json cJSON *o = jsontext_parse(in_stream[i].json);
        assert_int_equal(kube_status_object(o, &status, &err), -1);
        assert_int_equal(status.code, in_stream[i].code);
        assert_int_equal(status.reason, in_stream[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_a_sentence_is_whole_up_to_1_kib),
        cmocka_unit_test(test_success_touches_nothing),
        cmocka_unit_test(test_in_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
