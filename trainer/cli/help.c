/* help.c - print the manual of the trainer and of model files, from the same tables that the trainer reads by. */
#include "trainer/cli/help.h"

#include "common/arena.h"
#include "common/wrap.h"
#include "trainer/model/layer.h"
#include "trainer/model/optim.h"
#include "trainer/presets/presets.h"

#include <string.h>

static void about_presets(FILE *out)
{
    fputs("PRESETS\n", out);
    for (size_t i = 0; presets[i].name; i++) {
        cleanup_arena struct arena a = {0};
        struct config cfg;
        struct err err;
        fprintf(out, "    %s\n", presets[i].name);
        if (!config_decode(presets[i].name, presets[i].text, presets[i].len, &a, &cfg, &err))
            wrap_text(out, 8, cfg.about);
    }
}

static void about_layer_option(FILE *out, const struct spec_option *o)
{
    fprintf(out, "          %s: ", o->key);
    if (o->type == SPEC_FLAG) {
        fputs("true or false", out);
    } else if (o->type == SPEC_CHOICE) {
        for (int i = 0; o->choices[i]; i++)
            fprintf(out, "%s%s", i ? ", " : "", o->choices[i]);
    } else {
        fprintf(out, "%.10g to %.10g", o->min, o->max);
    }
    if (o->required)
        fputs("; required\n", out);
    else if (o->type == SPEC_FLAG)
        fprintf(out, "; default %s\n", o->fallback != 0 ? "true" : "false");
    else if (o->type == SPEC_CHOICE)
        fprintf(out, "; default %s\n", o->choices[(int)o->fallback]);
    else
        fprintf(out, "; default %.10g\n", o->fallback);
}

static void about_layers(FILE *out)
{
    fputs("\nLAYERS OF A MODEL FILE\n", out);
    for (int i = 0; layer_kinds[i]; i++) {
        const struct layer_ops *ops = layer_kinds[i];
        fprintf(out, "    {type: %s%s", ops->type, ops->named ? ", name" : "");
        for (const struct spec_option *o = ops->options; o->key; o++)
            if (o->required)
                fprintf(out, ", %s", o->key);
        fputs("}\n", out);
        wrap_text(out, 8, ops->about);
        for (const struct spec_option *o = ops->options; o->key; o++)
            about_layer_option(out, o);
    }
}

static void about_stages(FILE *out)
{
    fputs("\nSTAGES OF A MODEL FILE\n"
          "    model: {input, layers, stages: [a, b, c]}\n",
          out);
    wrap_text(out, 8,
              "Pipeline parallel: each stage begins with the layer of that name and is held by one rank. "
              "There are as many ranks as stages, or 1, which holds the whole model. --micro_batches lets "
              "the stages work at the same time. Weights, losses and exports are those of one process with "
              "as many micro-batches. On GPUs likewise: --backend nccl sends from GPU to GPU.");
}

static void about_gpt2(FILE *out)
{
    fputs("\nGPT-2 IN A MODEL FILE\n"
          "    model: {gpt2: {vocab, block_size, size: d12 | d24 | d36 | d48}}\n"
          "    model: {gpt2: {vocab, block_size, n_layer, n_head, n_embd [, recompute]}}\n",
          out);
    wrap_text(out, 8,
              "Short for input: {tokens: block_size} and the layers embedding, gpt2_block, layernorm and "
              "lm_head, under the names of the PyTorch modules (transformer.h.0.attn.c_attn.weight). The "
              "data are tokens. --model, --n_layer and their like change the size.");
}

static void about_optimizers(FILE *out)
{
    for (int i = 0; optimizer_kinds[i]; i++) {
        fprintf(out, "%s{type: %s, lr", i ? "               " : "", optimizer_types[i]);
        for (const struct spec_option *o = optimizer_kinds[i]->options; o->key; o++)
            fprintf(out, ", %s", o->key);
        fputs("}\n", out);
    }
}

static void about_training(FILE *out)
{
    fputs("\nLOSS, OPTIMIZER AND SCHEDULE OF A MODEL FILE\n"
          "    loss: cross_entropy, or {type: cross_entropy, label_smoothing: 0.1}, or mse\n"
          "    optimizer: ",
          out);
    about_optimizers(out);
    fputs("        and for each lr_times_world, weight_decay, decay: all or matrices, and\n"
          "        clip: the most that the norm of all gradients together may be\n"
          "    schedule: {type: constant}\n"
          "              {type: step, every, gamma}\n"
          "              {type: multi_step, milestones: [a, b], gamma}\n"
          "              {type: cosine, total, min_lr}\n"
          "        and for each per: epoch or step (what is counted), warmup, warmup_from,\n"
          "        warmup_full: after or last\n",
          out);
    wrap_text(
        out, 8,
        "All mean what they mean in torch.optim and torch.optim.lr_scheduler. During warmup the rate rises "
        "linearly from its part warmup_from (a third), and the schedule begins behind it, with the whole "
        "rate; warmup_full: last is GPT-2's rule: the last time of the warmup has the whole rate, and the "
        "first of W has 1/W of it (warmup_from is 0 then). A cosine without total ends with the run; behind "
        "its end the rate stays at min_lr. decay: matrices leaves parameters of one dimension alone.");
}

static void about_data(FILE *out)
{
    fputs("\nDATA OF A MODEL FILE\n", out);
    for (int i = 0; data_formats[i]; i++) {
        const struct data_format *f = data_formats[i];
        for (size_t k = 0; k < ARRAY_LEN(f->about) && f->about[k].keys; k++) {
            fprintf(out, "    %s\n", f->about[k].keys);
            wrap_text(out, 8, f->about[k].text);
        }
    }
    fputs("    for all: [scale, mean, std, train_items, val_items, val_fraction]\n", out);
    wrap_text(out, 8,
              "An input becomes (x / scale - mean) / std; scale is 255 for bytes and 1 for other numbers "
              "unless given; mean and std are one number or a list of one per channel. val_items or "
              "val_fraction of the training data validate, split as random_split does under the seed. "
              "Targets are labels, or values where the loss is mse.");
}

/* What else a preset can say about its command line and its lines. */
static void about_lines(FILE *out)
{
    fputs("\nCOMMAND LINE AND LINES OF A MODEL FILE\n", out);
    wrap_text(
        out, 4,
        "arguments: a list of options whose values may stand without their names. defaults: values of "
        "options, among them nprocs: a number, or gpus; precision; batch_size: a number, or auto (with "
        "total_batch_tokens). test: false leaves out the evaluation at the end. print: {start, epoch_start, "
        "epoch_end, epoch_all, saved}: lines that stand for the trainer's own, with {rank}, {world}, "
        "{epoch}, {epochs}, {batch_size}, {steps}, {save_every}, {save_path} and {loss} in them.");
}

const struct option_example help_program_examples[] = {
    {"trainer mnist-cnn --data data --epochs 1",
     "One pass over MNIST, which is downloaded into the folder data if it is not there."},
    {"trainer mnist-cnn --nprocs 4 --log_dir runs --save_path model.pt",
     "Four ranks on this machine; runs is for TensorBoard, model.pt for torch.load."},
    {"torchrun --nproc-per-node=gpu trainer gpt2 --model d24 --data fineweb --precision bf16",
     "A GPT-2 of 350 million parameters on all GPUs of this machine."},
    {"trainer mnist-cnn --show > mine.yaml", "A model file to change: `trainer mine.yaml` trains it."},
    {0},
};

void help_program(FILE *out)
{
    fputs("NAME\n"
          "    trainer - data-parallel training of networks that are described by data\n\n"
          "SYNOPSIS\n"
          "    trainer NAME [options]\n"
          "    trainer FILE.yaml [options]\n"
          "    torchrun --nproc-per-node=4 trainer NAME [options]\n"
          "    trainer NAME --show > FILE.yaml\n"
          "    trainer --version\n\n"
          "DESCRIPTION\n",
          out);
    wrap_text(out, 4,
              "Trains the preset NAME, or the model of FILE.yaml, which is written like a preset. Started by "
              "torchrun (or anything that sets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE) it is one "
              "rank of many: each rank takes its own part of the data, and the gradient is the mean over "
              "all. Started alone it is one process. The same seed gives PyTorch's initial weights and "
              "split, and the order of samples of its DistributedSampler.");
    fputs("\n    trainer NAME --help prints the options and defaults of a preset.\n\n", out);
    about_presets(out);
    about_layers(out);
    about_stages(out);
    about_gpt2(out);
    about_training(out);
    about_data(out);
    about_lines(out);
    options_print_examples(out, help_program_examples);
}
