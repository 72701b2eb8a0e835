/* config.c - find a preset or model file, and compare the configurations of two runs. */
#include "trainer/cli/config.h"

#include "common/buf.h"
#include "common/fsutil.h"
#include "common/hash.h"
#include "common/nearest.h"
#include "common/yaml.h"
#include "trainer/model/layer.h"
#include "trainer/model/optim.h"
#include "trainer/presets/presets.h"

#include <stdio.h>
#include <string.h>

const char *const config_precisions[] = {"f32", "tf32", "bf16", "auto", NULL};

static bool is_path(const char *word)
{
    return strchr(word, '/') || sv_ends(sv_from(word), ".yaml") || sv_ends(sv_from(word), ".yml");
}

static int load_file(const char *path, struct arena *a, struct config *ret, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(YAML_TREE_BYTES_MAX);

    if (fs_read(path, &text, err))
        return -1;
    return config_decode(arena_strdup(a, path), buf_str(&text), text.len, a, ret, err);
}

static int no_such_preset(const char *name, struct err *err)
{
    struct nearest near = nearest_to(sv_from(name));
    char known[160] = "", hint[NEAREST_HINT_BYTES];

    for (size_t i = 0; presets[i].name; i++) {
        size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s%s", i ? ", " : "", presets[i].name);
        nearest_offer(&near, presets[i].name);
    }
    return err_set(err, ERR_INVALID,
                   "\"%.40s\": no such preset%s (there are: %s; or give the path of a .yaml file)", name,
                   nearest_hint(&near, "", hint), known);
}

static int load_preset(const char *name, struct arena *a, struct config *ret, struct err *err)
{
    for (size_t i = 0; presets[i].name; i++)
        if (strcmp(presets[i].name, name) == 0)
            return config_decode(arena_printf(a, "preset %s", name), presets[i].text, presets[i].len, a, ret,
                                 err);
    return no_such_preset(name, err);
}

int config_load(const char *name_or_path, struct arena *a, struct config *ret, struct err *err)
{
    if ((is_path(name_or_path) ? load_file : load_preset)(name_or_path, a, ret, err))
        return -1;
    ret->called = arena_strdup(a, name_or_path);
    return 0;
}

/* Whether `replicas` can share total_batch_tokens; batch_size 0 may become any. */
static int check_batch(const struct config *cfg, int replicas, struct err *err)
{
    const int64_t steps = cfg->model.input.rows, batch = cfg->batch_size ? cfg->batch_size : 1;
    const int64_t micro = steps * batch * replicas; /* tokens that go through all ranks at a time */
    const int64_t most = cfg->batch_size ? MICRO_BATCHES_MAX : INT64_MAX;

    if (!cfg->total_batch_tokens)
        return 0;
    if (!cfg->model.input.sequence)
        return err_set(err, ERR_INVALID, "--total_batch_tokens: this model has no tokens");
    if (cfg->micro_batches != 1)
        return err_set(err, ERR_INVALID,
                       "--total_batch_tokens: with --micro_batches %lld, expected one of the two",
                       (long long)cfg->micro_batches);
    if (cfg->total_batch_tokens % micro || cfg->total_batch_tokens / micro > most)
        return err_set(
            err, ERR_INVALID,
            "--total_batch_tokens %lld: expected 1..%d times %lld (%lld tokens x batch size %lld x %d "
            "ranks)",
            (long long)cfg->total_batch_tokens, MICRO_BATCHES_MAX, (long long)micro, (long long)steps,
            (long long)batch, replicas);
    if (cfg->total_batch_tokens / (steps * replicas) > BATCH_SIZE_MAX)
        return err_set(err, ERR_INVALID,
                       "--total_batch_tokens %lld: %lld sequences per rank, expected at most %d",
                       (long long)cfg->total_batch_tokens,
                       (long long)(cfg->total_batch_tokens / (steps * replicas)), BATCH_SIZE_MAX);
    return 0;
}

int config_batch(struct config *cfg, int replicas, struct err *err)
{
    if (check_batch(cfg, replicas, err))
        return -1;
    if (!cfg->total_batch_tokens)
        return 0;
    cfg->micro_batches = cfg->total_batch_tokens / (cfg->model.input.rows * cfg->batch_size * replicas);
    cfg->batch_size *= cfg->micro_batches;
    return 0;
}

int config_world(const struct config *cfg, int most, struct err *why)
{
    struct pipeline_position at;
    struct err err;
    int world = most;

    for (; world > 0; world--) {
        if (!pipeline_position_of(&cfg->model, 0, world, &at, &err) && !check_batch(cfg, at.replicas, &err))
            return world;
        if (world == most)
            *why = err;
    }
    return 0;
}

/* A row of one of the tables of kinds, and its options (common/spec_option.h). */
static uint64_t mix_kind(uint64_t h, const char *type, const int64_t *option, const double *number)
{
    h = hash_fnv1a(h, type, strlen(type) + 1);
    h = hash_fnv1a(h, option, SPEC_OPTIONS_MAX * sizeof(*option));
    return hash_fnv1a(h, number, SPEC_OPTIONS_MAX * sizeof(*number));
}

static uint64_t mix_model(uint64_t h, const struct model_spec *m)
{
    const int32_t input[] = {m->input.rows, m->input.cols, m->input.channels, m->layers};

    h = hash_fnv1a(h, input, sizeof(input));
    h = hash_fnv1a(h, m->stage_first, (size_t)m->stages * sizeof(*m->stage_first));
    for (int i = 0; i < m->layers; i++) {
        const struct layer_spec *l = &m->layer[i];
        h = mix_kind(h, l->ops->type, l->option, l->number);
        h = hash_fnv1a(h, l->name, strlen(l->name) + 1);
    }
    return h;
}

/* What is done with the data; not where they lie, which may differ between hosts. */
static uint64_t mix_data(uint64_t h, const struct data_spec *d)
{
    const int64_t integers[] = {d->values, d->split.train_items, d->split.val_items, d->stats, d->dataset};
    const double numbers[] = {d->split.val_fraction, d->scale};

    h = mix_kind(h, d->format->name, d->option, d->number);
    h = hash_fnv1a(h, integers, sizeof(integers));
    h = hash_fnv1a(h, numbers, sizeof(numbers));
    h = hash_fnv1a(h, d->mean, sizeof(d->mean));
    return hash_fnv1a(h, d->std, sizeof(d->std));
}

uint32_t config_fingerprint(const struct config *cfg)
{
    const struct optimizer_spec *o = &cfg->optimizer;
    const struct schedule_spec *s = &cfg->schedule;
    const double numbers[] = {o->lr,    o->weight_decay, o->clip,        cfg->loss.label_smoothing,
                              s->gamma, s->min_lr,       s->warmup_from, cfg->bucket_mb};
    const int64_t integers[] = {
        o->lr_times_world,
        o->decay_matrices_only,
        cfg->loss.type,
        s->type,
        s->per_step,
        s->every,
        s->milestones,
        s->total,
        s->warmup,
        cfg->epochs,
        cfg->max_steps,
        cfg->batch_size,
        cfg->seed,
        cfg->sampler_seed,
        cfg->eval_only,
        cfg->micro_batches,
        cfg->model.stages,
        s->warmup_last_full,
        cfg->init_from != NULL,
        cfg->total_batch_tokens,
        cfg->val_every,
        cfg->val_steps,
        cfg->precision,
    };
    uint64_t h = mix_model(HASH_FNV1A, &cfg->model);

    h = mix_kind(h, o->ops->type, o->option, o->number);
    h = mix_data(h, &cfg->data);
    h = hash_fnv1a(h, numbers, sizeof(numbers));
    h = hash_fnv1a(h, s->milestone, sizeof(s->milestone));
    h = hash_fnv1a(h, integers, sizeof(integers));
    return (uint32_t)(h ^ h >> 32); /* JSON's numbers do not hold 64 bits */
}

/* The same bits, from less memory. */
static void forget_recompute(struct model_spec *m)
{
    for (int i = 0; i < m->layers; i++)
        for (int k = 0; m->layer[i].ops->options[k].key; k++)
            if (strcmp(m->layer[i].ops->options[k].key, "recompute") == 0)
                m->layer[i].option[k] = 0;
}

uint32_t config_resumable(const struct config *cfg)
{
    struct config c = *cfg;
    bool rate_depends_on_end = c.schedule.type == SCHEDULE_COSINE && !c.schedule.total;

    c.max_steps = 0;
    c.val_every = 0; /* decides no weight */
    c.val_steps = 0;
    c.eval_only = false;
    c.bucket_mb = 0; /* another may change the order of adding, as other GPUs may */
    forget_recompute(&c.model);
    if (!rate_depends_on_end)
        c.epochs = 0;
    return config_fingerprint(&c);
}
