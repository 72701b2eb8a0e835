/* gpu_bench.c - gpu-bench [STEPS [NET BATCH]]: time per training step of the seed nets on a GPU, as recorded graphs.
 * gpu-bench --versions: the GPUs, and the CUDA versions of driver and runtime.
 *
 * Samples are random bytes, or tokens: what is measured does not depend on them. GPT-2 is trained in bf16, first, and for a
 * tenth of the steps; of it tokens per second are printed, too, and which share of the chip's dense bf16 they are.
 *
 * Printed per net and size of batch: the time until the first step is done (context, data, weights, kernels loaded, without
 * the process's own start), the median and the best of the rounds' times per step, and samples per second. Steps of a round
 * are queued one behind the other, as in a training that shows no loss meanwhile.
 *
 * Exit status: 0; 77 without a GPU, 1 if TK_GPU_REQUIRED is in the environment; 1 when a net fails, after the others.
 */
#include "bench_tokens.h"

#include "common/arena.h"
#include "common/sv.h"
#include "kernels/device.h"
#include "trainer/cli/config.h"
#include "trainer/gpu/find.h"
#include "trainer/run/resident/resident.h"
#include "trainer/run/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 9, STEPS = 200, TIMEOUT_MS = 60000 };

/* H100 SXM and H200: NVIDIA's data sheets, bf16 without sparsity. */
static const double PEAK_OPERATIONS = 989e12;

struct net {
    struct config cfg;
    struct collectives *comm;
    struct kctx *ctx;
    struct pipeline pipeline;
    struct optim optim;
    struct train train;
    uint8_t *x;
    int32_t *labels;
    struct tokens *tokens;
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int make_data(struct net *n, size_t items, size_t len, struct err *err)
{
    const struct config *cfg = &n->cfg;
    uint32_t x = 1;

    if (cfg->model.input.sequence) {
        n->tokens = bench_tokens((int64_t)items, cfg->model.input.rows, cfg->model.gpt2.vocab, err);
        return n->tokens ? 0 : -1;
    }

    n->x = malloc(items * len);
    n->labels = calloc(items, sizeof(*n->labels));
    if (!n->x || !n->labels)
        return err_set(err, ERR_FATAL, "no memory for %zu samples", items);
    for (size_t i = 0; i < items * len; i++) {
        x = x * 1664525u + 1013904223u;
        n->x[i] = (uint8_t)(x >> 24);
    }
    for (size_t i = 0; i < items; i++)
        n->labels[i] = (int32_t)(i % 10);
    return 0;
}

/* The net as its preset says, on `items` samples that are made up. */
static int open_net(struct net *n, const struct gpu_plugin *plugin, int64_t batch, int64_t items,
                    struct err *err)
{
    static const struct data_spec decode = {.stats = 1, .mean = {0.5}, .std = {0.5}};
    const struct shape *in = &n->cfg.model.input;
    const enum element element = in->sequence ? ELEMENT_BF16 : ELEMENT_F32;
    struct torch_rng rng;

    n->comm = collectives_open(&(struct collectives_config){.world = 1, .local_world = 1}, TIMEOUT_MS, err);
    if (!n->comm || !(n->ctx = plugin->context(0, PRECISION_F32, element, err)) ||
        make_data(n, (size_t)items, shape_len(in), err))
        return -1;
    n->cfg.model.numbers = (struct model_numbers){.on_device = true, .element = element};
    struct pipeline_options o = {
        .spec = &n->cfg.model, .comm = n->comm, .ctx = n->ctx, .batch = (int)batch, .timeout_ms = TIMEOUT_MS};
    if (pipeline_open(&n->pipeline, &o, err))
        return -1;
    torch_rng_seed(&rng, 1);
    if (pipeline_init(&n->pipeline, &rng, err) ||
        optim_make(&n->optim, &n->cfg.optimizer, n->pipeline.model->row, n->pipeline.model->rows, err))
        return -1;
    const struct dataset set = {
        .layout = {.train_items = (int32_t)items,
                   .rows = in->rows,
                   .cols = in->cols,
                   .channels = in->channels,
                   .steps = in->sequence ? in->rows : 0},
        .train = {.items = (int32_t)items, .x = n->x, .labels = n->labels, .tokens = n->tokens}};
    struct train_parts p = {.pipeline = &n->pipeline,
                            .optim = &n->optim,
                            .sampler = {.items = items, .world = 1, .shuffle = true},
                            .loss = n->cfg.loss,
                            .seed = 1};
    feed_init(&p.feed, &set, false, NULL, &decode);
    return train_make(&n->train, &p, err);
}

static void close_net(struct net *n)
{
    train_release(&n->train);
    optim_release(&n->optim);
    pipeline_release(&n->pipeline);
    kctx_free(n->ctx);
    collectives_close(n->comm);
    tokens_free(n->tokens);
    free(n->x);
    free(n->labels);
}

/* So many steps, of as many epochs as they take; returns the seconds, or -1. */
static double run_steps(struct net *n, int64_t steps, int64_t per_epoch, struct err *err)
{
    double start = now_s();
    struct train_result r;

    for (int64_t i = 0; i < steps; i++) {
        if (i % per_epoch == 0)
            train_epoch(&n->train, i / per_epoch);
        n->train.exact = i + 1 == steps;
        if (train_step(&n->train, i % per_epoch, 1e-3, &r, err))
            return -1;
    }
    return now_s() - start;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Those of a GPT-2, in a second. Operations per token in both passes are 6 N + 6 L C T: two per parameter
 * forward, four backward, and those of attention (llm.c: train_gpt2.cu, gpt2_estimate_mfu). */
static void print_tokens(const struct net *n, double tokens)
{
    const struct gpt2_spec *g = &n->cfg.model.gpt2;
    double each = 6 * (double)n->pipeline.whole_len + 6 * (double)(g->n_layer * g->n_embd * g->block_size);
    double done = tokens * each;

    printf("%-12s %.0f tokens/s, %.1f %% of %.0f TFLOPS\n", "", tokens, 100 * done / PEAK_OPERATIONS,
           PEAK_OPERATIONS / 1e12);
}

static int measure(const struct gpu_plugin *plugin, const char *preset, int64_t batch, int64_t steps,
                   struct err *err)
{
    cleanup_arena struct arena a = {0};
    struct net n = {0};
    double round[ROUNDS];
    double start = now_s();

    if (config_load(preset, &a, &n.cfg, err))
        return -1;
    if (n.cfg.model.input.sequence)
        steps = steps < 20 ? 2 : steps / 10;
    int64_t per_epoch = steps < 64 ? steps : 64;
    int failed = open_net(&n, plugin, batch, batch * per_epoch, err) || run_steps(&n, 1, per_epoch, err) < 0;
    double first = now_s() - start;
    failed = failed || run_steps(&n, 2, per_epoch, err) < 0; /* recorded now */
    for (int i = 0; i < ROUNDS && !failed; i++) {
        round[i] = run_steps(&n, steps, per_epoch, err);
        failed = round[i] < 0;
    }
    if (!failed) {
        qsort(round, ROUNDS, sizeof(*round), compare);
        double median = round[ROUNDS / 2] / (double)steps;
        printf("%-12s %6lld %10.1f ms %10.1f us %10.1f us %12.0f\n", preset, (long long)batch, first * 1e3,
               median * 1e6, round[0] / (double)steps * 1e6, (double)batch / median);
        if (n.tokens)
            print_tokens(&n, (double)(batch * n.cfg.model.input.rows) / median);
    }
    close_net(&n);
    return failed ? -1 : 0;
}

static int told(const struct gpu_plugin *plugin, const char *preset, int64_t batch, int64_t steps)
{
    struct err err;

    if (!measure(plugin, preset, batch, steps, &err))
        return 0;
    fprintf(stderr, "gpu-bench: %s, batch %lld: %s\n", preset, (long long)batch, err.msg);
    return 1;
}

static int no_gpu(const char *why)
{
    const bool required = getenv("TK_GPU_REQUIRED");

    fprintf(stderr, "gpu-bench: %s: no GPU: %s\n", required ? "TK_GPU_REQUIRED is set" : "skipped", why);
    return required ? 1 : 77;
}

static void print_versions(const struct gpu_facts *f)
{
    printf("CUDA: driver %d.%d, runtime %d.%d; %d GPU%s%s%s", f->driver / 1000, f->driver % 1000 / 10,
           f->runtime / 1000, f->runtime % 1000 / 10, f->devices, f->devices == 1 ? "" : "s",
           f->devices ? "" : ": ", f->devices ? "" : f->why_none);
    for (int i = 0; i < f->devices && i < GPU_DEVICES_MAX; i++)
        printf(", %d of capability %d.%d", i, f->capability[i] / 10, f->capability[i] % 10);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const char *const nets[] = {"fashion-mlp", "mnist-cnn", "convnet"};
    static const int64_t batches[] = {32, 512, 8192};
    static const int64_t sequences[] = {64, 32}; /* of 1024 tokens: what fits in 80 GB, PyTorch's too */
    int64_t steps = STEPS;
    int64_t only = 0;
    struct gpu_facts facts;
    struct err err;

    const bool versions = argc == 2 && strcmp(argv[1], "--versions") == 0;

    if (!versions && (argc == 3 || argc > 4 || (argc > 1 && !sv_i64(sv_from(argv[1]), 2, 1000000, &steps)) ||
                      (argc == 4 && !sv_i64(sv_from(argv[3]), 1, 65536, &only)))) {
        fprintf(stderr, "usage: gpu-bench [STEPS [NET BATCH]], 2..1000000 steps, batches of 1..65536\n"
                        "       gpu-bench --versions\n");
        return 2;
    }
    const struct gpu_plugin *plugin = gpu_plugin_load(getenv("TK_GPU_PLUGIN_DIR"), &err);
    if (!plugin || plugin->facts(&facts, &err)) {
        return no_gpu(err.msg);
    }
    if (versions) {
        print_versions(&facts);
        return 0;
    }
    if (!facts.devices) {
        return no_gpu(facts.why_none);
    }
    printf("%-12s %6s %13s %13s %13s %12s\n", "net", "batch", "first step", "step, median", "step, best",
           "samples/s");
    int failed = only ? told(plugin, argv[2], only, steps) : 0;
    for (size_t i = 0; i < ARRAY_LEN(sequences) && !only; i++)
        failed |= told(plugin, "gpt2", sequences[i], steps);
    for (size_t i = 0; i < ARRAY_LEN(nets) && !only; i++)
        for (size_t b = 0; b < ARRAY_LEN(batches); b++)
            failed |= told(plugin, nets[i], batches[b], steps);
    return failed;
}
