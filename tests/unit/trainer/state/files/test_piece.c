/* test_piece.c - a large file is written in pieces: its bytes, signs of life, and what reaches the disk when. */
#include "test.h"

#include "host/rank_state.h"
#include "trainer/state/files/piece.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { CALLS_MAX = 16 };

/* sync_file_range(2) here: what was requested, and a failure of the call `fails` from 0. */
static struct {
    off_t from;
    bool waits;
} calls[CALLS_MAX];
static int n_calls, fails, code;

int sync_file_range(int fd, off64_t from, off64_t len, unsigned flags)
{
    assert_true(fd >= 0 && n_calls < CALLS_MAX);
    assert_int_equal(len, PIECE_BYTES);
    calls[n_calls].from = from;
    calls[n_calls].waits = flags & SYNC_FILE_RANGE_WAIT_AFTER;
    if (n_calls++ != fails)
        return 0;
    errno = code;
    return -1;
}

static void expect(off_t piece, bool waits, int at)
{
    assert_int_equal(calls[at].from, piece * PIECE_BYTES);
    assert_int_equal(calls[at].waits, waits);
}

static void test_pieces(void **state)
{
    const size_t len = 3 * (size_t)PIECE_BYTES + 7;
    cleanup_fclose FILE *f = tmpfile();
    cleanup_free char *bytes = malloc(len), *back = malloc(len);
    struct rank_slot *slot = rank_state_join(NULL);

    (void)state;
    n_calls = 0;
    fails = -1;
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 >> 7);
    assert_int_equal(piece_write(fileno(f), bytes, 5), 0);
    assert_int_equal(piece_write(fileno(f), bytes + 5, len - 5), 0);
    assert_int_equal(slot->signs, 1 + 4);
    assert_int_equal(n_calls, 5);
    expect(0, false, 0);
    expect(1, false, 1);
    expect(0, true, 2);
    expect(2, false, 3);
    expect(1, true, 4);
    rewind(f);
    assert_int_equal(fread(back, 1, len, f), len);
    assert_memory_equal(back, bytes, len);
}

/* A disk that is full is reported at once; that a file system cannot do this is not. */
static void test_failures(void **state)
{
    static const struct {
        int code, rc;
    } cases[] = {{ENOSPC, -1}, {EIO, -1}, {EDQUOT, -1}, {EINVAL, 0}, {ENOSYS, 0}, {ESPIPE, 0}, {EPERM, 0}};
    const size_t len = 2 * (size_t)PIECE_BYTES;
    cleanup_free char *bytes = calloc(1, len);

    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        cleanup_fclose FILE *f = tmpfile();
        n_calls = 0;
        fails = i % 2 ? 2 : 0; /* begun, or waited for */
        code = cases[i / 2].code;
        assert_int_equal(piece_write(fileno(f), bytes, len), cases[i / 2].rc);
        if (cases[i / 2].rc)
            assert_int_equal(errno, code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
