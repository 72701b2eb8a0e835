/* test_event_encode.c - bytes equal to those of TensorBoard's own writer. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/events/event_encode.h"

#include <math.h>
#include <string.h>

static void test_golden(void **state)
{
    cleanup_buf struct buf want = BUF_INIT(4096);
    cleanup_buf struct buf got = BUF_INIT(4096);
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/scalars.tfevents", &want, &err), 0);
    assert_int_equal(event_encode_header(1700000000.25, &got, &err), 0);
    assert_int_equal(event_encode_scalar(1700000001.5, 0, "train/loss", 2.5F, true, &got, &err), 0);
    assert_int_equal(event_encode_scalar(1700000002.5, 500, "train/loss", 1.25F, false, &got, &err), 0);
    assert_int_equal(event_encode_scalar(1700000003.5, 500, "val/accuracy", 0.875F, true, &got, &err), 0);
    assert_int_equal(
        event_encode_scalar(1700000004.5, INT64_C(1) << 40, "train/loss", NAN, false, &got, &err), 0);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

/* A record that does not fit leaves nothing of itself, at every limit. */
static void test_limit(void **state)
{
    cleanup_buf struct buf whole = BUF_INIT(4096);
    struct err err = {0};

    (void)state;
    assert_int_equal(event_encode_scalar(1, 2, "tag", 3, true, &whole, &err), 0);
    for (size_t limit = 0; limit < whole.len + 3; limit++) {
        cleanup_buf struct buf out = BUF_INIT(limit + 3);
        assert_int_equal(buf_puts(&out, "abc", &err), 0);
        int rc = event_encode_scalar(1, 2, "tag", 3, true, &out, &err);
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
    assert_int_equal(event_encode_scalar(1, 2, tag, 3, true, &out, &err), -1);
    assert_int_equal(err.kind, ERR_INVALID);
    assert_int_equal(out.len, 0);
    tag[300] = '\0'; /* a tag over 127 bytes takes two bytes of length at three levels */
    assert_int_equal(event_encode_scalar(1, 2, tag, 3, true, &out, &err), 0);
    /* frame 16, time 9, step 2, summary 1+2, value 1+2, tag 1+2+300, tensor 12, metadata 15 */
    assert_int_equal(out.len, 16 + 9 + 2 + 3 + 3 + 303 + 12 + 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_long_tag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
