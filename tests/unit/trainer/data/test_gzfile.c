/* test_gzfile.c - plain and compressed bytes, cut and damaged streams, things that are no files. */
#include "files.h"
#include "test.h"

#include "host/rank_state.h"
#include "trainer/data/gzfile.h"

#include <sys/stat.h>

enum { LEN = 200000, GZ_MAX = LEN + 4000 };

struct fixture {
    char folder[PATH_MAX];
    char path[PATH_MAX + 8];
    uint8_t plain[LEN];
    uint8_t gz[GZ_MAX];
    uint8_t got[LEN + 10];
    size_t gz_len;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    uint32_t x = 1;

    if (!f)
        return -1;
    files_folder(f->folder);
    snprintf(f->path, sizeof(f->path), "%s/file", f->folder);
    for (size_t i = 0; i < LEN; i++) {
        x = x * 1664525U + 1013904223U;
        f->plain[i] = (uint8_t)(x >> 24);
    }
    f->plain[0] = 0x1f; /* half of gzip's magic is not gzip */
    f->gz_len = files_gzip(f->plain, LEN, f->gz, GZ_MAX);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    files_remove(f->folder);
    free(f);
    return 0;
}

static int read_whole(struct fixture *f, size_t piece, size_t *ret_len, struct err *err)
{
    cleanup_gzfile struct gzfile *g = gzfile_open(f->path, err);
    size_t got;

    *ret_len = 0;
    if (!g)
        return -1;
    do {
        size_t room = sizeof(f->got) - *ret_len < piece ? sizeof(f->got) - *ret_len : piece;
        if (gzfile_read(g, f->got + *ret_len, room, &got, err) < 0)
            return -1;
        *ret_len += got;
    } while (got);
    return 0;
}

static void test_both_forms(void **state)
{
    static const size_t pieces[] = {1, 7, 65536, LEN, LEN + 10};
    struct fixture *f = *state;

    for (size_t i = 0; i < 2 * ARRAY_LEN(pieces); i++) {
        struct err err = {0};
        size_t len;
        if (i % 2)
            files_write(f->path, f->gz, f->gz_len);
        else
            files_write(f->path, f->plain, LEN);
        memset(f->got, 0, sizeof(f->got));
        assert_int_equal(read_whole(f, pieces[i / 2], &len, &err), 0);
        assert_int_equal(len, LEN);
        assert_memory_equal(f->got, f->plain, LEN);
    }
}

static void test_max_bytes(void **state)
{
    struct fixture *f = *state;
    struct err err = {0};

    files_write(f->path, f->plain, 1234);
    struct gzfile *g = gzfile_open(f->path, &err);
    assert_false(gzfile_compressed(g));
    assert_int_equal(gzfile_max_bytes(g), 1234);
    gzfile_free(g);
    /* The best that deflate can do stays under the bound. */
    memset(f->plain + 1, 0, LEN - 1);
    f->gz_len = files_gzip(f->plain, LEN, f->gz, GZ_MAX);
    files_write(f->path, f->gz, f->gz_len);
    g = gzfile_open(f->path, &err);
    assert_true(gzfile_compressed(g));
    assert_true(gzfile_max_bytes(g) >= LEN);
    gzfile_free(g);
}

/* Each buffer of a long file is a sign of life, compressed or not. */
static void test_reading_shows_life(void **state)
{
    struct fixture *f = *state;
    struct rank_slot *slot = rank_state_join(NULL);
    struct err err = {0};
    size_t len;

    files_write(f->path, f->plain, LEN);
    assert_int_equal(read_whole(f, LEN, &len, &err), 0);
    const uint64_t plain = slot->signs;
    assert_true(plain >= LEN >> 16);
    files_write(f->path, f->gz, f->gz_len);
    assert_int_equal(read_whole(f, LEN, &len, &err), 0);
    assert_true(slot->signs > plain + (f->gz_len >> 16));
}

/* A gzip file that ends early is refused wherever it was cut. */
static void test_cut(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[400];
    size_t gz_len = files_gzip(f->plain, 300, gz, sizeof(gz));
    size_t len;

    for (size_t cut = 2; cut < gz_len; cut++) {
        struct err err = {0};
        files_write(f->path, gz, cut);
        assert_int_equal(read_whole(f, 50, &len, &err), -1);
        assert_int_equal(err.kind, ERR_INVALID);
        assert_non_null(strstr(err.msg, f->path));
        assert_non_null(strstr(err.msg, "inside its gzip stream"));
    }
    files_write(f->path, gz, gz_len);
    struct err err = {0};
    assert_int_equal(read_whole(f, 50, &len, &err), 0);
    assert_int_equal(len, 300);
}

/* A flipped bit is refused, but for the padding of a stored block, which is not content. */
static void test_damaged(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[400];
    size_t gz_len = files_gzip(f->plain, 300, gz, sizeof(gz));
    size_t len;
    size_t refused = 0;

    for (size_t at = 10; at < gz_len; at++) {
        struct err err = {0};
        gz[at] ^= 0x10;
        files_write(f->path, gz, gz_len);
        gz[at] ^= 0x10;
        if (read_whole(f, 50, &len, &err) == 0) {
            assert_int_equal(len, 300);
            assert_memory_equal(f->got, f->plain, 300);
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
    struct fixture *f = *state;
    uint32_t x = 7;

    for (int round = 0; round < 40; round++) {
        struct err err = {0};
        size_t from = 0, len;
        f->gz_len = 0;
        for (uint32_t left = 1 + (uint32_t)round % 40; left; left--) {
            x = x * 1664525U + 1013904223U;
            size_t n = left == 1 ? LEN - from : x % 5 == 0 ? 0 : (x >> 8) % (LEN + 1 - from);
            if (round % 3 == 0 && left == 2)
                n = LEN - from; /* so the last one is empty */
            f->gz_len += files_gzip(f->plain + from, n, f->gz + f->gz_len, sizeof(f->gz) - f->gz_len);
            from += n;
            for (uint32_t zeros = round % 2 ? (x >> 4) % 9 : 0; zeros; zeros--)
                f->gz[f->gz_len++] = 0;
        }
        files_write(f->path, f->gz, f->gz_len);
        memset(f->got, 0, sizeof(f->got));
        if (read_whole(f, 1 + x % 30000, &len, &err))
            fail_msg("round %d: %s", round, err.msg);
        assert_int_equal(len, LEN);
        assert_memory_equal(f->got, f->plain, LEN);
    }
}

/* A member that follows is as strict as the first: cut and damaged ones are refused, with their place in the file. */
static void test_bad_members(void **state)
{
    struct fixture *f = *state;
    uint8_t gz[800];
    char place[64];
    size_t first = files_gzip(f->plain, 300, gz, sizeof(gz));
    size_t both = first + files_gzip(f->plain, 300, gz + first, sizeof(gz) - first);
    size_t len;

    for (size_t cut = first + 1; cut < both; cut++) {
        struct err err = {0};
        files_write(f->path, gz, cut);
        assert_int_equal(read_whole(f, 50, &len, &err), -1);
        snprintf(place, sizeof(place), "ends after %zu bytes, inside its gzip stream", cut);
        if (err.kind != ERR_INVALID || !strstr(err.msg, place))
            fail_msg("%zu: %s", cut, err.msg);
    }
    gz[both - 5] ^= 1; /* its checksum */
    struct err err = {0};
    files_write(f->path, gz, both);
    assert_int_equal(read_whole(f, 50, &len, &err), -1);
    snprintf(place, sizeof(place), "damaged gzip stream after %zu bytes", both - 4);
    if (!strstr(err.msg, place))
        fail_msg("%s, expected %s", err.msg, place);
}

/* Whatever else is behind the last member is damage, as in Python; gzip -d warns and leaves it out. */
static void test_trailing_bytes(void **state)
{
    static const char *const behind[] = {"x", "\0\0x", "\x1f\x8c and more bytes than a header has", "text\n"};
    static const size_t len_of[] = {1, 3, 35, 5};
    struct fixture *f = *state;
    char place[64];
    size_t len;

    for (size_t i = 0; i < ARRAY_LEN(behind); i++) {
        struct err err = {0};
        f->gz_len = files_gzip(f->plain, 300, f->gz, GZ_MAX);
        snprintf(place, sizeof(place), "%s %zu",
                 i == 2 ? "damaged gzip stream after" : "behind the gzip stream's end at",
                 f->gz_len + (i == 1 || i == 2 ? 2 : 0));
        memcpy(f->gz + f->gz_len, behind[i], len_of[i]);
        files_write(f->path, f->gz, f->gz_len + len_of[i]);
        assert_int_equal(read_whole(f, LEN, &len, &err), -1);
        if (err.kind != ERR_INVALID || !strstr(err.msg, place))
            fail_msg("%zu: %s, expected %s", i, err.msg, place);
    }
}

static void test_not_files(void **state)
{
    struct fixture *f = *state;
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
    struct fixture *f = *state;
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
        cmocka_unit_test_setup_teardown(test_both_forms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_max_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reading_shows_life, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damaged, setup, teardown),
        cmocka_unit_test_setup_teardown(test_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bad_members, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trailing_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_empty, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
