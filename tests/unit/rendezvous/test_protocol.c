/* test_protocol.c - frames and requests, whole, cut and bent. */
#include "rendezvous/protocol.h"
#include "rendezvous/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct view text(const char *s)
{
    return (struct view){s, strlen(s)};
}

static void test_requests_round_trip(void **state)
{
    const struct protocol_request r = {.op = OP_COMPARE_SET,
                                       .key = text("a/b"),
                                       .expected = text("old"),
                                       .value = text(""),
                                       .number = -7,
                                       .wait_ms = 0xfffffff0u};
    cleanup_buf struct buf wire = BUF_INIT(PROTOCOL_BODY_BYTES + 4);
    struct err err = {0};
    struct protocol_request got;
    struct view body;
    size_t used = 0;

    (void)state;
    assert_int_equal(protocol_put_request(&wire, &r, &err), 0);
    for (size_t n = 0; n < wire.len; n++)
        assert_int_equal(protocol_frame((struct view){wire.data, n}, &body, &used), 0);
    assert_int_equal(protocol_frame((struct view){wire.data, wire.len}, &body, &used), 1);
    assert_int_equal(used, wire.len);
    assert_true(protocol_parse_request(body, &got));
    assert_true(got.op == r.op && got.number == -7 && got.wait_ms == r.wait_ms && got.value.len == 0);
    assert_memory_equal(got.key.p, "a/b", 3);
    assert_memory_equal(got.expected.p, "old", 3);
    /* Any cut, and any byte too many, is no request. */
    for (size_t n = 0; n < body.len; n++)
        assert_false(protocol_parse_request((struct view){body.p, n}, &got));
    assert_int_equal(buf_append(&wire, "x", 1, &err), 0);
    assert_false(protocol_parse_request((struct view){wire.data + 4, body.len + 1}, &got));
}

static void test_bent_bytes_never_reach_outside(void **state)
{
    const struct protocol_request r = {.op = OP_SET, .key = text("key"), .value = text("value")};
    cleanup_buf struct buf wire = BUF_INIT(PROTOCOL_BODY_BYTES + 4);
    struct err err = {0};

    (void)state;
    assert_int_equal(protocol_put_request(&wire, &r, &err), 0);
    for (size_t at = 0; at < wire.len; at++)
        for (int bits = 0; bits < 256; bits++) {
            /* A heap copy of exact size: a sanitizer sees any read beyond it. */
            cleanup_free char *copy = malloc(wire.len);
            struct protocol_request got;
            struct view body;
            size_t used;
            assert_non_null(copy);
            memcpy(copy, wire.data, wire.len);
            copy[at] = (char)bits;
            if (protocol_frame((struct view){copy, wire.len}, &body, &used) == 1 &&
                protocol_parse_request(body, &got)) {
                assert_true(got.key.p >= copy && got.key.p + got.key.len <= copy + wire.len);
                assert_true(got.value.p >= copy && got.value.p + got.value.len <= copy + wire.len);
            }
        }
    assert_int_equal(protocol_frame((struct view){"\xff\xff\xff\xff", 4}, &(struct view){0}, &(size_t){0}),
                     -1);
    assert_int_equal(protocol_frame((struct view){"\0\0\0\0", 4}, &(struct view){0}, &(size_t){0}), -1);
}

static void test_hello(void **state)
{
    char a[PROTOCOL_HELLO_BYTES], b[PROTOCOL_HELLO_BYTES];

    (void)state;
    protocol_hello("job-1", a);
    protocol_hello("job-1", b);
    assert_true(protocol_hello_equal(a, b));
    protocol_hello("job-10", b);
    assert_false(protocol_hello_equal(a, b));
    protocol_hello("", b);
    assert_false(protocol_hello_equal(a, b));
}

static void test_numbers(void **state)
{
    static const int64_t numbers[] = {0, 1, -1, INT64_MAX, INT64_MIN, 0x123456789abcdef0};

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        char bytes[8];
        int64_t got;
        protocol_put_number(numbers[i], bytes);
        assert_true(protocol_number((struct view){bytes, 8}, &got) && got == numbers[i]);
        assert_false(protocol_number((struct view){bytes, 7}, &got));
    }
}

static void test_table_and_its_bounds(void **state)
{
    struct table t = {.max_keys = 3, .max_bytes = 20};
    struct view found;

    (void)state;
    assert_false(table_get(&t, text("a"), &found));
    assert_true(table_set(&t, text("a"), text("1")));
    assert_true(table_set(&t, text("b"), text("")));
    assert_true(table_set(&t, text("a"), text("22")));
    assert_true(table_get(&t, text("a"), &found) && found.len == 2 && memcmp(found.p, "22", 2) == 0);
    assert_true(table_get(&t, text("b"), &found) && found.len == 0);
    assert_true(table_set(&t, text("c"), text("0123456789")));
    assert_false(table_set(&t, text("d"), text("")));                /* keys */
    assert_false(table_set(&t, text("a"), text("0123456789")));      /* bytes */
    assert_true(table_get(&t, text("a"), &found) && found.len == 2); /* as it was */
    assert_true(table_set(&t, text("c"), text("")));
    assert_true(t.keys == 3 && t.bytes == 5);
    table_release(&t);
    assert_true(t.keys == 0 && t.bytes == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_round_trip),
        cmocka_unit_test(test_bent_bytes_never_reach_outside),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_table_and_its_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
