/* options.c - the table of all options of a preset, used to parse, to refuse and to print help. */
#include "trainer/cli/options.h"

#define AT(field) offsetof(struct config, field)

static const struct option_choice DATASETS = {DATASET_MNIST, "mnist or fashion-mnist",
                                              (const char *const[]){"mnist", "fashion-mnist", NULL}};
static const struct option_choice BACKENDS = {COLLECTIVES_GLOO, "gloo or nccl",
                                              (const char *const[]){"gloo", "nccl", NULL}};
static const struct option_choice LOG_FORMATS = {LOG_FORMAT_TEXT, "text or json",
                                                 (const char *const[]){"text", "json", NULL}};
static const struct option_choice PRECISIONS = {0, "auto, f32, tf32 or bf16", config_precisions};

const struct option_row option_table[] = {
    {.group = "Data"},
    {"data", "DIR", OPTION_TEXT, AT(data_dir),
     .help = "Folder of the four IDX files (.gz or not): torchvision's layout (MNIST/raw, FashionMNIST/raw), "
             "or the files themselves. Default ./data."},
    {"dataset", "NAME", OPTION_CHOICE, AT(data.dataset), .choice = &DATASETS,
     .help = "mnist or fashion-mnist, when DIR holds both. Default: whichever is there."},
    {"train_files", "PATTERN", OPTION_TEXT, AT(data.train), .tokens = true,
     .help = "Of tokens: the files below DIR to train on instead of the preset's, as 'fineweb_train_*.bin'."},
    {"val_files", "PATTERN", OPTION_TEXT, AT(data.test), .tokens = true,
     .help = "Of tokens: those that validate, instead of the preset's or of a share of the training data."},
    {"no_download", NULL, OPTION_FLAG, AT(no_download),
     .help = "Do not download. Without it, MNIST or Fashion-MNIST is fetched into DIR when it is not there, "
             "checked by its published MD5."},
    {"data_mirror", "URL", OPTION_TEXT, AT(data_mirror),
     .help = "Address of a folder with the four .gz files, to download from instead of the official ones. A "
             "mirror that does not answer may come up: exit status 138."},
    {.group = "Training"},
    {"epochs", "N", OPTION_INTEGER, AT(epochs), 1, 1000000, .help = "Passes over the training data."},
    {"max_epochs", "N", OPTION_INTEGER, AT(epochs), 1, 1000000,
     .help = "The same as --epochs, by the name that it has in PyTorch's example of one linear layer."},
    {"max_steps", "N", OPTION_INTEGER, AT(max_steps), 1, INT32_MAX,
     .help = "Stop training after N steps, wherever that is. Default: none."},
    {"batch_size", "N", OPTION_INTEGER, AT(batch_size), 1, BATCH_SIZE_MAX,
     .help = "Samples per rank and step; of a model in stages, of all ranks together."},
    {"micro_batches", "N", OPTION_INTEGER, AT(micro_batches), 1, MICRO_BATCHES_MAX,
     .help =
         "Parts of a batch that go through the model one after the other, so that the stages of a pipeline "
         "work at the same time; of a model that is in one piece, so that less memory is needed."},
    {"total_batch_tokens", "N", OPTION_INTEGER, AT(total_batch_tokens), 1, INT32_MAX,
     .help =
         "Of a model of sequences: tokens of a step on all ranks together. --batch_size is then what goes "
         "through a rank at a time, and gradients are added up until it is enough: one exchange per step."},
    {"lr", "RATE", OPTION_NUMBER, AT(optimizer.lr), .max_number = 1e6, .help = "Learning rate of one rank."},
    {"seed", "N", OPTION_INTEGER, AT(seed), 0, INT64_MAX,
     .help = "Seed of the weights and of the train/validation split, as torch.manual_seed."},
    {"sampler_seed", "N", OPTION_INTEGER, AT(sampler_seed), 0, INT64_MAX,
     .help = "Seed of the order of samples, as DistributedSampler's."},
    {"init_from", "FILE", OPTION_TEXT, AT(init_from),
     .help = "Begin with the weights of FILE, a .safetensors: of f32, f16, bf16 or f64, also behind prefixes "
             "of wrappers such as module.; other tensors in it do not matter. A GPT-2's may lie as Hugging "
             "Face's Conv1D or as nn.Linear. A checkpoint that the run resumes from goes before: FILE is "
             "then not read."},
    {"val_every", "N", OPTION_INTEGER, AT(val_every), 1, INT32_MAX,
     .help = "Validate after every N-th step too, and after --max_steps. Default: behind epochs alone."},
    {"val_steps", "N", OPTION_INTEGER, AT(val_steps), 1, INT32_MAX,
     .help = "Validate on the samples of N steps, always the same. Default: on all there are."},
    {"eval_only", NULL, OPTION_FLAG, AT(eval_only),
     .help = "Do not train: evaluate on the test data the weights that training would begin with, or go on "
             "from."},
    {.group = "Size of a GPT-2"},
    {"model", "d12|d24|d36|d48", OPTION_GPT2_SIZE, AT(gpt2), .gpt2 = true,
     .help = "One of OpenAI's sizes by its number of layers: 124, 350, 774 or 1558 million parameters."},
    {"n_layer", "N", OPTION_INTEGER, AT(gpt2.n_layer), 1, GPT2_LAYERS_MAX, .gpt2 = true, .help = "Blocks."},
    {"n_head", "N", OPTION_INTEGER, AT(gpt2.n_head), 1, 1 << 16, .gpt2 = true,
     .help = "Heads of a block; a divisor of the width."},
    {"n_embd", "N", OPTION_INTEGER, AT(gpt2.n_embd), 1, 1 << 20, .gpt2 = true, .help = "Width."},
    {"block_size", "N", OPTION_INTEGER, AT(gpt2.block_size), 1, LAYOUT_SIDE_MAX, .gpt2 = true,
     .help = "Tokens of a sequence."},
    {"vocab_size", "N", OPTION_INTEGER, AT(gpt2.vocab), 1, 1 << 24, .gpt2 = true,
     .help = "Tokens there are: 50257 of GPT-2's own, 256 of bytes."},
    {"recompute", NULL, OPTION_FLAG, AT(gpt2.recompute), .gpt2 = true,
     .help = "Keep of each block its input alone, and compute the rest again for the gradients: a tenth of "
             "what activations need, a third more time, the same bits."},
    {.group = "Ranks and machine"},
    {"nprocs", "N", OPTION_INTEGER, AT(nprocs), 1, NPROCS_MAX,
     .help = "Started alone: start N ranks on this host, by the torchrun beside this program. Its exit "
             "status is the root cause's. Not under a launcher."},
    {"backend", "NAME", OPTION_CHOICE, AT(backend), .choice = &BACKENDS,
     .help = "How ranks reach each other: gloo (shared memory, TCP between pods; the default) or nccl. What "
             "this build or machine does not have is refused."},
    {"no_cuda", NULL, OPTION_FLAG, AT(no_cuda), .help = "Train on the CPU even where there is a GPU."},
    {"threads", "N", OPTION_INTEGER, AT(threads), 1, 256,
     .help = "Threads of one rank. Default: OMP_NUM_THREADS, else the CPUs this process may use, shared by "
             "the ranks of the pod. The result does not depend on it."},
    {"precision", "auto|f32|tf32|bf16", OPTION_CHOICE, AT(precision), .choice = &PRECISIONS,
     .help = "Numbers on a GPU; CPUs have f32. tf32: matrix products of linear layers round what they "
             "multiply. bf16: a model of sequences keeps activations, their gradients and copies of its "
             "weights in bf16, all else (weights, moments, sums, gradients of weights, norms' parameters) in "
             "f32; other models round as with tf32, to bf16. Convolutions are f32 always. auto: bf16 on a "
             "GPU where the model is one of sequences, else f32."},
    {"stochastic_rounding", NULL, OPTION_FLAG, AT(stochastic_rounding),
     .help = "With --precision bf16, of a model of sequences: round the copies of the weights up or down by "
             "chance, so that their mean is the weight. The same seed gives the same bits."},
    {"timeout", "SECONDS", OPTION_NUMBER, AT(timeout_s), .min_number = 0.001, .max_number = 86400,
     .help = "Longest wait for the other ranks in one exchange. Default 600."},
    {"bucket_mb", "MIB", OPTION_NUMBER, AT(bucket_mb), .min_number = 0, .max_number = 65536,
     .help = "With --backend nccl: gradients are summed in pieces of at least so many MiB, beside the "
             "backward pass that makes the others; those of a model smaller than two such pieces at once, "
             "behind it. 0: always so. Default 25, PyTorch's."},
    {.group = "Output"},
    {"log_interval", "N", OPTION_INTEGER, AT(log_interval), 1, 1000000000,
     .help = "Steps between two lines about the loss."},
    {"peak_tflops", "X", OPTION_NUMBER, AT(peak_tflops), .min_number = 1e-6, .max_number = 1e6, .gpt2 = true,
     .help = "What the device of a rank can do at most: with it, --log_dir gets mfu, the share of it that is "
             "used."},
    {"log_format", "text|json", OPTION_CHOICE, AT(log_format), .choice = &LOG_FORMATS,
     .help = "text: plain lines. json: one object per line. Where stderr is a terminal, rank 0 shows a bar "
             "there, with the loss and the time that is left."},
    {"log_dir", "DIR", OPTION_TEXT, AT(log_dir),
     .help = "Write TensorBoard events there; a fresh start removes the event files of trainer's ended runs "
             "from it."},
    {"log_histograms", "N", OPTION_INTEGER, AT(log_histograms), 1, INT32_MAX,
     .help = "With --log_dir: histograms of all weights after every N-th step. Default: none."},
    {"save_path", "FILE", OPTION_TEXT, AT(save_path),
     .help = "Write the trained weights there as a state_dict that torch.load opens: FILE.pt, or "
             "FILE.safetensors."},
    {"save_every", "N", OPTION_INTEGER, AT(save_every), 1, 1000000,
     .help = "Write --save_path after every N-th epoch, from the first one on, and not at the end (but where "
             "--max_steps or --eval_only ends the run, there too). Default: once, at the end."},
    {.group = "Checkpoints and resuming"},
    {"ckpt_dir", "DIR", OPTION_TEXT, AT(ckpt_dir),
     .help = "Folder of the checkpoints: one folder per run, with step-<number> in it, which holds "
             "model.safetensors, optim.safetensors, manifest.json and, of a GPT-2, Hugging Face's "
             "config.json. Rank 0 alone writes and reads it. Default ./checkpoints."},
    {"save_steps", "N", OPTION_INTEGER, AT(save_steps), 1, INT32_MAX,
     .help = "A checkpoint after every N-th step of the run. Default: none by steps. It is written beside "
             "the training, from a copy of the state, which takes memory on rank 0: 4 bytes per parameter, "
             "and on a CPU the optimizer's moments, with Adam 8 bytes more (not in stages, where rank 0 has "
             "memory to gather them in anyway). A step that is due while one is still being written is put "
             "off until that is done."},
    {"save_seconds", "N", OPTION_NUMBER, AT(save_seconds), .min_number = 0, .max_number = 1e7,
     .help =
         "A checkpoint when the last one is so old; 0: none by time. Default 60. Without --save_steps and "
         "with 0 only the step at which a run is stopped is saved, and no memory is taken for a copy."},
    {"keep", "N", OPTION_INTEGER, AT(keep), 1, 1000000,
     .help = "So many of this run's checkpoints stay, the newest; other runs' are not touched."},
    {"resume", "auto|never|PATH", OPTION_TEXT, AT(resume),
     .help = "auto, the default: go on from the newest whole checkpoint in --ckpt_dir of the same run "
             "(PTJ_JOB_UID, else the launcher's --rdzv_id, else the same launch of a launcher) and "
             "configuration (--epochs, --max_steps and --recompute may differ), else start afresh: a run "
             "that was started by hand goes on only when it is told from where. PATH: a checkpoint, or a "
             "folder of them such as --ckpt_dir, of which the last written one of this configuration is "
             "taken, whoever wrote it; a later attempt of the same job or launch goes on from its own. The "
             "same number of ranks gives the same bits as a run that was never interrupted."},
    {.group = "Other"},
    {"show", NULL, OPTION_FLAG, AT(show),
     .help = "Print the model file of this preset: a start for your own."},
    {"help", NULL, OPTION_FLAG, AT(help), .help = "This text."},
    {0},
};
