/* test_saves.c - checkpoints written beside the training of whole runs: whatever happens while one is written, the run ends with
 * the weights of one that was left alone, and no rank waits for a disk. */
#include "test.h"

#include "../../patience.h"
#include "../launched.h"
#include "a_resume.h"
#include "common/contract.h"
#include "injected.h"
#include "trainer/state/snapshot_copy.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EVERY = 5, STEPS = 30, HOLD_AT = 12, TICK_MS = 2, POLLS_MAX = 300000, CALLS_MAX = 200 };

static const char WARNING[] = "warning: no checkpoint written: --ckpt_dir: ";

static const char UNSURE[] = "warning: checkpoint of step 30 may not survive a power cut: --ckpt_dir: ";

static void tick(void)
{
    const struct timespec t = {.tv_nsec = TICK_MS * 1000000};

    nanosleep(&t, NULL);
}

static int times_said(struct fixture *f, const char *text)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    int n = 0;

    read_file(path_in(f, "out.0"), &out);
    for (const char *at = buf_str(&out); (at = strstr(at, text)); at += strlen(text))
        n++;
    return n;
}

/* The step of the newest whole checkpoint; 0: there is none. */
static int64_t newest(struct fixture *f)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct manifest m;
    struct err err;
    char path[PATH_MAX];

    if (ckpt_list(own_dir(f), &a, &list, &err))
        return 0;
    for (size_t i = 0; i < list.len; i++)
        if (!ckpt_path(path, own_dir(f), list.entry[i].name, &err) && !ckpt_manifest(path, &m, &err))
            return list.entry[i].step;
    return 0;
}

/* Behind a run that was killed: the next one continues from the newest whole checkpoint, and ends as if nothing had been. */
static void goes_on(struct fixture *f, const struct buf *want)
{
    int codes[RANKS];
    const int64_t step = newest(f);

    injected = (struct injected){0};
    assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), 0);
    if (step)
        assert_true(says(f, arena_printf(&f->arena, ", step %lld\n", (long long)step)));
    assert_int_equal(says(f, "resumed from "), step > 0);
    assert_false(says(f, "damaged"));
    expect_weights(f, want);
    forget(f);
}

/* The process dies before each call with which the first two checkpoints are written, which is behind the call before. */
static void killed_at_each_call(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];
    int killed = 0, first = 0;

    undisturbed(f, 1, &want);
    f->cfg.save_steps = EVERY;
    for (int at = 0, code = -1; code; at++) {
        injected = (struct injected){.what = INJECT_DEATH, .at = at};
        code = go_by(f, (struct plan){.world = 1}, codes);
        if (!code) { /* it wrote with fewer calls */
            expect_weights(f, &want);
            break;
        }
        assert_int_equal(code, 128 + SIGKILL);
        killed++;
        first += !newest(f);
        goes_on(f, &want);
    }
    print_message("%d kills, %d of them before the first checkpoint was whole\n", killed, first);
    assert_true(first > 0 && killed > first);
}

/* Each of these calls fails once: that checkpoint is lost and reported, and nothing else. */
static void an_error_of_each_call(void **state)
{
    const int errors[] = {ENOSPC, EIO, EROFS};
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];
    int told = 0, unsure = 0;

    undisturbed(f, 1, &want);
    f->cfg.save_steps = STEPS;
    f->cfg.save_seconds = 0;
    bool *struck = mmap(NULL, sizeof(*struck), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(struck != MAP_FAILED);
    *struck = true;
    for (int at = 0; *struck; at++) {
        assert_true(at < CALLS_MAX);
        *struck = false;
        injected =
            (struct injected){.what = INJECT_ERROR, .at = at, .error = errors[at % 3], .struck = struck};
        assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), 0);
        expect_weights(f, &want);
        const bool lost = newest(f) == 0;
        assert_true(lost ? says(f, WARNING) : newest(f) == STEPS && !says(f, WARNING));
        told += says(f, WARNING);
        unsure += says(f, UNSURE);
        assert_false(says(f, UNSURE) && (lost || says(f, WARNING)));
        injected = (struct injected){0};
        forget(f);
    }
    munmap(struck, sizeof(*struck));
    assert_true(told > 1);
    assert_int_equal(unsure, 1);
}

/* Rank 0 trains on while the writer is on its way to the first fsync, but not to the end: that may come before. */
static atomic_int writing;

static void until_it_is_written(int count)
{
    while (launched.rank == 0 && count >= HOLD_AT && !writing)
        tick();
}

/* The first checkpoint is not written before training has gone on behind the next that is due. */
static int polls_later;

static void until_steps_later(int count)
{
    const int from = injected_polls();

    writing = 1;
    while (count == 0 && injected_polls() < from + polls_later)
        tick();
}

static void one_that_is_due_meanwhile_is_put_off(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    for (int world = 1; world <= 2; world++) {
        undisturbed(f, world, &want);
        f->cfg.log_format = LOG_FORMAT_JSON;
        f->cfg.save_steps = world == 1 ? EVERY : 3;
        polls_later = world == 1 ? 8 : 4;
        injected = (struct injected){.fsync = until_steps_later, .poll = until_it_is_written};
        assert_int_equal(go_by(f, (struct plan){.world = world, .rank_0_saves = true}, codes), 0);
        injected = (struct injected){0};
        expect_weights(f, &want);
        assert_false(
            says(f, world == 1 ? "\"checkpoint\",\"global_step\":10}" : "\"checkpoint\",\"global_step\":6}"));
        assert_true(times_said(f, "\"event\":\"checkpoint\"") >=
                    2); /* that one and, at the end, the last that was due */
        assert_int_equal(newest(f), world == 1 ? 30 : 15);
        f->cfg.log_format = LOG_FORMAT_TEXT;
        forget(f);
    }
}

/* Once for each process: the writer itself requests the end of its run, and continues when the run has noticed. */
static struct fixture *stopping;

static void until_the_run_has_stopped(int count)
{
    if (count)
        return;
    writing = 1;
    kill(getpid(), SIGTERM);
    while (!says(stopping, "stopped by SIGTERM"))
        tick();
}

static void a_stop_finds_one_being_written(void **state)
{
    struct fixture *f = stopping = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    for (int world = 1; world <= 2; world++) {
        undisturbed(f, world, &want);
        f->cfg.save_steps = EVERY;
        injected = (struct injected){.fsync = until_the_run_has_stopped, .poll = until_it_is_written};
        assert_int_equal(go_by(f, (struct plan){.world = world}, codes), EXIT_CODE_TERMINATED);
        injected = (struct injected){0};
        assert_int_equal(codes[world - 1], EXIT_CODE_TERMINATED);
        assert_true(newest(f) > EVERY);
        assert_true(says(f, arena_printf(&f->arena, "checkpoint of step %lld saved", (long long)newest(f))));
        f->cfg.save_steps = 0;
        assert_int_equal(go_by(f, (struct plan){.world = world}, codes), 0);
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
        forget(f);
    }
}

/* SIGKILL when the last checkpoint is begun: the one that was being written when the run was stopped is whole. */
static int first_of_the_last;

static void kill_in_the_last(int count)
{
    until_the_run_has_stopped(count);
    if (count == first_of_the_last)
        raise(SIGKILL);
}

static void a_kill_behind_a_stop_loses_the_last_alone(void **state)
{
    struct fixture *f = stopping = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    f->cfg.save_steps = EVERY;
    injected = (struct injected){.fsync = kill_in_the_last, .poll = until_it_is_written};
    first_of_the_last = 6; /* of a new folder's parent, two files, manifest, the folder, its parent */
    assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), 128 + SIGKILL);
    injected = (struct injected){0};
    assert_int_equal(newest(f), EVERY);
    f->cfg.save_steps = 0;
    goes_on(f, &want);
}

static int64_t timeout_ms;

static void longer_than_timeout(void)
{
    const int64_t ms = timeout_ms * 5 / 4;
    const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    nanosleep(&t, NULL);
}

/* A disk that takes longer than --timeout, for the last checkpoint. */
static void a_slow_disk(int count)
{
    until_the_run_has_stopped(count);
    if (count == 6)
        longer_than_timeout();
}

static void nobodys_deadline_runs_meanwhile(void **state)
{
    struct fixture *f = stopping = *state;
    int codes[RANKS];

    f->cfg.save_steps = EVERY;
    for (timeout_ms = 2000;; timeout_ms = patience_grow(timeout_ms)) {
        f->cfg.timeout_s = (double)timeout_ms / 1000;
        injected = (struct injected){.fsync = a_slow_disk, .poll = until_it_is_written};
        (void)go_by(f, (struct plan){.world = 2}, codes);
        injected = (struct injected){0};
        if (codes[0] == EXIT_CODE_TERMINATED && codes[1] == EXIT_CODE_TERMINATED)
            break;
        for (int r = 0; r < 2;
             r++) /* a deadline passed, or the other's: on a busy machine it may, before the disk is slow */
            assert_true(codes[r] == EXIT_CODE_RETRYABLE || codes[r] == EXIT_CODE_PEER_LOST ||
                        codes[r] == EXIT_CODE_TERMINATED);
        forget(f);
    }
    assert_true(newest(f) > EVERY);
}

/* One rank is killed while another writes: the writer reports why it ends, and then whether the checkpoint was written. */
static void until_the_error_is_said(int count)
{
    if (count)
        return;
    writing = 1;
    for (int i = 0; i < POLLS_MAX && !says(stopping, "error: "); i++)
        tick();
}

static void kill_of_rank_1(int count)
{
    until_it_is_written(count);
    if (launched.rank == 1 && count >= HOLD_AT)
        raise(SIGKILL);
}

static void an_error_waits_for_no_disk(void **state)
{
    struct fixture *f = stopping = *state;
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    int codes[RANKS];

    f->cfg.log_format = LOG_FORMAT_JSON;
    f->cfg.save_steps = EVERY;
    injected = (struct injected){.fsync = until_the_error_is_said, .poll = kill_of_rank_1};
    assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), EXIT_CODE_PEER_LOST);
    injected = (struct injected){0};
    read_file(path_in(f, "out.0"), &out);
    const char *error = strstr(buf_str(&out), "error: ");
    assert_non_null(error);
    assert_non_null(strstr(error, "\"event\":\"checkpoint\""));
    assert_int_equal(newest(f), EVERY);
}

static size_t copy_bytes(struct fixture *f)
{
    cleanup_model struct model *m = model_make(&f->cfg.model, 1, &f->err);
    cleanup_optim struct optim o = {0};
    struct cursor c = {0};

    assert_non_null(m);
    assert_int_equal(optim_make(&o, &f->cfg.optimizer, m->row, m->rows, &f->err), 0);
    return snapshot_copy_bytes(&(struct snapshot){.model = m, .optim = &o, .cursor = &c});
}

/* No memory for the copy: all ranks wait for each checkpoint. Rank 0's options decide. */
static void without_memory_all_wait(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 2, &want);
    f->cfg.log_format = LOG_FORMAT_JSON;
    f->cfg.save_steps = EVERY;
    injected = (struct injected){.refused = copy_bytes(f)};
    assert_int_equal(go_by(f, (struct plan){.world = 2, .rank_0_saves = true}, codes), 0);
    assert_int_equal(codes[1], 0);
    assert_int_equal(times_said(f, "the training waits for each checkpoint: no memory for a copy"), 1);
    assert_int_equal(times_said(f, "\"event\":\"checkpoint\""), 3);
    assert_int_equal(newest(f), 15);
    expect_weights(f, &want);
}

/* ---- disks ---- */

/* In a mount namespace of this process: a disk of so many bytes in place of the checkpoints' folder. */
static void mount_small(struct fixture *f, const char *options)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        print_message("may not mount: not root\n");
        skip();
    }
    assert_int_equal(mkdir(f->cfg.ckpt_dir, 0777), 0);
    assert_int_equal(mount("none", f->cfg.ckpt_dir, "tmpfs", 0, options), 0);
}

/* The reason is reported once, not for every checkpoint, and nothing half is left. */
static void a_full_disk_is_told_once(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 2, &want);
    mount_small(f, "size=12k");
    f->cfg.save_steps = 2;
    assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), 0);
    assert_int_equal(times_said(f, WARNING), 1);
    assert_true(says(f, "No space left on device"));
    expect_weights(f, &want);
    assert_int_equal(newest(f), 0);
    assert_int_equal(mount("none", f->cfg.ckpt_dir, "tmpfs", MS_REMOUNT, "size=10m"), 0);
    assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), 0);
    assert_false(says(f, WARNING));
    assert_in_range(newest(f), 14, 15); /* 15: 14 was put off */
    assert_int_equal(umount2(f->cfg.ckpt_dir, MNT_DETACH), 0);
}

static int begin_uninjected(void **state)
{
    injected = (struct injected){0};
    return make_resume(state);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_uninjected, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_at_each_call),
        TEST(an_error_of_each_call),
        TEST(one_that_is_due_meanwhile_is_put_off),
        TEST(a_stop_finds_one_being_written),
        TEST(a_kill_behind_a_stop_loses_the_last_alone),
        TEST(nobodys_deadline_runs_meanwhile),
        TEST(an_error_waits_for_no_disk),
        TEST(without_memory_all_wait),
        TEST(a_full_disk_is_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
