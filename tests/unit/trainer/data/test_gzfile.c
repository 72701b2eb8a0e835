/* test_gzfile.c - plain and compressed bytes, cut and damaged streams, things that are no files. */
#include "files.h"
#include "test.h"

#include "host/rank_state.h"
#include "trainer/data/gzfile.h"

#include <sys/stat.h>

enum { LEN = 200000, GZ_MAX = LEN + 4000 };

static uint8_t plain[LEN], gz[GZ_MAX], got[LEN + 10];
static size_t gz_len;

static int setup(void **state)
{
    uint32_t x = 1;

    for (size_t i = 0; i < LEN; i++) {
        x = x * 1664525U + 1013904223U;
        plain[i] = (uint8_t)(x >> 24);
    }
    plain[0] = 0x1f; /* half of gzip's magic is not gzip */
    gz_len = files_gzip(plain, LEN, gz, GZ_MAX);
    return files_setup(state, "file");
}

static int read_whole(struct files_fixture *f, size_t piece, size_t *ret_len, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(f->path, err);
    size_t n;

    *ret_len = 0;
    if (!g)
        return -1;
    do {
        size_t room = sizeof(got) - *ret_len < piece ? sizeof(got) - *ret_len : piece;
        if (gzfile_read(g, got + *ret_len, room, &n, err) < 0)
            return -1;
        *ret_len += n;
    } while (n);
    return 0;
}

static void test_both_forms(void **state)
{
    static const size_t pieces[] = {1, 7, 65536, LEN, LEN + 10};
    struct files_fixture *f = *state;

    for (size_t i = 0; i < 2 * ARRAY_LEN(pieces); i++) {
        struct err err = {0};
        size_t len;
        if (i % 2)
            files_write(f->path, gz, gz_len);
        else
            files_write(f->path, plain, LEN);
        memset(got, 0, sizeof(got));
        assert_int_equal(read_whole(f, pieces[i / 2], &len, &err), 0);
        assert_int_equal(len, LEN);
        assert_memory_equal(got, plain, LEN);
    }
}

static void test_max_bytes(void **state)
{
    struct files_fixture *f = *state;
    struct err err = {0};

    files_write(f->path, plain, 1234);
    struct gzfile *g = gzfile_open(f->path, &err);
    assert_false(gzfile_compressed(g));
    assert_int_equal(gzfile_max_bytes(g), 1234);
    gzfile_free(g);
    /* The best that deflate can do stays under the bound. */
    memset(plain + 1, 0, LEN - 1);
    gz_len = files_gzip(plain, LEN, gz, GZ_MAX);
    files_write(f->path, gz, gz_len);
    g = gzfile_open(f->path, &err);
    assert_true(gzfile_compressed(g));
    assert_true(gzfile_max_bytes(g) >= LEN);
    gzfile_free(g);
}

/* Each buffer of a long file is a sign of life, compressed or not. */
static void test_reading_shows_life(void **state)
{
    struct files_fixture *f = *state;
    struct rank_slot *slot = rank_state_join(NULL);
    struct err err = {0};
    size_t len;

    files_write(f->path, plain, LEN);
    assert_int_equal(read_whole(f, LEN, &len, &err), 0);
    const uint64_t signs = slot->signs;
    assert_true(signs >= LEN >> 16);
    files_write(f->path, gz, gz_len);
    assert_int_equal(read_whole(f, LEN, &len, &err), 0);
    assert_true(slot->signs > signs + (gz_len >> 16));
}

/* A gzip file that ends early is refused wherever it was cut, with the place; between two members it ends well. A member that
 * follows is as strict as the first. */
static void test_cut(void **state)
{
    struct files_fixture *f = *state;
    uint8_t two[800];
    const size_t first = files_gzip(plain, 300, two, sizeof(two));
    const size_t both = first + files_gzip(plain, 300, two + first, sizeof(two) - first);
    char says[64];
    size_t len;
    struct err err = {0};

    for (size_t cut = 2; cut <= both; cut++) {
        files_write(f->path, two, cut);
        int rc = read_whole(f, 50, &len, &err);
        assert_int_equal(rc, cut == first || cut == both ? 0 : -1);
        snprintf(says, sizeof(says), "ends after %zu bytes, inside its gzip stream", cut);
        if (rc ? err.kind != ERR_INVALID || !strstr(err.msg, says) : len != (cut == first ? 300 : 600))
            fail_msg("%zu: %s", cut, err.msg);
    }
    for (size_t i = first; i < both; i++)
        two[i] ^= i + 5 == both; /* the second one's checksum */
    files_write(f->path, two, both);
    assert_int_equal(read_whole(f, 50, &len, &err), -1);
    snprintf(says, sizeof(says), "damaged gzip stream after %zu bytes", both - 4);
    assert_non_null(strstr(err.msg, says));
}

/* A flipped bit is refused, but for the padding of a stored block, which is not content. */
static void test_damaged(void **state)
{
    struct files_fixture *f = *state;
    size_t len;
    size_t refused = 0;

    gz_len = files_gzip(plain, 300, gz, GZ_MAX);
    for (size_t at = 10; at < gz_len; at++) {
        struct err err = {0};
        gz[at] ^= 0x10;
        files_write(f->path, gz, gz_len);
        gz[at] ^= 0x10;
        if (read_whole(f, 50, &len, &err) == 0) {
            assert_int_equal(len, 300);
            assert_memory_equal(got, plain, 300);
            continue;
        }
        assert_int_equal(err.kind, ERR_INVALID);
        refused++;
    }
    assert_in_range(refused, gz_len - 10 - 1, gz_len - 10);
}

/* The plain bytes cut at random places into up to 40 members, some of them empty (as bgzip's last one is), with zeros
 * behind some: RFC 1952, 2.2, and what gzip -d and Python's gzip read. In pieces of any size the plain bytes come back. */
static void test_members(void **state)
{
    struct files_fixture *f = *state;
    uint32_t x = 7;

    for (int round = 0; round < 40; round++) {
        struct err err = {0};
        size_t from = 0, len;
        gz_len = 0;
        for (uint32_t left = 1 + (uint32_t)round % 40; left; left--) {
            x = x * 1664525U + 1013904223U;
            size_t n = left == 1 ? LEN - from : x % 5 == 0 ? 0 : (x >> 8) % (LEN + 1 - from);
            if (round % 3 == 0 && left == 2)
                n = LEN - from; /* so the last one is empty */
            gz_len += files_gzip(plain + from, n, gz + gz_len, sizeof(gz) - gz_len);
            from += n;
            for (uint32_t zeros = round % 2 ? (x >> 4) % 9 : 0; zeros; zeros--)
                gz[gz_len++] = 0;
        }
        files_write(f->path, gz, gz_len);
        memset(got, 0, sizeof(got));
        if (read_whole(f, 1 + x % 30000, &len, &err))
            fail_msg("round %d: %s", round, err.msg);
        assert_int_equal(len, LEN);
        assert_memory_equal(got, plain, LEN);
    }
}

/* Whatever else is behind the last member is damage, as in Python; gzip -d warns and leaves it out. */
static void test_trailing_bytes(void **state)
{
    static const char *const behind[] = {"x", "\0\0x", "\x1f\x8c and more bytes than a header has", "text\n"};
    static const size_t len_of[] = {1, 3, 35, 5};
    struct files_fixture *f = *state;
    char place[64];
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        struct err err = {0};
        gz_len = files_gzip(plain, 300, gz, GZ_MAX);
        snprintf(place, sizeof(place), "%s %zu",
                 i == 2 ? "damaged gzip stream after" : "behind the gzip stream's end at",
                 gz_len + (i == 1 || i == 2 ? 2 : 0));
        memcpy(gz + gz_len, behind[i], len_of[i]);
        files_write(f->path, gz, gz_len + len_of[i]);
        assert_int_equal(read_whole(f, LEN, &len, &err), -1);
        if (err.kind != ERR_INVALID || !strstr(err.msg, place))
            fail_msg("%zu: %s, expected %s", i, err.msg, place);
    }
}

static void test_not_files(void **state)
{
    struct files_fixture *f = *state;
    struct err err = {0};

    assert_null(gzfile_open(f->path, &err));
    assert_int_equal(err.kind, ERR_NOT_FOUND);
    assert_null(gzfile_open(f->folder, &err));
    assert_non_null(strstr(err.msg, "not a regular file"));
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_null(gzfile_open(f->path, &err));
    assert_non_null(strstr(err.msg, "not a regular file"));
}

static void test_empty(void **state)
{
    struct files_fixture *f = *state;
    struct err err = {0};
    size_t len;

    files_write(f->path, "", 0);
    assert_int_equal(read_whole(f, 10, &len, &err), 0);
    assert_int_equal(len, 0);
    files_write(f->path, "\x1f", 1);
    assert_int_equal(read_whole(f, 10, &len, &err), 0);
    assert_int_equal(len, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_forms, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_max_bytes, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_reading_shows_life, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_members, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_trailing_bytes, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_not_files, setup, files_teardown),
        cmocka_unit_test_setup_teardown(test_empty, setup, files_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
