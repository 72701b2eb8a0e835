/* test_resume_which.c - which checkpoint a run begins with: of the same run and configuration, of a path that was given, one that is
 * whole; and which runs are the same. */
#include "test.h"

#include "a_resume.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/state/files/ckpt_dir.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop_at_step(struct fixture *f, const char *job)
{
    int codes[RANKS];

    f->cfg.save_steps = 1;
    assert_int_equal(go(f, (struct plan){.world = 1, .job = job, .signal = SIGTERM, .calls = 9}, codes), 143);
    f->cfg.save_steps = 0;
}

static void only_the_same_run_and_configuration_is_resumed(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    stop_at_step(f, "job-a");
    assert_int_equal(go(f, (struct plan){.world = 1, .job = "job-b"}, codes), 0);
    assert_true(says(f, "is of another run"));
    f->cfg.seed++;
    assert_int_equal(go(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_true(says(f, "is of another configuration"));
    f->cfg.seed--;
    f->cfg.epochs = 2; /* where it ends may change */
    assert_int_equal(go(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_true(says(f, "resumed from "));
    f->cfg.epochs = 3;
    f->cfg.resume = "never";
    assert_int_equal(go(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_false(says(f, "resumed from "));
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go(f, (struct plan){.world = 1, .job = "job-c"}, codes), 0);
    assert_true(says(f, "resumed from "));
}

/* The newest folder of the checkpoints. */
static const char *newest(struct fixture *f, size_t least)
{
    struct ckpt_list list;

    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &f->arena, &list, &f->err), 0);
    assert_true(list.len >= least);
    return arena_printf(&f->arena, "%s/%s", f->cfg.ckpt_dir, list.entry[0].name);
}

static int steps_of(struct fixture *f, const char *run, int64_t *steps, int max)
{
    cleanup_arena struct arena a = {0};
    struct ckpt_list list;
    struct manifest m;
    int n = 0;

    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &a, &list, &f->err), 0);
    for (size_t i = 0; i < list.len; i++) {
        assert_int_equal(
            ckpt_manifest(arena_printf(&a, "%s/%s", f->cfg.ckpt_dir, list.entry[i].name), &m, &f->err), 0);
        if (strncmp(m.run_id, run, strlen(run)) == 0 && n < max)
            steps[n++] = m.step;
    }
    return n;
}

#define BY_HAND .world = 1, .launch = ""

/* Started by hand, stopped, started again the same way: that is another run, and says how to go on with the first. */
static void a_run_by_hand_goes_on_only_when_told(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    const char *hint = arena_printf(&f->arena, ": --resume %s goes on from it", f->cfg.ckpt_dir);
    int64_t steps[32];
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go(f, (struct plan){BY_HAND, .signal = SIGINT, .calls = 9}, codes),
                     EXIT_CODE_INTERRUPTED);
    assert_true(says(f, hint));
    assert_false(says(f, "started afresh"));
    assert_int_equal(steps_of(f, "single-", steps, 32), 1);
    int64_t first = steps[0];

    /* Its first checkpoint is of that very step, another one of the last that is due. */
    assert_in_range(first, 2, 10);
    f->cfg.save_steps = first;
    f->cfg.keep = 2;
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "started afresh: "));
    assert_true(says(f, "is of another run"));
    assert_true(says(f, hint));
    expect_weights(f, &want);
    /* Its own newest two, and the other run's only one, whose name it passed by. */
    assert_int_equal(steps_of(f, "single-", steps, 32), 3);
    assert_true(steps[0] > first && steps[1] >= first);
    assert_int_equal(steps[2], first);
    assert_int_equal(access(arena_printf(&f->arena, "%s/step-%010d", f->cfg.ckpt_dir, (int)first), F_OK), 0);
    /* One step folder: the run of that goes on, under its name, so that --keep counts it as its own. */
    f->cfg.resume = arena_printf(&f->arena, "%s/step-%010d", f->cfg.ckpt_dir, (int)first);
    unlink(f->cfg.save_path);
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    expect_weights(f, &want);
    assert_int_equal(steps_of(f, "single-", steps, 32), 4);
    assert_int_equal(access(f->cfg.resume, F_OK), -1);
}

/* Of a folder the last written checkpoint of this configuration, not the one of the highest step. */
static void a_folder_of_several_runs_is_no_riddle(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    f->cfg.save_steps = 1;
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0); /* to step 30 */
    assert_int_equal(go(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 12}, codes), 143);
    f->cfg.seed++;
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0); /* later, but of another configuration */
    f->cfg.seed--;
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    assert_false(says(f, "step 30"));
    assert_false(says(f, "another configuration"));
    expect_weights(f, &want);
    f->cfg.seed += 7; /* nobody's: what is taken then is told */
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    assert_true(says(f, " is of another configuration"));
}

/* A launcher that was given no id: its restarts go on, the next launch does not. */
static void the_restarts_of_a_nameless_launch_go_on(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];
    int status;

    f->cfg.save_steps = 1;
    assert_int_equal(go(f, (struct plan){.world = 1, .launch = "none", .signal = SIGTERM, .calls = 9}, codes),
                     143);
    pid_t pid = fork();
    if (!pid) { /* another launcher */
        int code = go(f, (struct plan){.world = 1, .launch = "none", .signal = SIGTERM, .calls = 9}, codes);
        _exit(code == 143 && says(f, "started afresh: ") && !says(f, "resumed from ") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(go(f, (struct plan){.world = 1, .launch = "none", .restarts = "1"}, codes), 0);
    assert_true(says(f, "resumed from "));
}

/* --resume PATH in the command of a job: its first attempt begins there, a later one goes on from its own. */
static void a_path_is_where_a_job_begins(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 6}, codes), 143);
    struct plan job[] = {
        {.world = 1, .job = "j"},
        {.world = 1, .launch = "l", .restarts = "0", .errors = "/a/l_1/attempt_0/0/error.json"},
        {.world = 1, .launch = "none", .restarts = "0", .errors = "/a/none_2/attempt_0/0/error.json"},
        {.world = 1, .launch = "m", .restarts = "0", .errors = "/a/m_3/attempt_0/0/error.json"},
    };
    f->cfg.resume = newest(f, 1);
    f->cfg.save_steps = 1;
    for (size_t i = 0; i < ARRAY_LEN(job); i++) {
        job[i].signal = SIGTERM;
        job[i].calls = 12;
        assert_int_equal(go(f, job[i], codes), 143);
        job[i].signal = 0;
        /* The last: ranks that met anew because a node came or went, which is no restart. */
        job[i].restarts = i + 1 < ARRAY_LEN(job) ? "1" : "0";
        assert_int_equal(go(f, job[i], codes), 0);
        assert_false(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
    }
    /* Who starts it anew by hand means what is said. */
    struct plan anew = {
        .world = 1, .launch = "l", .restarts = "0", .errors = "/a/l_4/attempt_0/0/error.json"};
    assert_int_equal(go(f, anew, codes), 0);
    assert_true(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
}

/* What a run began with need not lie there for ever: what it has learnt goes before. */
static void first_weights_are_read_once(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    const char *first = path_in(f, "first.safetensors");
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go(f, (struct plan){.world = 1}, codes), 0);
    assert_int_equal(rename(f->cfg.save_path, first), 0);
    forget(f);
    f->cfg.init_from = first;
    undisturbed(f, 2, &want);
    int code = go(f, (struct plan){.world = 2, .job = "j", .signal = SIGTERM, .calls = 9}, codes);
    assert_int_equal(code, 143);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(go(f, (struct plan){.world = 2, .job = "j"}, codes), 0);
    assert_true(says(f, "resumed from "));
    expect_weights(f, &want);
    assert_int_equal(go(f, (struct plan){.world = 2, .job = "k"}, codes), 2);
    assert_true(says(f, "--init_from: "));
}

static void a_path_is_taken_or_refused(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    f->cfg.resume = path_in(f, "nowhere");
    assert_int_equal(go(f, (struct plan){.world = 2}, codes), EXIT_CODE_USAGE);
    assert_int_equal(codes[1], EXIT_CODE_PEER_LOST);
    assert_true(says(f, "--resume: "));
    f->cfg.resume = "auto";
    stop_at_step(f, NULL);
    configure(f, "{type: sgd, lr: 0.01, momentum: 0.9}");
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go(f, (struct plan){.world = 1}, codes), EXIT_CODE_USAGE);
    assert_true(says(f, "no checkpoint in it that can be read"));
}

static void a_damaged_one_is_passed_over(void **state)
{
    struct fixture *f = *state;
    static const char *const files[] = {"model.safetensors", "state.pt", "manifest.json"};
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    for (int how = 0; how < 3; how++) {
        for (size_t i = 0; i < ARRAY_LEN(files); i++) {
            struct stat st;
            forget(f);
            stop_at_step(f, NULL);
            const char *path = arena_printf(&f->arena, "%s/%s", newest(f, 2), files[i]);
            assert_int_equal(stat(path, &st), 0);
            if (how == 0) {
                assert_int_equal(unlink(path), 0);
            } else if (how == 1) {
                assert_int_equal(truncate(path, st.st_size / 2), 0);
            } else {
                cleanup_close int fd = open(path, O_WRONLY);
                assert_int_equal(pwrite(fd, "\xff\xfe", 2, st.st_size / 3), 2);
            }
            assert_int_equal(go(f, (struct plan){.world = 1}, codes), 0);
            if (!says(f, "warning: damaged checkpoint skipped: ") || !says(f, "resumed from "))
                fail_msg("%s, damage %d: not told", files[i], how);
            expect_weights(f, &want);
        }
    }
}

/* Checkpoints of earlier versions hold the weights a second time, as model.pt. */
static void a_file_that_nobody_reads_is_no_damage(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20), manifest = BUF_INIT(1 << 16);
    int codes[RANKS];
    struct err err;

    undisturbed(f, 1, &want);
    forget(f);
    stop_at_step(f, NULL);
    const char *path = arena_printf(&f->arena, "%s/manifest.json", newest(f, 2));
    assert_int_equal(fs_read(path, &manifest, &err), 0);
    const char *files = strstr(buf_str(&manifest), "\"files\"");
    const char *first = files ? strchr(files, '[') : NULL;
    assert_non_null(first);
    const char *older = arena_printf(&f->arena, "%.*s{\"name\":\"model.pt\",\"bytes\":3,\"crc32\":7},%s",
                                     (int)(first + 1 - buf_str(&manifest)), buf_str(&manifest), first + 1);
    assert_int_equal(fs_write_atomic(path, older, strlen(older), &err), 0);
    assert_int_equal(go(f, (struct plan){.world = 1}, codes), 0);
    assert_true(says(f, "resumed from ") && !says(f, "damaged"));
    expect_weights(f, &want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_same_run_and_configuration_is_resumed),
        TEST(a_run_by_hand_goes_on_only_when_told),
        TEST(a_folder_of_several_runs_is_no_riddle),
        TEST(the_restarts_of_a_nameless_launch_go_on),
        TEST(a_path_is_where_a_job_begins),
        TEST(first_weights_are_read_once),
        TEST(a_path_is_taken_or_refused),
        TEST(a_damaged_one_is_passed_over),
        TEST(a_file_that_nobody_reads_is_no_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
