/* help_preset.c - print the manual of one preset: its options with their defaults, its exit codes. */
#include "common/wrap.h"
#include "trainer/cli/help.h"
#include "trainer/cli/options.h"

#include <string.h>

static void about_nprocs(FILE *out, const struct config *cfg)
{
    if (cfg->nprocs_default == NPROCS_GPUS)
        fputs("        Default: one per visible GPU, else 1.\n", out);
    else
        fprintf(out, "        Default %lld.\n", cfg->nprocs_default ? (long long)cfg->nprocs_default : 1);
}

/* An option whose value follows from others, or nothing where the row says it all. */
static bool about_derived(FILE *out, const struct config *cfg, const struct option_row *o)
{
    if (o->offset == offsetof(struct config, log_interval) && !cfg->log_interval)
        fprintf(out, "        Default %lld divided by the number of ranks.\n",
                (long long)cfg->log_interval_all_ranks);
    else if (o->offset == offsetof(struct config, nprocs))
        about_nprocs(out, cfg);
    else if (o->offset == offsetof(struct config, batch_size) && !cfg->batch_size)
        wrap_text(out, 8,
                  "Default: the most that divide a rank's share of --total_batch_tokens and fit into the "
                  "GPU's memory, up to 65536 tokens; on a CPU up to 4. Another GPU may make other "
                  "micro-batches and so round sums otherwise: a number gives the same bits everywhere.");
    else if (o->offset == offsetof(struct config, precision))
        fprintf(out, "        Default %s.\n", config_precisions[cfg->precision]);
    else if (o->offset == offsetof(struct config, optimizer.lr))
        fprintf(out, "        Default %g%s.\n", cfg->optimizer.lr,
                cfg->optimizer.lr_times_world ? ", and it is multiplied by the number of ranks" : "");
    else
        return false;
    return true;
}

/* What the preset has it at. A text that says what happens without it is about presets that say nothing. */
static void about_default(FILE *out, const struct option_row *o, const void *ctx)
{
    const struct config *cfg = ctx;
    const void *field = (const char *)cfg + o->offset;
    const char *word = strstr(o->help, "Default: ") ? "Here: " : "Default ";

    if (about_derived(out, cfg, o))
        return;
    if (o->set == option_integer && (*(const int64_t *)field || !o->min))
        fprintf(out, "        %s%lld.\n", word, (long long)*(const int64_t *)field);
    if (o->set == option_path && *(const char *const *)field && !strstr(o->help, "efault"))
        fprintf(out, "        Default %s.\n", *(const char *const *)field);
}

enum { MARGIN = 4 };

/* A line of YAML, `len` bytes, folded where it may be. */
static void folded(FILE *out, const char *line, int len)
{
    const int indent = (int)strspn(line, " ");
    int before = 0; /* columns of a continuation */

    fprintf(out, "%*s", MARGIN, "");
    while (len > WRAP_WIDTH - MARGIN - before) {
        int cut = WRAP_WIDTH - MARGIN - before;
        while (cut > (before ? 0 : indent) && line[cut] != ' ')
            cut--;
        if (line[cut] != ' ' || cut <= (before ? 0 : indent))
            break;
        before = indent + MARGIN;
        fprintf(out, "%.*s\n%*s", cut, line, MARGIN + before, "");
        line += cut + 1;
        len -= cut + 1;
    }
    fprintf(out, "%.*s\n", len, line);
}

/* The preset itself, but for its name and what it is about, which stand above, and for notes to its readers. */
static void about_source(FILE *out, const char *text)
{
    bool above = false;

    while (*text) {
        int len = (int)strcspn(text, "\n");
        if (len && *text != ' ')
            above = strncmp(text, "name:", 5) == 0 || strncmp(text, "about:", 6) == 0;
        if (!above && len && *text != '#')
            folded(out, text, len);
        text += len + (text[len] == '\n');
    }
}

void help_preset_examples(const struct config *cfg, struct help_examples *ret)
{
    const char *data = !cfg->data.format->files ? ""
                       : !cfg->data.train       ? " --data data/fashion-mnist"
                                                : " --data DIR";
    const int ranks = cfg->model.stages > 1 ? cfg->model.stages : 4;
    char(*text)[sizeof(ret->text[0])] = ret->text;

    snprintf(text[0], sizeof(*text), "trainer %s%s --epochs 1", cfg->name, data);
    snprintf(text[1], sizeof(*text), "trainer %s%s --resume checkpoints", cfg->name, data);
    snprintf(text[2], sizeof(*text),
             "torchrun --nproc-per-node=%d trainer %s%s --log_dir log --save_path model.pt", ranks, cfg->name,
             data);
    ret->list[0] = (struct option_example){text[0], "One pass over the training data."};
    ret->list[1] = (struct option_example){text[1], "Go on from the newest checkpoint in that folder."};
    ret->list[2] =
        (struct option_example){text[2], "Several ranks, events for TensorBoard, and the weights."};
    ret->list[3] = (struct option_example){0};
}

void help_preset(FILE *out, const struct config *cfg)
{
    struct help_examples examples;

    fprintf(out, "NAME\n    trainer %s\n\nSYNOPSIS\n    trainer %s", cfg->name, cfg->name);
    for (int i = 0; i < cfg->positionals; i++)
        fprintf(out, " [%s]", cfg->positional[i]);
    fputs(" [options]\n\nDESCRIPTION\n", out);
    wrap_text(out, 4, cfg->about);
    fputs("\nMODEL, TRAINING, DATA AND LINES\n", out);
    wrap_text(out, MARGIN, "What --show prints as a file; trainer --help explains it.");
    fputc('\n', out);
    about_source(out, cfg->source);
    fputs("\nOPTIONS\n", out);
    wrap_text(out, 4, "--name VALUE and --name=VALUE are the same, and so are '-' and '_' inside a name.");
    if (cfg->positionals)
        wrap_text(out, 4, "The words of the synopsis are values of the options of the same name.");
    options_print(out, option_table, about_default, cfg);
    fputs("\nENVIRONMENT\n", out);
    wrap_text(out, 4,
              "RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE: which rank this is; a launcher sets them. "
              "PTJ_JOB_UID, TORCHELASTIC_RUN_ID: the run that checkpoints belong to. OMP_NUM_THREADS: "
              "threads of a rank. https_proxy, SSL_CERT_FILE: the way to downloads, and whose certificates "
              "to trust. TORCHELASTIC_ERROR_FILE: where to say why a rank failed. TORCHKEEPER_KEPT_DATA: "
              "memory of the launcher's, in which decoded data stay for its next attempt. "
              "TORCHKEEPER_PROGRESS_FILE: where to leave step, epoch, loss and samples/s as JSON, once a "
              "second. TK_ISA: plain, avx2 or avx512 instead of the best there is.");
    fputs("\nSIGNALS\n", out);
    wrap_text(out, 4,
              "SIGTERM or SIGINT on any rank: all ranks stop after the same step, or before the next batch "
              "of an evaluation, rank 0 finishes the checkpoint that is being written, then writes that of "
              "this step, while the others wait as long as that takes, and --resume with its folder, or the "
              "job's next attempt, goes on from there.");
    fputs("\nEXIT STATUS\n"
          "    0    done\n"
          "    1    error; among others a loss, of a step or an evaluation,\n"
          "         that is not finite\n"
          "    2    usage: options, model file or data that cannot be used; data that are\n"
          "         not there and that no server can be reached for\n"
          "    130  stopped by SIGINT\n"
          "    138  the other ranks did not answer within --timeout, or a download, or\n"
          "         the search for a checkpoint failed in a way that may pass, or this\n"
          "         machine lacks memory, threads or descriptors for now, or more ranks\n"
          "         are needed\n"
          "    140  another rank went away, or the job's next attempt has begun\n"
          "    143  stopped by SIGTERM\n",
          out);
    help_preset_examples(cfg, &examples);
    options_print_examples(out, examples.list);
}
