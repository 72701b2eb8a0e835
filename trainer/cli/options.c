/* options.c - the table of all options of a preset, used to parse, to refuse and to print help. */
#include "trainer/cli/options.h"

#include <string.h>

int option_path(void *field, const struct option_row *o, const char *value, struct err *err)
{
    if (!value[0] || strlen(value) > OPTION_PATH_MAX)
        return err_set(err, ERR_INVALID, "--%s: expected a path of 1..%d bytes, got %zu", o->name,
                       OPTION_PATH_MAX, strlen(value));
    return option_text(field, o, value, err);
}

static int set_gpt2_size(void *field, const struct option_row *o, const char *value, struct err *err)
{
    return gpt2_size(value, field, err) ? err_wrap(err, "--%s", o->name) : 0;
}

#define AT(field) offsetof(struct config, field)

const struct option_row option_table[] = {
    {"data", 0, "DIR", option_path, AT(data_dir), .section = "Data",
     .help = "Folder of the four IDX files (.gz or not): torchvision's layout (MNIST/raw, FashionMNIST/raw), "
             "or the files themselves. Default ./data."},
    {"dataset", 0, "NAME", option_choice, AT(data.dataset), DATASET_MNIST,
     .words = OPTION_WORDS("mnist", "fashion-mnist"),
     .help = "mnist or fashion-mnist, when DIR holds both. Default: whichever is there."},
    {"train_files", 0, "PATTERN", option_path, AT(data.train), .needs = NEEDS_TOKENS,
     .help = "Of tokens: the files below DIR to train on instead of the preset's, as 'fineweb_train_*.bin'."},
    {"val_files", 0, "PATTERN", option_path, AT(data.test), .needs = NEEDS_TOKENS,
     .help = "Of tokens: those that validate, instead of the preset's or of a share of the training data."},
    {"no_download", 0, NULL, option_flag, AT(no_download),
     .help = "Do not download. Without it, MNIST or Fashion-MNIST is fetched into DIR when it is not there, "
             "checked by its SHA-256."},
    {"epochs", 0, "N", option_integer, AT(epochs), 1, 1000000, .section = "Training",
     .help = "Passes over the training data."},
    {"max_epochs", 0, "N", option_integer, AT(epochs), 1, 1000000,
     .help = "The same as --epochs, by the name that it has in PyTorch's example of one linear layer."},
    {"max_steps", 0, "N", option_integer, AT(max_steps), 1, INT32_MAX,
     .help = "Stop training after N steps, wherever that is. Default: none."},
    {"batch_size", 0, "N", option_integer, AT(batch_size), 1, BATCH_SIZE_MAX,
     .help = "Samples per rank and step; of a model in stages, of all ranks together."},
    {"micro_batches", 0, "N", option_integer, AT(micro_batches), 1, MICRO_BATCHES_MAX,
     .help =
         "Parts of a batch that go through the model one after the other, so that the stages of a pipeline "
         "work at the same time; of a model that is in one piece, so that less memory is needed."},
    {"total_batch_tokens", 0, "N", option_integer, AT(total_batch_tokens), 1, INT32_MAX,
     .help =
         "Of a model of sequences: tokens of a step on all ranks together. --batch_size is then what goes "
         "through a rank at a time, and gradients are added up until it is enough: one exchange per step."},
    {"lr", 0, "RATE", option_number, AT(optimizer.lr), .most = 1e6, .help = "Learning rate of one rank."},
    {"seed", 0, "N", option_integer, AT(seed), 0, INT64_MAX,
     .help = "Seed of the weights and of the train/validation split, as torch.manual_seed."},
    {"sampler_seed", 0, "N", option_integer, AT(sampler_seed), 0, INT64_MAX,
     .help = "Seed of the order of samples, as DistributedSampler's."},
    {"init_from", 0, "FILE", option_path, AT(init_from),
     .help = "Begin with the weights of FILE, a .safetensors: of f32, f16, bf16 or f64, also behind prefixes "
             "of wrappers such as module.; other tensors in it do not matter. A GPT-2's may lie as Hugging "
             "Face's Conv1D or as nn.Linear. A run that resumes from a checkpoint does not read FILE."},
    {"val_every", 0, "N", option_integer, AT(val_every), 1, INT32_MAX,
     .help = "Validate after every N-th step too, and after --max_steps. Default: after each epoch only."},
    {"val_steps", 0, "N", option_integer, AT(val_steps), 1, INT32_MAX,
     .help = "Validate on the samples of N steps, always the same. Default: on all there are."},
    {"eval_only", 0, NULL, option_flag, AT(eval_only),
     .help = "Do not train: evaluate on the test data the weights that training would begin with, or go on "
             "from."},
    {"model", 0, "d12|d24|d36|d48", set_gpt2_size, AT(model.gpt2), .section = "Size of a GPT-2",
     .needs = NEEDS_GPT2,
     .help = "One of OpenAI's sizes by its number of layers: 124, 350, 774 or 1558 million parameters."},
    {"n_layer", 0, "N", option_integer, AT(model.gpt2.n_layer), 1, GPT2_LAYERS_MAX, .needs = NEEDS_GPT2,
     .help = "Blocks."},
    {"n_head", 0, "N", option_integer, AT(model.gpt2.n_head), 1, 1 << 16, .needs = NEEDS_GPT2,
     .help = "Heads of a block; a divisor of the width."},
    {"n_embd", 0, "N", option_integer, AT(model.gpt2.n_embd), 1, 1 << 20, .needs = NEEDS_GPT2,
     .help = "Width."},
    {"block_size", 0, "N", option_integer, AT(model.gpt2.block_size), 1, LAYOUT_SIDE_MAX, .needs = NEEDS_GPT2,
     .help = "Tokens of a sequence."},
    {"vocab_size", 0, "N", option_integer, AT(model.gpt2.vocab), 1, 1 << 24, .needs = NEEDS_GPT2,
     .help = "Tokens there are: 50257 of GPT-2's own, 256 of bytes."},
    {"recompute", 0, NULL, option_flag, AT(model.gpt2.recompute), .needs = NEEDS_GPT2,
     .help = "Keep of each block its input alone, and compute the rest again for the gradients: a tenth of "
             "what activations need, a third more time, the same bits."},
    {"nprocs", 0, "N", option_integer, AT(nprocs), 1, NPROCS_MAX, .section = "Ranks and machine",
     .help = "Started alone: start N ranks on this host, by the torchrun beside this program. Its exit "
             "status is the root cause's. Not under a launcher."},
    {"backend", 0, "NAME", option_choice, AT(backend), COLLECTIVES_GLOO,
     .words = OPTION_WORDS("gloo", "nccl"),
     .help = "How ranks reach each other: gloo (shared memory, TCP between pods; the default) or nccl. What "
             "this build or machine does not have is refused."},
    {"no_cuda", 0, NULL, option_flag, AT(no_cuda), .help = "Train on the CPU even where there is a GPU."},
    {"threads", 0, "N", option_integer, AT(threads), 1, 256,
     .help = "Threads of one rank. Default: OMP_NUM_THREADS, else the CPUs this process may use, shared by "
             "the ranks of the pod. The result does not depend on it."},
    {"precision", 0, "auto|f32|tf32|bf16", option_choice, AT(precision), .words = config_precisions,
     .help = "Numbers on a GPU; CPUs have f32. tf32: matrix products of linear layers round what they "
             "multiply. bf16: a model of sequences keeps activations, their gradients and copies of its "
             "weights in bf16, all else (weights, moments, sums, gradients of weights, norms' parameters) in "
             "f32; other models round as with tf32, to bf16. Convolutions are f32 always. auto: bf16 on a "
             "GPU where the model is one of sequences, else f32."},
    {"timeout", 0, "SECONDS", option_number, AT(timeout_s), .least = 0.001, .most = 86400,
     .help = "Longest wait for the other ranks in one exchange. Default 600."},
    {"bucket_mb", 0, "MIB", option_number, AT(bucket_mb), .least = 0, .most = 65536,
     .help = "With --backend nccl: gradients are summed in pieces of at least so many MiB, beside the "
             "backward pass that makes the others; those of a model smaller than two such pieces at once, "
             "behind it. 0: always so. Default 25, PyTorch's."},
    {"log_interval", 0, "N", option_integer, AT(log_interval), 1, 1000000000, .section = "Output",
     .help = "Steps between two lines about the loss."},
    {"log_format", 0, "text|json", option_choice, AT(log_format), LOG_FORMAT_TEXT,
     .words = OPTION_WORDS("text", "json"),
     .help = "text: plain lines. json: one object per line. Where stderr is a terminal, rank 0 shows a bar "
             "there, with the loss and the time that is left."},
    {"log_dir", 0, "DIR", option_path, AT(log_dir),
     .help = "Write TensorBoard events there; a fresh start removes the event files of trainer's ended runs "
             "from it."},
    {"log_histograms", 0, "N", option_integer, AT(log_histograms), 1, INT32_MAX,
     .help = "With --log_dir: histograms of all weights after every N-th step. Default: none."},
    {"save_path", 0, "FILE", option_path, AT(save_path),
     .help = "Write the trained weights there as a state_dict that torch.load opens: FILE.pt, or "
             "FILE.safetensors."},
    {"save_every", 0, "N", option_integer, AT(save_every), 1, 1000000,
     .help = "Write --save_path after every N-th epoch, from the first one on, and not at the end (but where "
             "--max_steps or --eval_only ends the run, there too). Default: once, at the end."},
    {"ckpt_dir", 0, "DIR", option_path, AT(ckpt_dir), .section = "Checkpoints and resuming",
     .help = "Folder of the checkpoints: one folder per run, with step-<number> in it, which holds "
             "model.safetensors, optim.safetensors, manifest.json and, of a GPT-2, Hugging Face's "
             "config.json. Rank 0 alone writes and reads it. Default ./checkpoints."},
    {"save_steps", 0, "N", option_integer, AT(save_steps), 1, INT32_MAX,
     .help = "A checkpoint after every N-th step of the run. Default: none by steps. It is written beside "
             "the training, from a copy of the state, which takes memory on rank 0: 4 bytes per parameter, "
             "and on a CPU the optimizer's moments, with Adam 8 bytes more (not in stages, where rank 0 has "
             "memory to gather them in anyway). A step that is due while one is still being written is put "
             "off until that is done."},
    {"save_seconds", 0, "N", option_number, AT(save_seconds), .least = 0, .most = 1e7,
     .help =
         "A checkpoint when the last one is so old; 0: none by time. Default 60. Without --save_steps and "
         "with 0 only the step at which a run is stopped is saved, and no memory is taken for a copy."},
    {"keep", 0, "N", option_integer, AT(keep), 1, 1000000,
     .help = "So many of this run's checkpoints stay, the newest; other runs' are not touched."},
    {"resume", 0, "auto|never|PATH", option_path, AT(resume),
     .help =
         "auto, the default: go on from the newest whole checkpoint in --ckpt_dir of the same run "
         "(PTJ_JOB_UID, else the launcher's --rdzv_id, else the same launch of a launcher) and "
         "configuration, else start afresh: a run "
         "that was started by hand resumes only from a given PATH. With another --max_steps, --recompute or "
         "--epochs the configuration is the same. Only with a cosine without total, which ends with the run, "
         "another --epochs makes it another one. PATH: a checkpoint, or a "
         "folder of them such as --ckpt_dir, of which the last written one of this configuration is "
         "taken, whichever run wrote it; a later attempt of the same job or launch goes on from its own. The "
         "same number of ranks gives the same bits as a run that was never interrupted."},
    {"show", 0, NULL, option_flag, AT(show), .section = "Other",
     .help = "Print the model file of this preset: a start for your own."},
    {"help", 'h', NULL, option_flag, AT(help), .help = "This text."},
    {0},
};

/* May it be used with this model and these data? */
static int set(struct config *cfg, const struct option_given *g, unsigned lacks, struct err *err)
{
    const unsigned lacking = g->row->needs & lacks;

    if (lacking & NEEDS_GPT2)
        return err_set(err, ERR_INVALID, "--%s: the model is not a GPT-2 (model: {gpt2: ...})", g->row->name);
    if (lacking & NEEDS_TOKENS)
        return err_set(err, ERR_INVALID, "--%s: the data are not tokens (data: {format: tokens, ...})",
                       g->row->name);
    return option_set(g, cfg, err);
}

/* A word that is no option is the value of the preset's next argument. */
static int take_word(const struct config *cfg, int *used, struct option_given *g, const char *manual,
                     struct err *err)
{
    if (*used == cfg->positionals)
        return err_set(err, ERR_INVALID, "\"%.80s\": expected an option (%s)", g->value, manual);
    g->row = option_find(option_table, sv_from(cfg->positional[(*used)++]), '\0');
    return 0;
}

int config_options(int argc, char *const *argv, struct config *cfg, struct err *err)
{
    const bool tokens = cfg->data.format == &format_tokens;
    char manual[80];
    struct options_reader r = {{option_table}, argc, argv, .manual = manual};
    struct option_given g;
    int rc, used = 0;

    r.lacks = (cfg->model.gpt2.vocab ? 0U : NEEDS_GPT2) | (tokens ? 0U : NEEDS_TOKENS);
    snprintf(manual, sizeof(manual), "trainer %.60s --help", cfg->called);
    while ((rc = options_next(&r, &g, err)) > 0)
        if ((!g.row && take_word(cfg, &used, &g, manual, err) < 0) || set(cfg, &g, r.lacks, err) < 0)
            return -1;
    if (!rc && cfg->model.gpt2.vocab)
        gpt2_layers(&cfg->model);
    if (cfg->model.input.sequence)
        cfg->data.rows = cfg->model.input.rows; /* what a window holds */
    if (tokens && cfg->data.test)               /* files validate instead of a share */
        cfg->data.split = (struct split_spec){0};
    return rc;
}
