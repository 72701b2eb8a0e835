/* test_resume.c - runs that are killed, stopped and moved to other numbers of ranks end with the weights of a run that
 * was left alone, bit by bit. */
#include "test.h"

#include "common/buf.h"
#include "common/contract.h"
#include "common/fsutil.h"
#include "trainer/checkpoint/ckpt_dir.h"
#include "trainer/run.h"
#include "trainer/small_data.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - {type: conv2d, name: conv, out: 4, kernel: 3}\n"
                            "    - {type: batchnorm2d, name: bn}\n"
                            "    - relu\n"
                            "    - flatten\n"
                            "    - {type: dropout, p: 0.2}\n"
                            "    - {type: linear, name: out, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: %s\n"
                            "schedule: {type: step, gamma: 0.5}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5, train_items: 47, val_items: 17}\n"
                            "defaults: {epochs: 3, batch_size: 5, log_interval: 1000}\n";

enum { RANKS = 3, KILLS = 50 };

struct fixture {
    char dir[SMALL_DATA_DIR_BYTES];
    struct arena arena;
    struct config cfg;
    struct err err;
    unsigned random;
};

static char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

static void configure(struct fixture *f, const char *optimizer)
{
    const char *text = arena_printf(&f->arena, MODEL, optimizer);

    if (config_decode("tiny.yaml", text, strlen(text), &f->arena, &f->cfg, &f->err))
        fail_msg("%s", f->err.msg);
    f->cfg.data_dir = f->dir;
    f->cfg.timeout_s = 60;
    f->cfg.ckpt_dir = path_in(f, "checkpoints");
    f->cfg.save_path = path_in(f, "m.safetensors");
}

static int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const char *seed = getenv("TK_SEED");

    small_data_make(f->dir);
    configure(f, "{type: adam, lr: 0.01}");
    f->random = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    *state = f;
    return 0;
}

static int unmake(void **state)
{
    struct fixture *f = *state;

    small_data_remove(f->dir);
    arena_release(&f->arena);
    free(f);
    return 0;
}

/* ---- ranks: each a process with an environment and a clock of its own ---- */

static struct {
    int rank, world;
    const char *job;    /* PTJ_JOB_UID */
    const char *launch; /* TORCHELASTIC_RUN_ID; NULL: one for all of this test */
    const char *restarts;
    int clock_calls; /* until the signal */
    int signal;
} me;

static char *launched(const char *name)
{
    static char text[5][24];

    snprintf(text[0], sizeof(text[0]), "%d", me.rank);
    snprintf(text[1], sizeof(text[1]), "%d", me.world);
    snprintf(text[2], sizeof(text[2]), "resume-%d", getppid());
    if (strcmp(name, CONTRACT_ENV_RANK) == 0 || strcmp(name, CONTRACT_ENV_LOCAL_RANK) == 0)
        return text[0];
    if (strcmp(name, CONTRACT_ENV_WORLD_SIZE) == 0 || strcmp(name, CONTRACT_ENV_LOCAL_WORLD_SIZE) == 0)
        return text[1];
    if (strcmp(name, CONTRACT_ENV_MASTER_ADDR) == 0)
        return strcpy(text[3], "127.0.0.1");
    if (strcmp(name, CONTRACT_ENV_MASTER_PORT) == 0)
        return strcpy(text[4], "29513");
    if (strcmp(name, CONTRACT_ENV_JOB_UID) == 0)
        return (char *)me.job;
    if (strcmp(name, CONTRACT_ENV_RESTART_COUNT) == 0)
        return (char *)me.restarts;
    return strcmp(name, CONTRACT_ENV_RUN_ID) == 0 ? me.launch ? (char *)me.launch : text[2] : NULL;
}

/* Rank 0 reads the clock around each step, each save and each validation: that counts the moments of a run. */
static int64_t counting_mono_ms(void *ctx)
{
    (void)ctx;
    if (me.clock_calls > 0 && --me.clock_calls == 0)
        raise(me.signal);
    return clock_mono_ms();
}

struct plan {
    int world;
    const char *job, *launch, *restarts;
    int signal, rank, calls; /* `signal` to `rank` at its `calls`-th reading of the clock; 0: none */
};

static void run_rank(struct fixture *f, const struct plan *p, int rank)
{
    struct run_result result;
    struct stop stop = {.fd = -1};
    FILE *out = fopen(path_in(f, arena_printf(&f->arena, "out.%d", rank)), "w");
    struct run_env env = {.get = launched, .clock = clock_system(), .out = out, .stop = &stop};

    me.rank = rank;
    me.world = p->world;
    me.job = p->job;
    me.launch = p->launch;
    me.restarts = p->restarts;
    me.signal = p->signal;
    me.clock_calls = rank == p->rank ? p->calls : 0;
    env.clock.mono_ms = counting_mono_ms;
    if (run(&f->cfg, &env, &result, &f->err))
        fprintf(out, "error: %s\n", f->err.msg);
    fclose(out);
    _exit(result.exit_code);
}

/* The exit code of rank 0, or 128 + the signal that killed it; the others' are in codes. */
static int go(struct fixture *f, struct plan p, int codes[static RANKS])
{
    pid_t pids[RANKS];

    fflush(NULL);
    for (int r = 0; r < p.world; r++) {
        pids[r] = fork();
        assert_true(pids[r] >= 0);
        if (!pids[r])
            run_rank(f, &p, r);
    }
    for (int r = 0; r < p.world; r++) {
        int status;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    return codes[0];
}

static void read_file(const char *path, struct buf *out)
{
    struct err err;

    buf_clear(out);
    if (fs_read(path, out, &err))
        fail_msg("%s", err.msg);
}

static bool says(struct fixture *f, const char *text)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    read_file(path_in(f, "out.0"), &out);
    return strstr(buf_str(&out), text) != NULL;
}

static void forget(struct fixture *f)
{
    char *command = arena_printf(&f->arena, "rm -rf %s", f->cfg.ckpt_dir);

    assert_int_equal(system(command), 0);
    unlink(f->cfg.save_path);
}

static void undisturbed(struct fixture *f, int world, struct buf *weights)
{
    int codes[RANKS];

    forget(f);
    f->cfg.resume = "never";
    if (go(f, (struct plan){.world = world}, codes)) {
        cleanup_buf struct buf out = BUF_INIT(1 << 20);
        read_file(path_in(f, "out.0"), &out);
        fail_msg("exit %d: %s", codes[0], buf_str(&out));
    }
    read_file(f->cfg.save_path, weights);
    forget(f);
    f->cfg.resume = "auto";
}

static void expect_weights(struct fixture *f, const struct buf *want)
{
    cleanup_buf struct buf got = BUF_INIT(1 << 20);

    read_file(f->cfg.save_path, &got);
    assert_int_equal(got.len, want->len);
    assert_memory_equal(got.data, want->data, want->len);
}

/* Kill at random moments, go on, kill again, until enough kills were survived; every finished run is compared. */
static void kill_and_resume(struct fixture *f, int world, int kills)
{
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];
    int finished = 0;

    undisturbed(f, world, &want);
    print_message("seed %u (TK_SEED), %d ranks\n", f->random, world);
    for (int i = 0; i < kills || !finished;) {
        int calls = 1 + rand_r(&f->random) % 40;
        f->cfg.save_steps = 1 + rand_r(&f->random) % 4;
        struct plan p = {.world = world, .signal = SIGKILL, .calls = i < kills ? calls : 0};
        int code = go(f, p, codes);
        if (code == 128 + SIGKILL) {
            i++;
            continue;
        }
        if (code)
            fail_msg("exit %d after %d kills", code, i);
        expect_weights(f, &want);
        finished++;
        forget(f);
    }
    f->cfg.save_steps = 0;
}

static void killed_runs_end_with_the_same_bits(void **state)
{
    kill_and_resume(*state, 1, KILLS);
}

static void killed_runs_of_two_ranks_too(void **state)
{
    kill_and_resume(*state, 2, 8);
}

static void other_optimisers_too(void **state)
{
    struct fixture *f = *state;

    configure(f, "{type: sgd, lr: 0.01}");
    kill_and_resume(f, 1, 5);
    configure(f, "{type: sgd, lr: 0.01, momentum: 0.9, dampening: 0.1}");
    kill_and_resume(f, 1, 5);
    configure(f, "{type: adamw, lr: 0.01, weight_decay: 0.1, decay: matrices}");
    kill_and_resume(f, 1, 5);
}

/* SIGTERM to one rank, whichever: all stop after the same step with 143, and the rest of the run is as if nothing was. */
static void a_stopped_run_saves_and_goes_on(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    int codes[RANKS];

    undisturbed(f, 2, &want);
    for (int calls = 3; calls < 30; calls += 4) {
        int signal = calls % 8 == 3 ? SIGTERM : SIGINT;
        int code = go(f, (struct plan){.world = 2, .signal = signal, .calls = calls}, codes);
        if (code) {
            assert_int_equal(code, 128 + signal);
            assert_int_equal(codes[1], 128 + signal);
            assert_true(says(f, "checkpoint of step "));
        }
        assert_int_equal(go(f, (struct plan){.world = 2}, codes), 0);
        if (code)
            assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
        forget(f);
    }
    /* A rank that is not 0: it reads its clock at the beginning and the end of epochs. */
    assert_int_equal(go(f, (struct plan){.world = 2, .signal = SIGTERM, .rank = 1, .calls = 4}, codes), 143);
    assert_int_equal(codes[1], 143);
    assert_int_equal(go(f, (struct plan){.world = 2}, codes), 0);
    expect_weights(f, &want);
}

/* The lines about validations and the test of all attempts, in their order. */
static void results(struct fixture *f, struct buf *add)
{
    cleanup_buf struct buf out = BUF_INIT(1 << 20);

    read_file(path_in(f, "out.0"), &out);
    for (const char *line = buf_str(&out); *line; line += strcspn(line, "\n") + 1)
        if (strstr(line, "\"event\":\"val\"") == strchr(line, ',') + 1 ||
            strstr(line, "\"event\":\"test\"") == strchr(line, ',') + 1)
            assert_int_equal(
                buf_append(add, strchr(line, ','), strcspn(strchr(line, ','), "\n") + 1, &f->err), 0);
}

/* In a validation or the test the next batch is not begun; the next attempt does it again, and all is as if nothing was. */
static void a_stop_in_an_evaluation_costs_nothing(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    cleanup_buf struct buf told = BUF_INIT(1 << 20);
    int codes[RANKS];
    int validations = 0;
    int tests = 0;

    f->cfg.log_format = LOG_FORMAT_JSON;
    undisturbed(f, 2, &want);
    results(f, &told);
    assert_true(told.len > 0);
    for (int calls = 3, code = -1; code; calls++) {
        cleanup_buf struct buf seen = BUF_INIT(1 << 20);
        forget(f);
        code = go(f, (struct plan){.world = 2, .signal = SIGTERM, .calls = calls}, codes);
        bool validation = says(f, "\"during\":\"validation\"");
        bool test = says(f, "\"during\":\"test\"");
        if (!validation && !test)
            continue;
        validations += validation;
        tests += test;
        assert_int_equal(code, EXIT_CODE_TERMINATED);
        assert_int_equal(codes[1], EXIT_CODE_TERMINATED);
        assert_int_equal(access(f->cfg.save_path, F_OK), -1);
        results(f, &seen);
        assert_int_equal(go(f, (struct plan){.world = 2}, codes), 0);
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
        results(f, &seen);
        assert_int_equal(seen.len, told.len);
        assert_memory_equal(seen.data, told.data, told.len);
    }
    assert_in_range(validations, 3, 12);
    assert_in_range(tests, 1, 4);
}

static void other_numbers_of_ranks_go_on(void **state)
{
    struct fixture *f = *state;
    int codes[RANKS];

    for (int from = 1; from <= RANKS; from++) {
        for (int to = 1; to <= RANKS; to++) {
            forget(f);
            f->cfg.resume = "auto";
            f->cfg.save_steps = 2;
            assert_int_equal(go(f, (struct plan){.world = from, .signal = SIGTERM, .calls = 8}, codes), 143);
            f->cfg.save_steps = 0;
            assert_int_equal(go(f, (struct plan){.world = to}, codes), 0);
            assert_true(says(f, "resumed from "));
            assert_true(says(f, "epoch 3/3 with val loss"));
        }
    }
}

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

    f->cfg.save_steps = 1;
    f->cfg.keep = 2;
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "started afresh: "));
    assert_true(says(f, "is of another run"));
    assert_true(says(f, hint));
    expect_weights(f, &want);
    /* Its own newest two, and the other run's only one, whose name it passed by. */
    assert_int_equal(steps_of(f, "single-", steps, 32), 3);
    assert_int_equal(steps[0], 30);
    assert_int_equal(steps[1], 29);
    assert_int_equal(steps[2], first);
    /* One step folder: the run of that goes on, under its name, so that --keep counts it as its own. */
    f->cfg.resume = arena_printf(&f->arena, "%s/step-%010d", f->cfg.ckpt_dir, (int)first);
    unlink(f->cfg.save_path);
    assert_int_equal(go(f, (struct plan){BY_HAND}, codes), 0);
    assert_true(says(f, "resumed from "));
    expect_weights(f, &want);
    assert_int_equal(steps_of(f, "single-", steps, 32), 4);
    assert_int_equal(steps[3], 29);
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
    assert_int_equal(go(f, (struct plan){.world = 1, .launch = "none", .signal = SIGKILL, .calls = 9}, codes),
                     137);
    pid_t pid = fork();
    if (!pid) { /* another launcher */
        int code = go(f, (struct plan){.world = 1, .launch = "none", .signal = SIGKILL, .calls = 9}, codes);
        _exit(code == 137 && says(f, "started afresh: ") && !says(f, "resumed from ") ? 0 : 1);
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
    struct plan job[] = {{.world = 1, .job = "j"}, {.world = 1, .launch = "l", .restarts = "0"}};
    f->cfg.resume = newest(f, 1);
    f->cfg.save_steps = 1;
    for (size_t i = 0; i < ARRAY_LEN(job); i++) {
        job[i].signal = SIGKILL;
        job[i].calls = 12;
        assert_int_equal(go(f, job[i], codes), 137);
        job[i].signal = 0;
        job[i].restarts = "1";
        assert_int_equal(go(f, job[i], codes), 0);
        assert_false(says(f, arena_printf(&f->arena, "resumed from %s:", f->cfg.resume)));
        assert_true(says(f, "resumed from "));
        expect_weights(f, &want);
    }
    /* Who starts it anew by hand means what is said. */
    assert_int_equal(go(f, (struct plan){.world = 1, .launch = "l", .restarts = "0"}, codes), 0);
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
    static const char *const files[] = {"model.pt", "model.safetensors", "state.pt", "manifest.json"};
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

/* No room for a checkpoint: training goes on and says so, and nothing half is left. */
static void a_full_disk_does_not_end_a_training(void **state)
{
    struct fixture *f = *state;
    cleanup_buf struct buf want = BUF_INIT(1 << 20);
    struct ckpt_list list;
    struct rlimit limit;
    int codes[RANKS];

    undisturbed(f, 1, &want);
    f->cfg.save_steps = 2;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit small = {.rlim_cur = 8000, .rlim_max = limit.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int code = go(f, (struct plan){.world = 1}, codes);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(code, 0);
    assert_true(says(f, "warning: no checkpoint written: --ckpt_dir: "));
    expect_weights(f, &want);
    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &f->arena, &list, &f->err), 0);
    assert_int_equal(list.len, 0);
    assert_int_equal(rmdir(f->cfg.ckpt_dir), 0); /* empty */
}

static void only_the_newest_stay(void **state)
{
    struct fixture *f = *state;
    struct ckpt_list list;
    int codes[RANKS];

    f->cfg.save_steps = 3;
    f->cfg.keep = 2;
    assert_int_equal(go(f, (struct plan){.world = 1}, codes), 0);
    assert_int_equal(ckpt_list(f->cfg.ckpt_dir, &f->arena, &list, &f->err), 0);
    assert_int_equal(list.len, 2);
    assert_int_equal(list.entry[0].step, 30);
    assert_int_equal(list.entry[1].step, 27);
    assert_string_equal(list.entry[1].name, "step-0000000027");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_runs_end_with_the_same_bits),
        TEST(killed_runs_of_two_ranks_too),
        TEST(other_optimisers_too),
        TEST(a_stopped_run_saves_and_goes_on),
        TEST(a_stop_in_an_evaluation_costs_nothing),
        TEST(other_numbers_of_ranks_go_on),
        TEST(only_the_same_run_and_configuration_is_resumed),
        TEST(a_run_by_hand_goes_on_only_when_told),
        TEST(a_folder_of_several_runs_is_no_riddle),
        TEST(the_restarts_of_a_nameless_launch_go_on),
        TEST(a_path_is_where_a_job_begins),
        TEST(first_weights_are_read_once),
        TEST(a_path_is_taken_or_refused),
        TEST(a_damaged_one_is_passed_over),
        TEST(a_full_disk_does_not_end_a_training),
        TEST(only_the_newest_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
