/* test_log.c - a line is one valid JSON object whatever its input, and never longer than the limit. */
#include "common/log.h"

#include "common/cleanup.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int64_t fixed_ms(void *ctx)
{
    (void)ctx;
    return 1000;
}

/* Log one line into a pipe and read it back. */
static size_t logged(enum log_level at, const char *msg, const char *const *fields, char *out, size_t size)
{
    int fds[2];

    assert_int_equal(pipe2(fds, O_NONBLOCK | O_CLOEXEC), 0);
    struct log log = {fds[1], LOG_INFO, {fixed_ms, fixed_ms, fixed_ms, NULL, NULL}};
    log_line(&log, at, msg, fields);
    ssize_t n = read(fds[0], out, size - 1);
    close(fds[0]);
    close(fds[1]);
    n = n < 0 ? 0 : n;
    out[n] = '\0';
    return (size_t)n;
}

static void test_line(void **state)
{
    char out[LOG_LINE_BYTES + 1];
    const char *const fields[] = {"job", "ns/a", "uid", NULL, "why", "a \"b\"\n\x01", NULL};

    (void)state;
    logged(LOG_WARN, "restarting", fields, out, sizeof(out));
    assert_string_equal(out, "{\"ts\":\"1970-01-01T00:00:01.000Z\",\"level\":\"warn\",\"msg\":\"restarting\","
                             "\"job\":\"ns/a\",\"why\":\"a \\\"b\\\"\\u000a\\u0001\"}\n");
}

static void test_level_filters(void **state)
{
    char out[LOG_LINE_BYTES + 1];

    (void)state;
    assert_int_equal(logged(LOG_DEBUG, "x", NULL, out, sizeof(out)), 0);
}

/* Strings between braces and nothing else: what json.org draws for a flat object. */
static void assert_valid(size_t n, const char *out)
{
    const char *s = out;

    assert_true(n > 0 && n <= LOG_LINE_BYTES && out[n] == '\0' && strlen(out) == n);
    assert_int_equal(*s++, '{');
    for (bool key = true;; key = !key) {
        if (!key && strncmp(s, "true", 4) == 0) {
            s += 4;
        } else {
            assert_int_equal(*s++, '"');
            for (; *s != '"'; s++) {
                assert_true((unsigned char)*s >= 0x20);
                if (*s == '\\')
                    s += s[1] == 'u' ? 5 : 1;
            }
            s++;
        }
        if (!key && *s == '}')
            break;
        assert_int_equal(*s++, key ? ':' : ',');
    }
    assert_string_equal(s, "}\n");
}

static void test_long_input_is_cut(void **state)
{
    char out[2 * LOG_LINE_BYTES];
    char big[2 * LOG_LINE_BYTES];

    (void)state;
    /* Every length around the bound, of bytes that are written as one, two and six, in a field, in a key and in the
     * message. */
    for (size_t len = LOG_LINE_BYTES / 6 - 100; len < LOG_LINE_BYTES + 20; len++) {
        for (const char *byte = "x\"\x01"; *byte; byte++) {
            memset(big, *byte, len);
            big[len] = '\0';
            assert_valid(
                logged(LOG_INFO, "m", (const char *[]){"k", big, "short", "v", NULL}, out, sizeof(out)), out);
            assert_non_null(strstr(out, "\"msg\":\"m\""));
            assert_valid(
                logged(LOG_INFO, "m", (const char *[]){big, "v", "short", "v", NULL}, out, sizeof(out)), out);
            assert_valid(logged(LOG_INFO, big, (const char *[]){"k", big, NULL}, out, sizeof(out)), out);
            if (len > LOG_LINE_BYTES - 100)
                assert_non_null(strstr(out, "\"truncated\":true}"));
        }
    }
}

/* The begin of a value says more than none: of an error, of a message. */
static void test_a_cut_value_keeps_its_begin(void **state)
{
    static const struct {
        const char *text, *written; /* of one character */
        size_t bytes;
    } rows[] = {
        {"x", "x", 1}, {"\"", "\\\"", 2}, {"\x01", "\\u0001", 6}, {"\xe2\x82\xac", "\xe2\x82\xac", 3}};
    char out[2 * LOG_LINE_BYTES];
    char big[4 * LOG_LINE_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        big[0] = '\0';
        for (size_t k = 0; k <= LOG_LINE_BYTES / rows[i].bytes; k++)
            strcat(big, rows[i].text);
        for (int of_msg = 0; of_msg < 2; of_msg++) {
            const size_t n = logged(LOG_INFO, of_msg ? big : "m",
                                    (const char *[]){"job", "a/b", "error", big, "kind", "transient", NULL},
                                    out, sizeof(out));
            assert_valid(n, out);
            assert_true(n > LOG_LINE_BYTES - 32);
            assert_non_null(strstr(out, "\"truncated\":true}\n"));
            const char *value = strstr(out, of_msg ? "\"msg\":\"" : "\"error\":\"");
            assert_non_null(value);
            value += of_msg ? strlen("\"msg\":\"") : strlen("\"error\":\"");
            for (; *value != '"'; value += strlen(rows[i].written))
                assert_memory_equal(value, rows[i].written, strlen(rows[i].written));
        }
    }
}

/* A proxy answers in any encoding, and a message that is cut may end inside a character. */
static void test_what_is_not_utf8_is_repaired(void **state)
{
    char out[LOG_LINE_BYTES + 1];

    (void)state;
    logged(LOG_WARN, "caf\xe9", (const char *[]){"error", "\xff \xe2\x82", NULL}, out, sizeof(out));
    assert_non_null(strstr(out, "\"msg\":\"caf?\",\"error\":\"? ??\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_level_filters),
        cmocka_unit_test(test_long_input_is_cut),
        cmocka_unit_test(test_a_cut_value_keeps_its_begin),
        cmocka_unit_test(test_what_is_not_utf8_is_repaired),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
