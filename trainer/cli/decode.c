/* decode.c - decode a preset's YAML into a struct config. */
#include "trainer/cli/config.h"

#include "trainer/cli/decode.h"
#include "trainer/cli/options.h"
#include "trainer/model/layer.h"

#include <stdio.h>
#include <string.h>

static bool is_word(const char *text)
{
    size_t len = strlen(text);

    return len && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == len;
}

/* `text` names one parameter prefix of a state_dict: letters, digits, '_', and dots between parts. */
static bool is_layer_name(const char *text)
{
    size_t len = strlen(text);

    return is_word(text) && len < LAYER_NAME_BYTES && text[0] != '.' && text[len - 1] != '.' &&
           !strchr(text, '-') && !strstr(text, "..");
}

static int decode_layer_name(const struct yaml_at *at, const struct model_spec *model,
                             struct layer_spec *layer, struct err *err)
{
    struct yaml_at member = yaml_member(at, "name");
    const char *name = "";

    if (yaml_require(at, "name", err))
        return -1;
    /* "": the layer is the whole module, and its parameters are called "weight" and "bias". */
    bool unnamed = member.node->kind == YAML_TREE_SCALAR && member.node->quoted && !member.node->text[0];
    if (!unnamed && yaml_get_str(at, "name", LAYER_NAME_BYTES - 1, &name, err))
        return -1;
    if (!unnamed && !is_layer_name(name))
        return yaml_err(&member, err, "expected letters, digits, '_' and inner dots, got \"%s\"", name);
    for (int i = 0; i < model->layers; i++)
        if (model->layer[i].ops->named && strcmp(model->layer[i].name, name) == 0)
            return yaml_err(&member, err, "\"%s\" already names layer %d", name, i);
    snprintf(layer->name, sizeof(layer->name), "%s", name);
    return 0;
}

static int decode_layer_kind(const struct yaml_at *at, const struct layer_ops **ret, struct err *err)
{
    int kind = 0;

    /* "- relu" for "- {type: relu}" */
    if (at->node->kind == YAML_TREE_SCALAR
            ? yaml_item_choice(at, layer_types, &kind, err)
            : yaml_require(at, "type", err) || yaml_get_choice(at, "type", layer_types, &kind, err))
        return -1;
    *ret = layer_kinds[kind];
    return 0;
}

static int decode_layer(const struct yaml_at *at, struct model_spec *model, struct err *err)
{
    struct layer_spec *layer = &model->layer[model->layers];
    const struct layer_ops *ops;

    if (decode_layer_kind(at, &ops, err))
        return -1;
    *layer = layer_spec_of(ops, "");
    layer->place = model->layers;
    if (at->node->kind != YAML_TREE_SCALAR &&
        decode_keys(at, (const char *const[]){"type", ops->named ? "name" : NULL, NULL}, ops->options, err))
        return -1;
    if ((ops->named && decode_layer_name(at, model, layer, err)) ||
        decode_options(at, ops->options, layer->option, layer->number, NULL, err))
        return -1;
    model->layers++;
    return 0;
}

/* {rows, cols, channels}, {features} for a vector, or {tokens} for a sequence of them. */
static int decode_input(const struct yaml_at *model, struct shape *input, struct err *err)
{
    struct yaml_at at = yaml_member(model, "input");
    int64_t rows = 1;
    int64_t cols = 1;
    int64_t channels = 0;

    if (yaml_require(model, "input", err) ||
        yaml_expect_mapping(
            &at, (const char *const[]){"rows", "cols", "channels", "features", "tokens", NULL}, err))
        return -1;
    input->sequence = yaml_member(&at, "tokens").node != NULL;
    input->flat = yaml_member(&at, "features").node != NULL;
    if (input->sequence) {
        channels = 1;
        if (yaml_expect_mapping(&at, (const char *const[]){"tokens", NULL}, err) ||
            yaml_get_i64(&at, "tokens", 1, LAYOUT_SIDE_MAX, &rows, err))
            return -1;
    } else if (input->flat) {
        if (yaml_expect_mapping(&at, (const char *const[]){"features", NULL}, err) ||
            yaml_get_i64(&at, "features", 1, 1 << 24, &channels, err))
            return -1;
    } else if (yaml_require(&at, "rows", err) || yaml_require(&at, "cols", err) ||
               yaml_require(&at, "channels", err) || yaml_get_i64(&at, "rows", 1, 4096, &rows, err) ||
               yaml_get_i64(&at, "cols", 1, 4096, &cols, err) ||
               yaml_get_i64(&at, "channels", 1, 4096, &channels, err)) {
        return -1;
    }
    input->rows = (int32_t)rows;
    input->cols = (int32_t)cols;
    input->channels = (int32_t)channels;
    return 0;
}

static bool is_named(const struct model_spec *model, int layer)
{
    return model->layer[layer].name[0] != '\0';
}

/* Each name is that of the layer with which a stage begins. Layers without a name belong to the stage before, and those
 * at the front to the first. */
static int decode_stages(const struct yaml_at *model_at, struct model_spec *model, struct err *err)
{
    struct yaml_at at = yaml_member(model_at, "stages");
    int layer = 0;

    if (!at.node)
        return 0;
    if (yaml_expect_sequence(&at, 1, MODEL_STAGES_MAX, err))
        return -1;
    for (const struct yaml_tree *c = at.node->first; c; c = c->next, layer++) {
        struct yaml_at item = yaml_item(&at, c, model->stages);
        const char *name = c->kind == YAML_TREE_SCALAR ? c->text : "a list or mapping";
        while (layer < model->layers && strcmp(model->layer[layer].name, name) != 0 &&
               (model->stages || !is_named(model, layer)))
            layer++;
        if (layer == model->layers || !is_named(model, layer) || strcmp(model->layer[layer].name, name) != 0)
            return yaml_err(&item, err, "expected the name of %s, got \"%.60s\"",
                            model->stages ? "a layer behind the last stage's first"
                                          : "the model's first named layer",
                            name);
        model->stage_first[model->stages] = model->stages ? layer : 0;
        model->stages++;
    }
    return 0;
}

/* {vocab, block_size, n_layer, n_head, n_embd [, recompute]}; of one of the known sizes, {vocab, block_size, size}. */
static int decode_gpt2(const struct yaml_at *model_at, struct gpt2_spec *ret, struct err *err)
{
    static const char *const keys[] = {"vocab",  "block_size", "size",      "n_layer",
                                       "n_head", "n_embd",     "recompute", NULL};
    struct yaml_at at = yaml_member(model_at, "gpt2");
    struct yaml_at size_at = yaml_member(&at, "size");
    struct gpt2_spec g = {0};
    const char *size = NULL;

    if (yaml_expect_mapping(&at, keys, err) || yaml_require(&at, "vocab", err) ||
        yaml_require(&at, "block_size", err) || yaml_get_str(&at, "size", 32, &size, err))
        return -1;
    if (size) {
        struct err own = {0};
        if (gpt2_size(size, &g, &own))
            return yaml_err(&size_at, err, "%s", own.msg);
    } else if (yaml_require(&at, "n_layer", err) || yaml_require(&at, "n_head", err) ||
               yaml_require(&at, "n_embd", err)) {
        return -1;
    }
    if (yaml_get_i64(&at, "vocab", 1, 1 << 24, &g.vocab, err) ||
        yaml_get_i64(&at, "block_size", 1, LAYOUT_SIDE_MAX, &g.block_size, err) ||
        yaml_get_i64(&at, "n_layer", 1, GPT2_LAYERS_MAX, &g.n_layer, err) ||
        yaml_get_i64(&at, "n_head", 1, 1 << 16, &g.n_head, err) ||
        yaml_get_i64(&at, "n_embd", 1, 1 << 20, &g.n_embd, err) ||
        yaml_get_bool(&at, "recompute", &g.recompute, err))
        return -1;
    *ret = g;
    return 0;
}

static int decode_model(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    struct model_spec *model = &cfg->model;
    struct yaml_at at = yaml_member(root, "model");
    struct yaml_at layers = yaml_member(&at, "layers");
    int i = 0;

    if (yaml_require(root, "model", err))
        return -1;
    if (yaml_member(&at, "gpt2").node) {
        if (yaml_expect_mapping(&at, (const char *const[]){"gpt2", NULL}, err) ||
            decode_gpt2(&at, &model->gpt2, err))
            return -1;
        gpt2_layers(model);
        return 0;
    }
    if (yaml_expect_mapping(&at, (const char *const[]){"input", "layers", "stages", NULL}, err) ||
        decode_input(&at, &model->input, err) || yaml_require(&at, "layers", err) ||
        yaml_expect_sequence(&layers, 1, MODEL_LAYERS_MAX, err))
        return -1;
    for (const struct yaml_tree *c = layers.node->first; c; c = c->next) {
        struct yaml_at item = yaml_item(&layers, c, i++);
        if (decode_layer(&item, model, err))
            return -1;
    }
    return decode_stages(&at, model, err);
}

/* What the preset has an option at: a number or a text as the option's own row says, or a word in its place. */
static int decode_default(const struct yaml_at *at, const char *key, struct config *cfg, struct err *err)
{
    static const struct {
        const char *key, *word;
        int64_t meant;
    } words[] = {{"batch_size", "auto", 0}, {"nprocs", "gpus", NPROCS_GPUS}};
    const struct option_row *o = option_find(option_table, sv_from(key), '\0');
    struct yaml_at member = yaml_member(at, key);
    void *field = strcmp(key, "nprocs") == 0 ? (void *)&cfg->nprocs_default : (char *)cfg + o->offset;

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(key, words[i].key) == 0 && member.node && member.node->kind == YAML_TREE_SCALAR &&
            strcmp(member.node->text, words[i].word) == 0) {
            *(int64_t *)field = words[i].meant;
            return 0;
        }
    return o->set == option_choice ? yaml_get_choice(at, key, o->words, field, err)
           : o->set == option_path ? yaml_get_str(at, key, OPTION_PATH_MAX, field, err)
                                   : yaml_get_i64(at, key, o->min, o->max, field, err);
}

static int decode_defaults(const struct yaml_at *root, struct config *cfg, struct err *err)
{
    static const char all_ranks[] = "log_interval_all_ranks"; /* the only one that is no option */
    static const char *const keys[] = {
        "epochs",       "batch_size",   "micro_batches", "total_batch_tokens", "seed",
        "sampler_seed", "log_interval", all_ranks,       "save_path",          "save_every",
        "val_every",    "val_steps",    "nprocs",        "precision",          NULL};
    struct yaml_at at = yaml_member(root, "defaults");

    if (yaml_expect_mapping(&at, keys, err))
        return -1;
    for (int i = 0; keys[i]; i++)
        if (keys[i] == all_ranks
                ? yaml_get_i64(&at, all_ranks, 1, 1000000000, &cfg->log_interval_all_ranks, err)
                : decode_default(&at, keys[i], cfg, err))
            return -1;
    return !cfg->batch_size && !cfg->total_batch_tokens
               ? yaml_err(&at, err, "batch_size: auto: expected total_batch_tokens beside it")
               : 0;
}

int config_decode(const char *file, const char *text, size_t len, struct arena *a, struct config *ret,
                  struct err *err)
{
    static const char *const keys[] = {"name", "about",    "model", "loss",      "optimizer", "schedule",
                                       "data", "defaults", "print", "arguments", "test",      NULL};
    struct config cfg = {.called = "NAME",
                         .about = "",
                         .epochs = 1,
                         .batch_size = 32,
                         .micro_batches = 1,
                         .seed = 1,
                         .log_interval_all_ranks = 100,
                         .data_dir = "./data",
                         .timeout_s = 600,
                         .bucket_mb = 25,
                         .ckpt_dir = "./checkpoints",
                         .resume = "auto",
                         .save_seconds = 60,
                         .keep = 3};
    struct yaml_tree *tree;

    if (yaml_tree_parse(file, text, len, a, &tree, err))
        return -1;
    struct yaml_at root = yaml_root(file, tree);
    if (yaml_expect_mapping(&root, keys, err) || yaml_require(&root, "name", err) ||
        yaml_get_str(&root, "name", 64, &cfg.name, err) ||
        yaml_get_str(&root, "about", 2000, &cfg.about, err) || decode_model(&root, &cfg, err) ||
        decode_loss(&root, &cfg.loss, err) || decode_optimizer(&root, &cfg.optimizer, err) ||
        decode_schedule(&root, &cfg.schedule, err) || decode_data(&root, &cfg, err) ||
        decode_defaults(&root, &cfg, err) || decode_output(&root, &cfg, err))
        return -1;
    if (!is_word(cfg.name))
        return yaml_err(&root, err, "name: expected letters, digits, '_', '.' and '-', got \"%.60s\"",
                        cfg.name);
    cfg.source = arena_strndup(a, text, len);
    *ret = cfg;
    return 0;
}
