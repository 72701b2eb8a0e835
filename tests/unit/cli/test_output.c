/* test_output.c - a JSON object as a line: valid UTF-8, and nothing that a terminal obeys, whatever objects contain. */
#include "test.h"

#include "cli/output.h"
#include "common/json.h"
#include "common/text.h"

#include <string.h>

static void expect(const char *text, const char *want)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 16);
    cleanup_json cJSON *o = cJSON_CreateObject(), *back;
    char line[256];
    struct err err;
    uint32_t c;

    cJSON_AddStringToObject(o, "a", text);
    assert_int_equal(output_json(o, &out, &err), 0);
    snprintf(line, sizeof(line), "{\"a\":\"%s\"}\n", want);
    assert_string_equal(buf_str(&out), line);
    for (size_t at = 0, n; at < out.len; at += n) {
        n = text_character(out.data + at, out.len - at, &c);
        assert_true(n && (c >= ' ' || at == out.len - 1));
    }
    back = json_parse(out.data, out.len, &err);
    assert_non_null(back);
    cJSON_Delete(back);
    back = NULL;
}

static void test_strings(void **state)
{
    (void)state;
    expect("plain \"q\" \\ \xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80",
           "plain \\\"q\\\" \\\\ \xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80");
    expect("\x1b[2J\n\t\x7f", "\\u001b[2J\\u000a\\u0009\\u007f");
    expect("\xc2\x9b"
           "2J",
           "\\u009b2J"); /* CSI of 8 bits */
    expect("a\xe2\x80\xae"
           "b\xe2\x80\xa8",
           "a\\u202eb\\u2028");                      /* right to left, line separator */
    expect("\xf3\xa0\x81\x81", "\\udb40\\udc41");    /* a tag, above U+FFFF */
    expect("\xff\xc3", "\\ufffd\\ufffd");            /* no UTF-8, and a character that is cut */
    expect("\xed\xa0\x80", "\\ufffd\\ufffd\\ufffd"); /* a surrogate */
}

static void test_bounded(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(8);
    cleanup_json cJSON *o = cJSON_CreateObject();
    struct err err;

    (void)state;
    cJSON_AddStringToObject(o, "a", "longer than that");
    assert_int_equal(output_json(o, &out, &err), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_strings), cmocka_unit_test(test_bounded)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
