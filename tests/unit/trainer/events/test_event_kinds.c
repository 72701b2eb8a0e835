/* test_event_kinds.c - bytes equal to those of TensorBoard's own messages; PNGs that zlib and their CRCs confirm. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/events/event_encode.h"
#include "trainer/events/event_kinds.h"
#include "trainer/events/png.h"

#include <math.h>
#include <string.h>
#include <zlib.h>

static int encode_all(struct buf *out, struct err *err)
{
    static const float values[] = {-3, 0, NAN, 4.5F, 27, INFINITY, 27};
    cleanup_buf struct buf png = BUF_INIT(16);
    const struct event_hparam number = {"lr", NULL, 0.25};
    const struct event_hparam text = {"optimizer", "sgd", 0};
    const struct event_node graph[] = {{"input", "Placeholder", NULL}, {"a", "linear", "input"}};

    return buf_puts(&png, "PNG", err) ||
                   event_encode_histogram(&(struct event_place){1.5, 7, "weights/a", true}, values,
                                          ARRAY_LEN(values), out, err) ||
                   event_encode_image(&(struct event_place){2.5, 8, "filters/a", true}, &png, 3, 2, out,
                                      err) ||
                   event_encode_text(&(struct event_place){3.5, 0, "model", true}, "# hello", out, err) ||
                   event_encode_text(&(struct event_place){4.5, 9, "model", false}, "# hello", out, err) ||
                   event_encode_hparams(5.5, "run", &number, 1, out, err) ||
                   event_encode_hparams(5.5, "run", &text, 1, out, err) ||
                   event_encode_graph(6.5, graph, ARRAY_LEN(graph), out, err) ||
                   event_encode_restart(7.5, 11, out, err)
               ? -1
               : 0;
}

static void test_golden(void **state)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 16);
    cleanup_buf struct buf got = BUF_INIT(1 << 16);
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/kinds.tfevents", &want, &err), 0);
    assert_int_equal(encode_all(&got, &err), 0);
    for (size_t i = 0; i < want.len && i < got.len; i++)
        if (want.data[i] != got.data[i])
            fail_msg("byte %zu: %#x, expected %#x", i, (unsigned char)got.data[i],
                     (unsigned char)want.data[i]);
    assert_int_equal(got.len, want.len);
}

/* Whatever does not fit is refused whole. */
static void test_limit(void **state)
{
    cleanup_buf struct buf whole = BUF_INIT(1 << 16);
    struct err err = {0};

    (void)state;
    assert_int_equal(encode_all(&whole, &err), 0);
    for (size_t limit = 0; limit < whole.len; limit += 7) {
        cleanup_buf struct buf out = BUF_INIT(limit);
        assert_int_equal(encode_all(&out, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_memory_equal(buf_str(&out), whole.data, out.len);
    }
}

static uint32_t big(const char *p)
{
    const uint8_t *b = (const uint8_t *)p;

    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void test_png(void **state)
{
    enum { W = 5, H = 3 };
    uint8_t pixels[W * H];
    uint8_t raw[(W + 1) * H + 1];
    uLongf raw_len = sizeof(raw);
    cleanup_buf struct buf png = BUF_INIT(1 << 12);
    struct err err = {0};
    static const char *const types[] = {"IHDR", "IDAT", "IEND"};

    (void)state;
    for (int i = 0; i < W * H; i++)
        pixels[i] = (uint8_t)(i * 17);
    assert_int_equal(png_encode(pixels, W, H, &png, &err), 0);
    assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n", 8);
    const char *p = png.data + 8;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        uint32_t len = big(p);
        assert_memory_equal(p + 4, types[i], 4);
        assert_int_equal(big(p + 8 + len), crc32(crc32(0, NULL, 0), (const Bytef *)p + 4, len + 4));
        if (i == 0) {
            assert_int_equal(big(p + 8), W);
            assert_int_equal(big(p + 12), H);
            assert_memory_equal(p + 16, "\x08\0\0\0\0", 5);
        }
        if (i == 1)
            assert_int_equal(uncompress(raw, &raw_len, (const Bytef *)p + 8, len), Z_OK);
        p += 12 + len;
    }
    assert_ptr_equal(p, png.data + png.len);
    assert_int_equal(raw_len, (W + 1) * H);
    for (int y = 0; y < H; y++) {
        assert_int_equal(raw[y * (W + 1)], 0);
        assert_memory_equal(raw + y * (W + 1) + 1, pixels + y * W, W);
    }
    assert_int_equal(png_encode(pixels, 0, H, &png, &err), -1);
    assert_int_equal(png_encode(pixels, W, PNG_SIDE_MAX + 1, &png, &err), -1);
}

/* No values, and none that are finite: counts of zero. */
static void test_empty_histogram(void **state)
{
    cleanup_buf struct buf none = BUF_INIT(1 << 12);
    cleanup_buf struct buf nan = BUF_INIT(1 << 12);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    struct err err = {0};

    (void)state;
    assert_int_equal(event_encode_histogram(&(struct event_place){1, 1, "a", true}, NULL, 0, &none, &err), 0);
    assert_int_equal(event_encode_histogram(&(struct event_place){1, 1, "a", true}, bad, 3, &nan, &err), 0);
    assert_int_equal(none.len, nan.len);
    assert_memory_equal(none.data, nan.data, none.len);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_empty_histogram),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
