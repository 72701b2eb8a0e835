/* test_torch_zip.c - files equal to torch.save's, byte for byte but for the identity that torch hashes; failing
 * sinks; records beyond 4 GiB. */
#include "common/fsutil.h"
#include "test.h"
#include "trainer/state/files/torch_zip.h"
#include "values.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>

enum { ID_BYTES = 40, FILE_MAX = 1 << 16 };

static int to_buf(void *ctx, const void *bytes, size_t len, struct err *err)
{
    return buf_append(ctx, bytes, len, err);
}

static size_t find(const struct buf *b, size_t from, const char *text)
{
    const char *at = memmem(b->data + from, b->len - from, text, strlen(text));

    assert_non_null(at);
    return (size_t)(at - b->data);
}

/* Blank what depends on torch's hashes: the id, and its CRC in the descriptor and in the directory. */
static void blank_id(struct buf *b)
{
    size_t name = find(b, 0, ".data/serialization_id");
    size_t id = (name + 22 + 63) / 64 * 64;
    size_t entry = find(b, id, ".data/serialization_id") - strlen("state/");

    while (memcmp(b->data + entry, "PK\1\2", 4) != 0)
        entry--;
    for (int i = 0; i < ID_BYTES; i++)
        assert_in_range(b->data[id + (size_t)i], '0', '9');
    assert_memory_equal(b->data + id + ID_BYTES, "PK\7\10", 4);
    memset(b->data + id, '0', ID_BYTES);
    memset(b->data + id + ID_BYTES + 4, 0, 4);
    memset(b->data + entry + 16, 0, 4);
}

static void test_golden(void **state)
{
    cleanup_arena struct arena a = {0};
    const struct tensor_list module = values_state(&a);
    cleanup_buf struct buf got = BUF_INIT(FILE_MAX);
    cleanup_buf struct buf want = BUF_INIT(FILE_MAX);
    struct err err = {0};

    (void)state;
    assert_int_equal(fs_read(TK_SOURCE_DIR "/tests/golden/torch/state.pt", &want, &err), 0);
    assert_int_equal(torch_zip_write(&module, "state", &(struct pt_sink){to_buf, &got}, &err), 0);
    blank_id(&got);
    blank_id(&want);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
}

/* The id, and so the file, is the same for equal contents and another one for others. */
static void test_id_follows_content(void **state)
{
    cleanup_arena struct arena a = {0};
    struct tensor_list v = values_state(&a);
    struct buf file[3] = {BUF_INIT(FILE_MAX), BUF_INIT(FILE_MAX), BUF_INIT(FILE_MAX)};
    float changed[6] = {9};
    struct err err = {0};

    (void)state;
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            ((struct tensor_row *)(uintptr_t)v.row)[0].tensor.data = changed;
        assert_int_equal(torch_zip_write(&v, "m", &(struct pt_sink){to_buf, &file[i]}, &err), 0);
        assert_int_equal(file[i].len, file[0].len);
    }
    assert_memory_equal(file[0].data, file[1].data, file[0].len);
    size_t id = (find(&file[0], 0, ".data/serialization_id") + 22 + 63) / 64 * 64;
    assert_memory_not_equal(file[0].data + id, file[2].data + id, ID_BYTES);
    for (int i = 0; i < 3; i++)
        buf_release(&file[i]);
}

struct failing {
    size_t calls;
    size_t fail_at;
};

static int fail_at(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct failing *f = ctx;

    (void)bytes;
    (void)len;
    if (f->calls++ == f->fail_at)
        return err_errno(err, ERR_FATAL, ENOSPC, "sink");
    assert_true(f->calls <= f->fail_at); /* nothing is written after a failure */
    return 0;
}

static void test_every_write_fails(void **state)
{
    cleanup_arena struct arena a = {0};
    struct tensor_list v = values_state(&a);
    struct failing f = {.fail_at = SIZE_MAX};
    struct err err = {0};

    (void)state;
    assert_int_equal(torch_zip_write(&v, "m", &(struct pt_sink){fail_at, &f}, &err), 0);
    size_t writes = f.calls;
    assert_in_range(writes, 20, 200);
    for (size_t i = 0; i < writes; i++) {
        f = (struct failing){.fail_at = i};
        assert_int_equal(torch_zip_write(&v, "m", &(struct pt_sink){fail_at, &f}, &err), -1);
        assert_int_equal(err.code, ENOSPC);
        assert_int_equal(f.calls, i + 1);
    }
}

/* Keeps what is not payload: the long runs of zero pages are only counted. */
struct sparse {
    struct buf small;
    uint64_t at;
    uint64_t central_at;
};

static int to_sparse(void *ctx, const void *bytes, size_t len, struct err *err)
{
    struct sparse *s = ctx;

    if (len >= 4 && memcmp(bytes, "PK\1\2", 4) == 0 && !s->central_at)
        s->central_at = s->at;
    s->at += len;
    return len > 4096 ? 0 : buf_append(&s->small, bytes, len, err);
}

static uint64_t read_le(const char *at, size_t len)
{
    uint64_t v = 0;

    for (size_t i = len; i-- > 0;)
        v = v << 8 | (uint8_t)at[i];
    return v;
}

/* The classic end gives up its offset, the Zip64 end has it. */
static void check_end(const struct sparse *s)
{
    const char *end = s->small.data + s->small.len;

    assert_memory_equal(end - 22, "PK\5\6", 4);
    assert_int_equal(read_le(end - 22 + 16, 4), UINT32_MAX);
    assert_memory_equal(end - 98, "PK\6\6", 4);
    assert_true(read_le(end - 98 + 48, 8) == s->central_at);
    assert_true(read_le(end - 42 + 8, 8) == s->at - 98);
}

/* In the directory: sizes for the big record, the offset alone for the one behind it, whose payload is aligned. */
static void check_entries(const struct buf *b, uint64_t big)
{
    size_t local_far = find(b, find(b, 0, "m/data/0"), "m/data/1");
    size_t at_big = find(b, local_far, "m/data/0");
    size_t at_far = find(b, at_big, "m/data/1");
    const char *entry_big = b->data + at_big - 46;
    const char *entry_far = b->data + at_far - 46;

    assert_int_equal(read_le(entry_big + 20, 4), UINT32_MAX);
    assert_int_equal(read_le(entry_big + 30, 2), 20);
    assert_true(read_le(entry_big + 46 + 8 + 4, 8) == big);
    assert_true(read_le(entry_big + 46 + 8 + 12, 8) == big);
    assert_int_equal(read_le(entry_far + 20, 4), 8);
    assert_int_equal(read_le(entry_far + 42, 4), UINT32_MAX);
    assert_int_equal(read_le(entry_far + 30, 2), 12);
    uint64_t offset = read_le(entry_far + 46 + 8 + 4, 8);
    uint64_t extra = read_le(b->data + local_far - 2, 2);
    assert_true(offset > big);
    assert_memory_equal(b->data + local_far + 8, "\1\0\10\0", 4);
    assert_memory_equal(b->data + local_far + 8 + 12, "FB", 2);
    assert_int_equal((offset + 30 + 8 + extra) % 64, 0);
}

/* 4 GiB of untouched pages cost no memory to map, only the time of a CRC over them. */
static void test_zip64(void **state)
{
    const size_t big = (size_t)4 << 30;
    void *pages = mmap(NULL, big, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    float one[2] = {1, 2};
    const struct tensor_row rows[] = {
        {"big", {.data = pages, .dtype = PT_U8, .dims = 1, .dim = {(int64_t)big}}},
        {"far", {.data = one, .dims = 1, .dim = {2}}},
    };
    const struct tensor_list v = {rows, 2};
    struct sparse s = {.small = BUF_INIT(FILE_MAX)};
    struct err err = {0};

    (void)state;
    if (pages == MAP_FAILED)
        skip();
    assert_int_equal(torch_zip_write(&v, "m", &(struct pt_sink){to_sparse, &s}, &err), 0);
    munmap(pages, big);
    check_end(&s);
    check_entries(&s.small, big);
    buf_release(&s.small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_id_follows_content),
        cmocka_unit_test(test_every_write_fails),
        cmocka_unit_test(test_zip64),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
