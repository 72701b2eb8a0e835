/* test_rank_state.c - a rank's slot as its launcher reads it, and every other name, which gives a slot that nobody reads. */
#include "host/rank_contract.h"
#include "host/rank_state.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 40 }; /* more than a page */

struct launcher {
    int fd;
    struct rank_slot *slots;
    char where[MEMORY_FILE_BYTES];
};

static struct launcher launch(int n)
{
    struct launcher l;

    l.fd = rank_state_make(n, &l.slots, l.where);
    assert_true(l.fd >= 0);
    return l;
}

static void end(struct launcher *l, int n)
{
    rank_state_unmap(l->slots, n);
    close(l->fd);
}

static struct rank_slot *join(const char *where, const char *slot)
{
    char name[64];

    snprintf(name, sizeof(name), "%s/%s", where, slot);
    return rank_state_join(name);
}

static void write_all(struct rank_slot *s, uint32_t n)
{
    rank_state_phase(s, RANK_SAVING);
    s->call = RANK_CALL_RECV;
    s->begun = n + 1;
    s->ended = n + 2;
    s->step = n + 3;
    s->step_us = n + 4;
    for (uint32_t i = 0; i < n; i++)
        rank_state_sign(s);
}

static void assert_all(const struct rank_slot *s, uint32_t n)
{
    assert_int_equal(s->phase, RANK_SAVING);
    assert_int_equal(s->call, RANK_CALL_RECV);
    assert_int_equal(s->begun, n + 1);
    assert_int_equal(s->ended, n + 2);
    assert_int_equal(s->step, n + 3);
    assert_int_equal(s->step_us, n + 4);
    assert_int_equal(s->signs, n);
}

static void assert_zero(const struct rank_slot *s)
{
    static const struct rank_slot zero;

    assert_memory_equal(s, &zero, sizeof(zero));
}

static void test_another_process_writes_its_own_slot(void **state)
{
    struct launcher l = launch(RANKS);
    int status;

    (void)state;
    for (int i = 0; i < RANKS; i++)
        assert_zero(&l.slots[i]);
    pid_t pid = fork();
    if (!pid) {
        write_all(join(l.where, "39"), 100);
        write_all(join(l.where, "1"), 7);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_all(&l.slots[39], 100);
    assert_all(&l.slots[1], 7);
    assert_zero(&l.slots[0]);
    assert_zero(&l.slots[2]);
    rank_state_clear(l.slots, RANKS);
    assert_zero(&l.slots[1]);
    assert_zero(&l.slots[39]);
    end(&l, RANKS);
}

/* A launcher that had no memory file clears nothing. */
static void test_no_file(void **state)
{
    (void)state;
    rank_state_clear(NULL, 3);
    rank_state_unmap(NULL, 3);
}

static void test_nobody_changes_its_size(void **state)
{
    struct launcher l = launch(3);

    (void)state;
    assert_int_equal(ftruncate(l.fd, 0), -1);
    assert_int_equal(ftruncate(l.fd, 4096), -1);
    assert_int_equal(fcntl(l.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), -1);
    end(&l, 3);
}

/* A slot that can be written, and that is none of the launcher's. */
static void assert_private(struct rank_slot *s, const struct launcher *l, int n)
{
    assert_non_null(s);
    assert_zero(s);
    write_all(s, 5);
    for (int i = 0; i < n; i++)
        assert_zero(&l->slots[i]);
}

static void test_other_names_give_a_private_slot(void **state)
{
    static const char *const slots[] = {"3", "-1", "", "1x", "4294967296", "0/0"};
    static const char *const names[] = {"", "/", "//", "1", "x/0/0", "0/0/0", "4194305/3/0", "/etc/passwd/0"};
    struct launcher l = launch(3);

    (void)state;
    assert_private(rank_state_join(NULL), &l, 3);
    for (size_t i = 0; i < ARRAY_LEN(slots); i++)
        assert_private(join(l.where, slots[i]), &l, 3);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        assert_private(rank_state_join(names[i]), &l, 3);
    end(&l, 3);
}

/* A file under the number that is not what the launcher makes: of another name, one that can shrink, too small. */
static void test_other_files_give_a_private_slot(void **state)
{
    struct launcher l = launch(1);
    const int fds[] = {
        open("/dev/null", O_RDWR | O_CLOEXEC),
        memfd_create("torchkeeper-rank-stat", MFD_CLOEXEC | MFD_ALLOW_SEALING),
        memfd_create(CONTRACT_RANK_STATE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING),
        memfd_create(CONTRACT_RANK_STATE_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING),
    };

    (void)state;
    for (int i = 1; i < 3; i++)
        assert_int_equal(ftruncate(fds[i], 4096), 0);
    assert_int_equal(fcntl(fds[1], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    assert_int_equal(ftruncate(fds[3], 127), 0);
    assert_int_equal(fcntl(fds[3], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        char name[64];
        snprintf(name, sizeof(name), "%d/%d/0", (int)getpid(), fds[i]);
        assert_private(rank_state_join(name), &l, 1);
        /* None of it is in the file, either. */
        uint64_t byte = 0;
        assert_true(pread(fds[i], &byte, sizeof(byte), 0) <= (ssize_t)sizeof(byte));
        assert_int_equal(byte, 0);
        close(fds[i]);
    }
    end(&l, 1);
}

static void test_calls_of_all_ranks_are_counted_and_others_are_signs(void **state)
{
    struct rank_slot *s = rank_state_join(NULL);

    (void)state;
    rank_state_begin(s, RANK_CALL_BARRIER);
    assert_int_equal(s->call, RANK_CALL_BARRIER);
    assert_int_equal(s->begun, 1);
    assert_int_equal(s->ended, 0);
    rank_state_end(s);
    assert_int_equal(s->call, RANK_CALL_NONE);
    assert_int_equal(s->ended, 1);
    assert_int_equal(s->signs, 0);
    rank_state_begin(s, RANK_CALL_SEND);
    assert_int_equal(s->call, RANK_CALL_SEND);
    rank_state_end(s);
    assert_int_equal(s->call, RANK_CALL_NONE);
    assert_int_equal(s->begun, 1);
    assert_int_equal(s->ended, 1);
    assert_int_equal(s->signs, 1);
}

static void spend(int64_t us)
{
    const struct timespec t = {.tv_nsec = us * 1000};

    nanosleep(&t, NULL);
}

/* Only of training, and each in its place: a sleep lasts at least as long as was requested. */
static void test_times_of_steps(void **state)
{
    struct rank_slot *s = rank_state_join(NULL);

    (void)state;
    assert_int_equal(rank_state_phase(s, RANK_STARTING), RANK_UNKNOWN);
    spend(1000);
    rank_state_begin(s, RANK_CALL_OPEN);
    spend(1000);
    rank_state_end(s);
    assert_int_equal(rank_state_phase(s, RANK_TRAINING), RANK_STARTING);
    assert_int_equal(s->step_us, 0);
    assert_int_equal(s->wait_us, 0);
    spend(2000);
    rank_state_begin(s, RANK_CALL_ALL_REDUCE);
    const uint64_t own = s->step_us;
    assert_true(own >= 2000);
    assert_int_equal(s->wait_us, 0);
    spend(3000);
    rank_state_end(s);
    const uint64_t wait = s->wait_us;
    assert_true(wait >= 3000);
    assert_int_equal(s->step_us, own);
    spend(1000);
    assert_int_equal(s->step, 0);
    rank_state_step(s);
    const uint64_t step = s->step_us;
    assert_int_equal(s->step, 1);
    assert_true(step >= own + 1000);
    spend(1000);
    assert_int_equal(rank_state_phase(s, RANK_VALIDATING), RANK_TRAINING);
    rank_state_begin(s, RANK_CALL_ALL_REDUCE);
    spend(1000);
    rank_state_end(s);
    assert_int_equal(rank_state_phase(s, RANK_TRAINING), RANK_VALIDATING);
    assert_int_equal(s->step_us, step);
    assert_int_equal(s->wait_us, wait);
}

/* The slot of the process is the one that it joined last; of another process there is none. */
static void test_the_process_is_alive(void **state)
{
    struct rank_slot *s = rank_state_join(NULL);

    (void)state;
    rank_state_alive();
    rank_state_alive();
    assert_int_equal(s->signs, 2);
}

static void test_no_slot(void **state)
{
    (void)state;
    rank_state_begin(NULL, RANK_CALL_SEND);
    rank_state_end(NULL);
    rank_state_step(NULL);
    rank_state_sign(NULL);
    assert_int_equal(rank_state_phase(NULL, RANK_SAVING), RANK_UNKNOWN);
}

static void test_names_of_calls(void **state)
{
    (void)state;
    for (uint32_t i = 1; i < RANK_CALLS; i++)
        assert_string_not_equal(rank_call_name(i), rank_call_name(RANK_CALL_NONE));
    assert_string_equal(rank_call_name(RANK_CALL_ALL_REDUCE), "all_reduce");
    assert_string_equal(rank_call_name(RANK_CALLS), "a collective");
    assert_string_equal(rank_call_name(UINT32_MAX), "a collective");
}

/* Then the ranks' environment names no file. */
static void test_a_file_that_cannot_be_mapped(void **state)
{
    char where[MEMORY_FILE_BYTES] = "";
    struct rank_slot *slots;
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){1, limit.rlim_max}), 0);
    const int fd = rank_state_make(RANKS, &slots, where);
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
    assert_int_equal(fd, -1);
    assert_null(slots);
    assert_string_equal(where, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_process_writes_its_own_slot),
        cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_nobody_changes_its_size),
        cmocka_unit_test(test_other_names_give_a_private_slot),
        cmocka_unit_test(test_other_files_give_a_private_slot),
        cmocka_unit_test(test_calls_of_all_ranks_are_counted_and_others_are_signs),
        cmocka_unit_test(test_times_of_steps),
        cmocka_unit_test(test_the_process_is_alive),
        cmocka_unit_test(test_no_slot),
        cmocka_unit_test(test_names_of_calls),
        cmocka_unit_test(test_a_file_that_cannot_be_mapped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
