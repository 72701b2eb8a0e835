/* a_run.c - create a run for a test, execute it, and read its output. */
#include "a_run.h"

#include "test.h"

#include "common/fsutil.h"
#include "scratch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 8, cols: 8, channels: 1}\n"
                            "  layers:\n"
                            "    - {type: conv2d, name: conv, out: 4, kernel: 3}\n"
                            "    - relu\n"
                            "    - flatten\n"
                            "    - {type: linear, name: out, out: 10}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.01}\n"
                            "schedule: {type: step, gamma: 0.5}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5, train_items: 48, val_items: 16}\n"
                            "defaults: {epochs: 2, batch_size: 12, log_interval: 2}\n";

int make_of(void **state, const char *model)
{
    struct fixture *f = *state ? *state : calloc(1, sizeof(*f));

    assert_non_null(f);
    if (!f->dir[0]) {
        snprintf(f->dir, sizeof(f->dir), "%s/a_run_XXXXXX", scratch_home());
        assert_non_null(mkdtemp(f->dir));
    }
    if (config_decode("a.yaml", model, strlen(model), &f->arena, &f->cfg, &f->err))
        fail_msg("%s", f->err.msg);
    f->cfg.data_dir = f->dir;
    f->cfg.timeout_s = 600;
    f->cfg.ckpt_dir = path_in(f, "checkpoints");
    f->cfg.resume = "never";
    f->stop.fd = -1;
    *state = f;
    return 0;
}

int make(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    small_data_make_in(scratch_home(), f->dir);
    *state = f;
    return make_of(state, MODEL);
}

int unmake(void **state)
{
    struct fixture *f = *state;

    a_run_mono_ms = NULL;
    a_run_get = NULL;
    small_data_remove(f->dir);
    arena_release(&f->arena);
    free(f->text);
    free(f);
    return 0;
}

static char *alone(const char *name)
{
    (void)name;
    return NULL;
}

int raise_next;
int64_t (*a_run_mono_ms)(void *ctx);
char *(*a_run_get)(const char *name);

static int64_t raising_mono_ms(void *ctx)
{
    int signal = raise_next;

    (void)ctx;
    raise_next = 0;
    if (signal)
        raise(signal);
    return clock_mono_ms();
}

/* Of a rank: where a person would look. */
static void failed(const struct run_env *env, const struct run_result *result, const struct err *err)
{
    (void)result;
    fprintf(env->out, "error: %s\n", err->msg);
    fflush(env->out);
}

static int run_of(struct fixture *f, char *(*get)(const char *name), FILE *out)
{
    struct run_env env = {.get = get,
                          .clock = clock_system(),
                          .out = out,
                          .stop = &f->stop,
                          .failed = get == alone ? NULL : failed};

    f->err = (struct err){0};
    env.clock.mono_ms = a_run_mono_ms ? a_run_mono_ms : raising_mono_ms;
    env.started_ms = clock_mono_ms();
    return run(&f->cfg, &env, &f->result, &f->err);
}

int go(struct fixture *f)
{
    free(f->text);
    f->text = NULL;
    cleanup_fclose FILE *out = open_memstream(&f->text, &f->len);
    int rc = run_of(f, alone, out);
    stop_close(&f->stop);
    return rc;
}

struct ranks_run {
    struct fixture *f;
    void (*tweak)(struct config *cfg, int rank);
};

static int rank_main(void *ctx, int r)
{
    const struct ranks_run *it = ctx;
    struct fixture *f = it->f;
    cleanup_fclose FILE *out = fopen(path_in(f, arena_printf(&f->arena, "out.%d", r)), "w");

    if (it->tweak)
        it->tweak(&f->cfg, r);
    (void)run_of(f, a_run_get ? a_run_get : launched_get, out);
    return f->result.exit_code;
}

void go_ranks(struct fixture *f, int world, void (*tweak)(struct config *cfg, int rank), int *codes)
{
    launched_run(world, rank_main, &(struct ranks_run){f, tweak}, codes);
}

void go_all(struct fixture *f, int world, int code)
{
    int codes[LAUNCHED_MAX];

    go_ranks(f, world, NULL, codes);
    for (int r = 0; r < world; r++)
        if (codes[r] != code)
            fail_msg("rank %d of %d: exit %d, expected %d: %s", r, world, codes[r], code, output(f, r));
}

const char *output(struct fixture *f, int rank)
{
    cleanup_buf struct buf text = BUF_INIT(1 << 20);

    assert_int_equal(fs_read(path_in(f, arena_printf(&f->arena, "out.%d", rank)), &text, &f->err), 0);
    return arena_strdup(&f->arena, buf_str(&text));
}

void put_file(struct fixture *f, const char *name, const void *bytes, size_t len)
{
    assert_int_equal(fs_write_atomic(path_in(f, name), bytes, len, &f->err), 0);
}

char *path_in(struct fixture *f, const char *name)
{
    return arena_printf(&f->arena, "%s/%s", f->dir, name);
}

void expect_lines(const char *text, const char *const *want)
{
    for (; *want; want++) {
        const char *line = text;
        const char *w = *want;
        while (*w) {
            if (*w == '%') {
                size_t digits = strspn(text, "0123456789.");
                if (!digits)
                    break;
                text += digits;
            } else if (*w == *text) {
                text++;
            } else {
                break;
            }
            w++;
        }
        if (*w)
            fail_msg("expected \"%s\", got \"%.80s\"", *want, line);
        if (text[-1] != '\n') {
            text = strchr(text, '\n');
            assert_non_null(text);
            text++;
        }
    }
    assert_string_equal(text, "");
}

void own_lines(struct fixture *f)
{
    f->cfg.own_lines = true;
    f->cfg.lines = (struct lines_spec){.start = "{epochs} epochs of {batch_size}",
                                       .epoch_start = "{rank}: {epoch} of {steps}",
                                       .epoch_end = "{rank} Loss: {loss}",
                                       .saved = "{epoch} at {save_path}"};
    f->cfg.test = false;
    f->cfg.epochs = 3;
    f->cfg.save_every = 2;
    f->cfg.log_interval = 0;
    f->cfg.save_path = "m.pt";
}

void read_weights(struct fixture *f, struct buf *out)
{
    buf_clear(out);
    if (fs_read(f->cfg.save_path, out, &f->err))
        fail_msg("%s", f->err.msg);
    assert_true(out->len > 0);
}

void weights_after(struct fixture *f, int64_t steps, struct buf *out)
{
    f->cfg.max_steps = steps;
    f->cfg.save_path = path_in(f, "m.safetensors");
    (void)unlink(f->cfg.save_path);
    assert_int_equal(go(f), 0);
    read_weights(f, out);
}

void weights_of(struct fixture *f, int world, struct buf *out)
{
    f->cfg.save_path = path_in(f, "m.safetensors");
    (void)unlink(f->cfg.save_path);
    go_all(f, world, 0);
    read_weights(f, out);
}

void assert_same(const struct buf *a, const struct buf *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}
