/* test_event_encode.c - bytes equal to those of TensorBoard's own writer. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/events/event_encode.h"

#include <math.h>
#include <string.h>

static void test_golden(void **state)
{
    static const struct {
        struct event_value at;
        float value;
    } scalars[] = {{{1700000001.5, 0, "train/loss", true}, 2.5F},
                   {{1700000002.5, 500, "train/loss", false}, 1.25F},
                   {{1700000003.5, 500, "val/accuracy", true}, 0.875F},
                   {{1700000004.5, INT64_C(1) << 40, "train/loss", false}, NAN}};
    cleanup_buf struct buf want = BUF_INIT(4096);
    cleanup_buf struct buf got = BUF_INIT(4096);
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/scalars.tfevents", &want, &err), 0);
    assert_int_equal(event_encode_header(1700000000.25, &got, &err), 0);
    for (size_t i = 0; i < ARRAY_LEN(scalars); i++)
        assert_int_equal(event_encode_scalar(&scalars[i].at, scalars[i].value, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

static void test_golden_histogram_and_restart(void **state)
{
    static const float values[] = {-3, 0, NAN, 4.5F, 27, INFINITY, 27};
    cleanup_buf struct buf want = BUF_INIT(4096);
    cleanup_buf struct buf got = BUF_INIT(4096);
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/kinds.tfevents", &want, &err), 0);
    assert_int_equal(event_encode_histogram(&(struct event_value){1.5, 7, "weights/a", true}, values,
                                            ARRAY_LEN(values), &got, &err),
                     0);
    assert_int_equal(event_encode_restart(7.5, 11, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

/* No values, and none that are finite: counts of zero. */
static void test_empty_histogram(void **state)
{
    const struct event_value at = {1, 1, "a", true};
    const float bad[] = {NAN, INFINITY, -INFINITY};
    cleanup_buf struct buf none = BUF_INIT(1 << 12);
    cleanup_buf struct buf nan = BUF_INIT(1 << 12);
    struct err err = {0};

    (void)state;
    assert_int_equal(event_encode_histogram(&at, NULL, 0, &none, &err), 0);
    assert_int_equal(event_encode_histogram(&at, bad, 3, &nan, &err), 0);
    assert_int_equal(none.len, nan.len);
    assert_memory_equal(none.data, nan.data, none.len);
}

/* A record that does not fit leaves nothing of itself, at every limit. */
static void test_limit(void **state)
{
    cleanup_buf struct buf whole = BUF_INIT(4096);
    struct err err = {0};

    (void)state;
    assert_int_equal(event_encode_scalar(&(struct event_value){1, 2, "tag", true}, 3, &whole, &err), 0);
    for (size_t limit = 0; limit < whole.len + 3; limit++) {
        cleanup_buf struct buf out = BUF_INIT(limit + 3);
        assert_int_equal(buf_puts(&out, "abc", &err), 0);
        int rc = event_encode_scalar(&(struct event_value){1, 2, "tag", true}, 3, &out, &err);
        assert_int_equal(rc, limit < whole.len ? -1 : 0);
        assert_int_equal(out.len, limit < whole.len ? 3 : 3 + whole.len);
        assert_memory_equal(out.data, "abc", 3);
    }
}

static void test_long_tag(void **state)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    char tag[5000];
    struct err err = {0};

    (void)state;
    memset(tag, 'a', sizeof(tag) - 1);
    tag[sizeof(tag) - 1] = '\0';
    assert_int_equal(event_encode_scalar(&(struct event_value){1, 2, tag, true}, 3, &out, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(out.len, 0);
    tag[300] = '\0'; /* a tag over 127 bytes takes two bytes of length at three levels */
    assert_int_equal(event_encode_scalar(&(struct event_value){1, 2, tag, true}, 3, &out, &err), 0);
    /* frame 16, time 9, step 2, summary 1+2, value 1+2, tag 1+2+300, tensor 12, metadata 15 */
    assert_int_equal(out.len, 16 + 9 + 2 + 3 + 3 + 303 + 12 + 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),          cmocka_unit_test(test_golden_histogram_and_restart),
        cmocka_unit_test(test_empty_histogram), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_long_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
