/* fuzz_snapshot.c - a checkpoint whose files are complete, but have any content: a run continues from it with numbers of its
 * own shapes, or refuses it and stays as it was. Byte 0, bit 0: the others are model.safetensors; else
 * optim.safetensors. */
#include "fuzz_file.h"

#include "trainer/cli/config.h"
#include "trainer/state/snapshot.h"

#include <string.h>

static const char MODEL[] = "name: tiny\n"
                            "model:\n"
                            "  input: {rows: 1, cols: 1, channels: 2}\n"
                            "  layers:\n"
                            "    - flatten\n"
                            "    - {type: linear, name: out, out: 2}\n"
                            "loss: cross_entropy\n"
                            "optimizer: {type: adam, lr: 0.01}\n"
                            "data: {format: idx, mean: 0.5, std: 0.5, train_items: 4, val_items: 2}\n"
                            "defaults: {epochs: 1, batch_size: 1}\n";

enum { FLOATS_MAX = 16 };

struct input {
    const uint8_t *p;
    size_t len;
};

static struct config cfg;
static struct arena arena;

static int put(void *ctx, const struct pt_sink *sink, struct err *err)
{
    const struct input *in = ctx;

    return sink->write(sink->ctx, in->p, in->len, err);
}

/* A checkpoint of the run, in which `name` is the input. -1: there can be none. */
static int write_with(const struct snapshot *s, const char *dir, const char *name, struct input *in)
{
    cleanup_ckpt_writer struct ckpt_writer w = {0};
    const struct manifest m = {.step = 3, .config = 1, .run_id = "ours"};
    struct err err;

    MUST(ckpt_begin(&w, dir, &m, NULL, &err) == 0 && snapshot_write(s, &w, &err) == 0);
    for (int i = 0; i < w.manifest.files; i++) {
        if (strcmp(w.manifest.file[i].name, name) != 0)
            continue;
        MUST(unlinkat(w.in, name, 0) == 0);
        w.manifest.file[i] = w.manifest.file[--w.manifest.files];
        if (ckpt_file(&w, name, put, in, &err) < 0)
            return -1;
    }
    return ckpt_commit(&w, 1, &err);
}

static void read_back(const struct snapshot *s, const char *dir)
{
    float before[FLOATS_MAX];
    struct manifest m;
    struct err err = {0};
    char path[PATH_MAX];
    const size_t bytes = s->model->len * sizeof(float);

    MUST(bytes <= sizeof(before));
    memcpy(before, s->model->values, bytes);
    MUST(ckpt_path(path, dir, "step-0000000003", &err) == 0 && ckpt_manifest(path, &m, &err) == 0);
    if (snapshot_read(s, path, &m, &err) < 0) {
        MUST(err.kind == ERR_INVALID && err.msg[0]);
        MUST(memcmp(before, s->model->values, bytes) == 0 && s->cursor->epoch == 1);
    } else {
        MUST(s->cursor->epoch >= 1 && s->cursor->consumed >= 0 && s->cursor->step >= 0);
    }
}

static void clean(const char *dir)
{
    static const char *const names[] = {"model.safetensors", "optim.safetensors", "manifest.json"};
    char path[PATH_MAX];

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        snprintf(path, sizeof(path), "%s/step-0000000003/%s", dir, names[i]);
        (void)unlink(path);
    }
    snprintf(path, sizeof(path), "%s/step-0000000003", dir);
    (void)rmdir(path);
    MUST(rmdir(dir) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char dir[FUZZ_FOLDER_BYTES];
    struct input in = {data + 1, size - 1};
    struct cursor cursor = {.epoch = 1, .items = 4, .step_samples = 1};
    struct err err;

    if (!cfg.name)
        MUST(config_decode("tiny.yaml", MODEL, strlen(MODEL), &arena, &cfg, &err) == 0);
    if (size < 1 || size > 65536)
        return 0;
    const bool weights = data[0] & 1;
    cleanup_model struct model *model = model_make(&cfg.model, 1, &err);
    MUST(model);
    cleanup_optim struct optim optim = {0};
    MUST(optim_make(&optim, &cfg.optimizer, model->row, model->rows, &err) == 0);
    double sums[3] = {0};
    const struct snapshot s = {.model = model, .optim = &optim, .cursor = &cursor, .sums = sums, .n_sums = 3};
    fuzz_folder_make(dir);
    if (write_with(&s, dir, weights ? "model.safetensors" : "optim.safetensors", &in) == 0)
        read_back(&s, dir);
    clean(dir);
    return 0;
}
