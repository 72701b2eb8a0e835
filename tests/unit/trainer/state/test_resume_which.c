/* test_resume_which.c - which checkpoint a run begins with: of the same run and configuration, of a path that was given, one that is
 * whole; and which runs are the same. */
#include "test.h"

#include "a_resume.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/state/files/ckpt_dir.h"
#include "trainer/state/run_id.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop_at_step(struct fixture *f, const char *job)
{
    int codes[RANKS];

    f->cfg.save_steps = 1;
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = job, .signal = SIGTERM, .calls = 9}, codes),
                     143);
    f->cfg.save_steps = 0;
}

static void only_the_same_run_and_configuration_is_resumed(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    stop_at_step(f, "job-a");
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "job-b"}, codes), 0);
    assert_true(says(f, "is of another run"));
    f->cfg.seed++;
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_true(says(f, "is of another configuration"));
    f->cfg.seed--;
    f->cfg.epochs = 2; /* where it ends may change */
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_true(says(f, "resumed from "));
    f->cfg.epochs = 3;
    f->cfg.resume = "never";
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "job-a"}, codes), 0);
    assert_false(says(f, "resumed from "));
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "job-c"}, codes), 0);
    assert_true(says(f, "resumed from "));
}

struct found {
    const char *path;
    int64_t step;
};

static int newest_first(const void *x, const void *y)
{
    const struct found *a = x, *b = y;

    return (a->step < b->step) - (a->step > b->step);
}

/* The checkpoints of the runs whose ids begin so, newest first. */
static int all_of(struct fixture *f, const char *run, struct found *found, int max)
{
    struct ckpt_list runs, list;
    int n = 0;

    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &f->arena, &runs, &f->err), 0);
    for (size_t r = runs.len; r < runs.len + runs.runs; r++) {
        const char *dir = arena_printf(&f->arena, "%s/%s", f->cfg.ckpt_dir, runs.entry[r].name);
        if (strncmp(runs.entry[r].name, run, strlen(run)) != 0)
            continue;
        assert_int_equal(ckpt_list(dir, &f->arena, &list, &f->err), 0);
        for (size_t i = 0; i < list.len && n < max; i++)
            found[n++] =
                (struct found){arena_printf(&f->arena, "%s/%s", dir, list.entry[i].name), list.entry[i].step};
    }
    qsort(found, (size_t)n, sizeof(*found), newest_first);
    return n;
}

static const char *newest(struct fixture *f, int least)
{
    struct found found[64];

    assert_true(all_of(f, "", found, 64) >= least);
    return found[0].path;
}

#define BY_HAND .world = 1, .launch = ""

/* Started by hand, stopped, started again the same way: that is another run, which prints how to continue the first. */
static void a_run_by_hand_goes_on_only_when_told(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    const char *hint = arena_printf(&f->arena, ": --resume %s resumes from it", f->cfg.ckpt_dir);
    struct found found[32];
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go_by(f, (struct plan){BY_HAND, .signal = SIGINT, .calls = 9}, codes),
                     EXIT_CODE_INTERRUPTED);
    assert_true(says(f, hint));
    assert_false(says(f, "started afresh"));
    assert_int_equal(all_of(f, "single-", found, 32), 1);
    const struct found first = found[0];

    /* Its first checkpoint is of that very step, another one of the last that is due. */
    assert_in_range(first.step, 2, 10);
    f->cfg.save_steps = first.step;
    f->cfg.keep = 2;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "started afresh: "));
    assert_true(says(f, "is of another run"));
    assert_true(says(f, hint));
    expect_weights(f, &want);
    /* Its own newest two, and the other run's only one. */
    assert_int_equal(all_of(f, "single-", found, 32), 3);
    assert_true(found[0].step > first.step && found[1].step >= first.step);
    assert_int_equal(found[2].step, first.step);
    assert_int_equal(access(first.path, F_OK), 0);
    /* One step folder: the run of that continues, under its name, so that --keep counts it as its own. */
    f->cfg.resume = first.path;
    unlink(f->cfg.save_path);
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    expect_weights(f, &want);
    assert_int_equal(all_of(f, "single-", found, 32), 4);
    assert_int_equal(access(first.path, F_OK), -1);
}

/* Of a folder the last written checkpoint of this configuration, not the one of the highest step. */
static void a_folder_of_several_runs_is_no_riddle(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    f->cfg.save_steps = 1;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0); /* to step 30 */
    assert_int_equal(go_by(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 12}, codes), 143);
    f->cfg.seed++;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0); /* later, but of another configuration */
    f->cfg.seed--;
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    assert_false(says(f, "step 30"));
    assert_false(says(f, "another configuration"));
    expect_weights(f, &want);
    f->cfg.seed += 7; /* of no run: what is taken then is reported */
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    assert_true(says(f, " is of another configuration"));
}

/* A job whose script trains twice, with two configurations: neither counts, replaces or removes the other's checkpoints, and its next
 * attempt continues with each of them. */
static void two_configurations_of_one_run_keep_their_own(void **state)
{
    struct fixture *f = *state;
    struct plan stage = {.world = 1, .job = "j"};
    struct found found[32];
    int codes[RANKS];

    f->cfg.save_steps = 1;
    f->cfg.keep = 1;
    for (int attempt = 0; attempt < 2; attempt++)
        for (int b = 0; b < 2; b++) {
            f->cfg.seed += b;
            assert_int_equal(go_by(f, stage, codes), 0);
            assert_int_equal(says(f, "resumed from "), attempt > 0);
            assert_int_equal(says(f, " is of another configuration"), attempt == 0 && b);
            f->cfg.seed -= b;
        }
    assert_int_equal(all_of(f, "j", found, 32), 2);
    assert_true(found[0].step == 30 && found[1].step == 30);
}

/* By hand, from one checkpoint, with two configurations: three runs. */
static void runs_by_hand_with_other_configurations_are_others(void **state)
{
    struct fixture *f = *state;
    struct found found[32];
    int codes[RANKS];

    assert_int_equal(go_by(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 9}, codes), 143);
    f->cfg.resume = newest(f, 1);
    f->cfg.save_steps = 1;
    f->cfg.keep = 1;
    for (int i = 0; i < 2; i++) {
        f->cfg.seed++;
        assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
        assert_true(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
        assert_true(says(f, " is of another configuration"));
    }
    assert_int_equal(all_of(f, "single-", found, 32), 3);
    assert_int_equal(access(f->cfg.resume, F_OK), 0);
}

/* A run by hand from the checkpoint of one that still writes: each has a folder of its own. */
static void a_run_that_still_writes_is_not_joined(void **state)
{
    struct fixture *f = *state;
    struct found found[32];
    int codes[RANKS];

    assert_int_equal(go_by(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 9}, codes), 143);
    f->cfg.resume = newest(f, 1);
    const size_t folder = strlen(f->cfg.resume) - strlen("/step-0000000000");
    cleanup_close int fd = open(arena_strndup(&f->arena, f->cfg.resume, folder), O_RDONLY | O_DIRECTORY);
    assert_int_equal(flock(fd, LOCK_EX), 0); /* as that one does */
    f->cfg.save_steps = 1;
    f->cfg.keep = 1;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
    assert_int_equal(all_of(f, "single-", found, 32), 2);
    assert_int_equal(access(f->cfg.resume, F_OK), 0);
    assert_int_not_equal(strncmp(found[0].path, f->cfg.resume, folder), 0);

    /* In another --ckpt_dir it holds the folder before it has written anything: two that begin there differ. */
    struct ckpt_list runs;
    f->cfg.ckpt_dir = path_in(f, "elsewhere");
    f->cfg.save_steps = 0;
    f->cfg.save_seconds = 0;
    assert_int_equal(go_by(f, (struct plan){BY_HAND}, codes), 0);
    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &f->arena, &runs, &f->err), 0);
    assert_int_equal(runs.runs, 1);
    forget(f);
}

/* A launcher that was given no id: its restarts continue, the next launch does not. */
static void the_restarts_of_a_nameless_launch_go_on(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];
    int status;

    f->cfg.save_steps = 1;
    assert_int_equal(
        go_by(f, (struct plan){.world = 1, .launch = "none", .signal = SIGTERM, .calls = 9}, codes), 143);
    pid_t pid = fork();
    if (!pid) { /* another launcher */
        int code =
            go_by(f, (struct plan){.world = 1, .launch = "none", .signal = SIGTERM, .calls = 9}, codes);
        _exit(code == 143 && says(f, "started afresh: ") && !says(f, "resumed from ") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(go_by(f, (struct plan){.world = 1, .launch = "none", .restarts = "1"}, codes), 0);
    assert_true(says(f, "resumed from "));
}

/* --resume PATH in the command of a job: its first attempt begins there, a later one continues from its own. */
static void a_path_is_where_a_job_begins(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go_by(f, (struct plan){BY_HAND, .signal = SIGTERM, .calls = 6}, codes), 143);
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
        assert_int_equal(go_by(f, job[i], codes), 143);
        job[i].signal = 0;
        /* In the last row the ranks met again because a node came or went, which is no restart. */
        job[i].restarts = i + 1 < ARRAY_LEN(job) ? "1" : "0";
        assert_int_equal(go_by(f, job[i], codes), 0);
        assert_false(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
    }
    /* A run that a user starts again by hand follows its options. */
    struct plan anew = {
        .world = 1, .launch = "l", .restarts = "0", .errors = "/a/l_4/attempt_0/0/error.json"};
    anew.signal = SIGTERM;
    anew.calls = 12;
    assert_int_equal(go_by(f, anew, codes), 143);
    assert_true(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
    /* What it had trained before, up to step 30, is not what a restart continues. */
    anew.signal = 0;
    anew.restarts = "1";
    assert_int_equal(go_by(f, anew, codes), 0);
    assert_true(says(f, "resumed from "));
    assert_false(says(f, "step 30"));
    expect_weights(f, &want);
}

/* What a run began with need not lie there for ever: what it has learnt goes before. */
static void first_weights_are_read_once(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    const char *first = path_in(f, "first.safetensors");
    int codes[RANKS];

    undisturbed(f, 1, &want);
    assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), 0);
    assert_int_equal(rename(f->cfg.save_path, first), 0);
    forget(f);
    f->cfg.init_from = first;
    undisturbed(f, 2, &want);
    int code = go_by(f, (struct plan){.world = 2, .job = "j", .signal = SIGTERM, .calls = 9}, codes);
    assert_int_equal(code, 143);
    assert_int_equal(unlink(first), 0);
    assert_int_equal(go_by(f, (struct plan){.world = 2, .job = "j"}, codes), 0);
    assert_true(says(f, "resumed from "));
    expect_weights(f, &want);
    assert_int_equal(go_by(f, (struct plan){.world = 2, .job = "k"}, codes), 2);
    assert_true(says(f, "--init_from: "));
}

#define PT TK_SOURCE_DIR "/tests/golden/torch/state.pt"

/* Of a .pt file with what to do. */
static void a_path_is_taken_or_refused(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *resume, *init_from, *says;
    } cases[] = {
        {path_in(f, "nowhere"), NULL, "--resume: "},
        {PT, NULL,
         "--resume: " PT ": a .pt file, which is not read. This makes a .safetensors of it: python3 -c "},
        {"auto", PT, "--init_from: " PT ": a .pt file, which is not read"},
    };
    int codes[RANKS];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        f->cfg.resume = cases[i].resume;
        f->cfg.init_from = cases[i].init_from;
        assert_int_equal(go_by(f, (struct plan){.world = 2}, codes), EXIT_CODE_USAGE);
        assert_int_equal(codes[1], EXIT_CODE_PEER_LOST);
        assert_true(says(f, cases[i].says));
    }
    f->cfg.init_from = NULL;
    stop_at_step(f, NULL);
    configure(f, "{type: sgd, lr: 0.01, momentum: 0.9}");
    f->cfg.resume = f->cfg.ckpt_dir;
    assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), EXIT_CODE_USAGE);
    assert_true(says(f, "no checkpoint in it that can be read"));
}

static void a_damaged_one_is_passed_over(void **state)
{
    struct fixture *f = *state;
    static const char *const files[] = {"model.safetensors", "optim.safetensors", "manifest.json"};
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
            assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), 0);
            if (!says(f, "warning: damaged checkpoint skipped: ") || !says(f, "resumed from "))
                fail_msg("%s, damage %d: not told", files[i], how);
            expect_weights(f, &want);
        }
    }
}

static const char *folder_of(struct fixture *f, const char *run)
{
    char *dir = arena_alloc(&f->arena, PATH_MAX);

    assert_int_equal(run_id_dir(f->cfg.ckpt_dir, run, config_resumable(&f->cfg), dir, &f->err), 0);
    return dir;
}

/* A checkpoint with only run id and format. */
static const char *leave(struct fixture *f, const char *dir, const char *name, int format, const char *run)
{
    const char *path = arena_printf(&f->arena, "%s/%s", dir, name);
    const char *text = arena_printf(&f->arena, "{\"format\": %d, \"run_id\": \"%s\"}", format, run);

    assert_int_equal(fs_mkdirs(path, &f->err), 0);
    assert_int_equal(
        fs_write_atomic(arena_printf(&f->arena, "%s/manifest.json", path), text, strlen(text), &f->err), 0);
    return path;
}

/* What another version has learnt in this run is not thrown away: neither where versions before the folders of runs left it, nor in the
 * run's own, beside newer ones or not; nor, before it begins again, where another version counts its configuration as another one. */
static void another_format_of_this_run_is_an_error(void **state)
{
    struct fixture *f = *state;
    const struct {
        const char *dir, *name;
        int format;
    } where[] = {
        {f->cfg.ckpt_dir, "step-0000000005", 1},
        {f->cfg.ckpt_dir, "step-0000000005-0a1b2c3d", 1},
        {folder_of(f, "j"), "step-0000000005", 3},
        {path_in(f, "checkpoints/j-00000000"), "step-0000000005", 3},
    };
    int codes[RANKS];

    for (size_t newer = 0; newer < 2; newer++)
        for (size_t i = 0; i < ARRAY_LEN(where) - newer; i++) {
            forget(f);
            if (newer)
                stop_at_step(f, "j");
            const char *path = leave(f, where[i].dir, where[i].name, where[i].format, "j");
            assert_int_equal(go_by(f, (struct plan){.world = 2, .job = "j"}, codes), EXIT_CODE_USAGE);
            assert_int_equal(codes[1], EXIT_CODE_PEER_LOST);
            assert_true(says(
                f,
                arena_printf(&f->arena,
                             "--ckpt_dir: a checkpoint of this run has %s/manifest.json: format %d, "
                             "which this version does not read (2): continue with the version that wrote it",
                             path, where[i].format)));
            /* Another run's checkpoint says nothing about this one. */
            assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "k"}, codes), 0);
            f->cfg.resume = path;
            assert_int_equal(go_by(f, (struct plan){.world = 1, .launch = ""}, codes), EXIT_CODE_USAGE);
            assert_true(says(f, "--resume: "));
            f->cfg.resume = "auto";
        }
}

/* If a folder has nothing else, its format is reported. */
static void a_folder_of_older_ones_is_refused_by_their_format(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    f->cfg.resume = path_in(f, "older");
    leave(f, f->cfg.resume, "step-0000000005-0a1b2c3d", 1, "j");
    assert_int_equal(go_by(f, (struct plan){.world = 1}, codes), EXIT_CODE_USAGE);
    assert_true(says(f, "/step-0000000005-0a1b2c3d/manifest.json: format 1, which this version does not"));
    /* Also to a later attempt, which has found something damaged before. */
    assert_int_equal(fs_mkdirs(path_in(f, "checkpoints/step-0000000007"), &f->err), 0);
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "k"}, codes), EXIT_CODE_USAGE);
    assert_true(says(f, "/step-0000000005-0a1b2c3d/manifest.json: format 1, which this version does not"));
}

/* Beside another run's good one: what cannot be read may be this run's, and a run that begins again reports it. */
static void nothing_unread_is_passed_over_in_silence(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    for (int how = 0; how < 4; how++) {
        forget(f);
        stop_at_step(f, "other");
        const char *step = arena_printf(&f->arena, "%s/step-0000000005", f->cfg.ckpt_dir);
        const char *manifest = arena_printf(&f->arena, "%s/manifest.json", step);
        if (how < 3)
            assert_int_equal(mkdir(step, 0777), 0);
        if (how == 1) /* cannot be opened, by root neither */
            assert_int_equal(symlink("manifest.json", manifest), 0);
        if (how == 2)
            assert_int_equal(fs_write_atomic(manifest, "{\"form", 6, &f->err), 0);
        if (how == 3) {
            step = folder_of(f, "j");
            assert_int_equal(symlink(step, step), 0);
        }
        assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "j"}, codes), 0);
        if (!says(f, how < 3 ? "warning: damaged checkpoint skipped: " : "warning: --ckpt_dir: ") ||
            !says(f, step) || !says(f, "started afresh: "))
            fail_msg("damage %d: not told", how);
        if (how)
            continue;
        /* Beside the run's own checkpoint it changes nothing. */
        stop_at_step(f, "j");
        assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "j"}, codes), 0);
        assert_true(says(f, "resumed from ") && !says(f, "warning: "));
    }
}

/* How readdir and read fail for what lies below a folder "checkpoints" and has `failing` in its path; 0: they do not. */
static int list_error, read_error;
static const char *failing = "";

struct dirent *__wrap_readdir(DIR *dir);
struct dirent *__real_readdir(DIR *dir);
ssize_t __wrap_read(int fd, void *p, size_t len);
ssize_t __real_read(int fd, void *p, size_t len);

static bool fails(int fd, int code)
{
    char link[64], path[PATH_MAX] = "";

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (!code || readlink(link, path, sizeof(path) - 1) < 0 || !strstr(path, "/checkpoints") ||
        !strstr(path, failing))
        return false;
    errno = code;
    return true;
}

struct dirent *__wrap_readdir(DIR *dir)
{
    return fails(dirfd(dir), list_error) ? NULL : __real_readdir(dir);
}

ssize_t __wrap_read(int fd, void *p, size_t len)
{
    return fails(fd, read_error) ? -1 : __real_read(fd, p, len);
}

/* A file server that does not answer now may do so at the next attempt: the run neither begins again nor earlier. */
static void a_file_server_that_does_not_answer_is_tried_again(void **state)
{
    struct fixture *f = *state;
    const struct {
        int list, read;
    } cases[] = {{ESTALE, 0}, {0, ESTALE}, {0, ETIMEDOUT}, {ENOTCONN, 0}, {EIO, 0}};
    int codes[RANKS];

    stop_at_step(f, "j");
    for (size_t i = 0; i < 2 * ARRAY_LEN(cases); i++) {
        list_error = cases[i / 2].list;
        read_error = cases[i / 2].read;
        f->cfg.resume = i % 2 ? f->cfg.ckpt_dir : "auto";
        const int code = go_by(f, (struct plan){.world = 2, .job = i % 2 ? NULL : "j"}, codes);
        const int error = list_error ? list_error : read_error;
        list_error = read_error = 0;
        if (code != EXIT_CODE_RETRYABLE || codes[1] != EXIT_CODE_PEER_LOST || !says(f, strerror(error)))
            fail_msg("case %zu: exit codes %d, %d: %s", i, code, codes[1], output(f, 0));
    }
    f->cfg.resume = "auto";
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "j"}, codes), 0);
    assert_true(says(f, "resumed from "));
}

/* Another run's folder, which somebody removes meanwhile: a run that would not begin there does not need it. */
static void another_runs_folder_may_go(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    stop_at_step(f, "other");
    for (int path = 0; path < 2; path++) {
        failing = "/other-";
        list_error = ESTALE;
        f->cfg.resume = path ? f->cfg.ckpt_dir : "auto";
        const int code = go_by(f, (struct plan){.world = 1, .job = path ? NULL : "j"}, codes);
        list_error = 0;
        failing = "";
        if (code != (path ? EXIT_CODE_RETRYABLE : 0))
            fail_msg("--resume %s: exit code %d: %s", f->cfg.resume, code, output(f, 0));
    }
}

/* Each new run looks through the folder that many have used before it: its memory grows with their number, not with the square. */
static void a_thousand_other_runs_need_little_memory(void **state)
{
    enum { OTHERS = 1000, EACH = 3, MOST_KB = 512 << 10 };
    struct fixture *f = *state;
    struct rusage usage;
    int codes[RANKS];

    for (int i = 0; i < OTHERS * EACH; i++) {
        const char *dir = arena_printf(&f->arena, "%s/other-%d-00000000/step-%010d", f->cfg.ckpt_dir,
                                       i / EACH, 1 + i % EACH);
        assert_int_equal(fs_mkdirs(dir, &f->err), 0);
        FILE *out = fopen(arena_printf(&f->arena, "%s/manifest.json", dir), "w");
        assert_non_null(out);
        fprintf(out,
                "{\"format\": 2, \"step\": %d, \"config\": 0, \"saved_ms\": 1, \"launch\": 0, \"run_id\": "
                "\"other-%d\", \"files\": [{\"name\": \"a\", \"bytes\": 0, \"crc32\": 0}]}",
                1 + i % EACH, i / EACH);
        assert_int_equal(fclose(out), 0);
    }
    assert_int_equal(go_by(f, (struct plan){.world = 1, .job = "j"}, codes), 0);
    assert_true(says(f, "started afresh: "));
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    if (usage.ru_maxrss > MOST_KB)
        fail_msg("%ld KB", usage.ru_maxrss);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(only_the_same_run_and_configuration_is_resumed),
        TEST(a_run_by_hand_goes_on_only_when_told),
        TEST(a_folder_of_several_runs_is_no_riddle),
        TEST(two_configurations_of_one_run_keep_their_own),
        TEST(runs_by_hand_with_other_configurations_are_others),
        TEST(a_run_that_still_writes_is_not_joined),
        TEST(the_restarts_of_a_nameless_launch_go_on),
        TEST(a_path_is_where_a_job_begins),
        TEST(first_weights_are_read_once),
        TEST(a_path_is_taken_or_refused),
        TEST(a_damaged_one_is_passed_over),
        TEST(another_format_of_this_run_is_an_error),
        TEST(a_folder_of_older_ones_is_refused_by_their_format),
        TEST(nothing_unread_is_passed_over_in_silence),
        TEST(a_file_server_that_does_not_answer_is_tried_again),
        TEST(another_runs_folder_may_go),
        TEST(a_thousand_other_runs_need_little_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
