/* config.h - a run's configuration as one typed struct, read from a preset or a user's YAML and then the command line.
 *
 * Ownership: strings are borrowed from argv or live in the arena given.
 * Errors:    ERR_INVALID naming file, line and field, or the option; ERR_NOT_FOUND for a file that is not
 *            there.
 */
#ifndef TK_TRAINER_CLI_CONFIG_H
#define TK_TRAINER_CLI_CONFIG_H

#include "collectives/collectives.h"
#include "common/arena.h"
#include "common/cleanup.h"
#include "common/err.h"
#include "trainer/cli/lines.h"
#include "trainer/data/source.h"
#include "trainer/model/gpt2.h"
#include "trainer/model/spec.h"
#include "trainer/pipeline/cut.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    BATCH_SIZE_MAX = 65536,
    POSITIONALS_MAX = 4,
    NPROCS_MAX = 1024,
    NPROCS_GPUS = -1 /* as many as there are */
};

/* Behind enum precision's. By the device: bf16 for models of sequences on a GPU, else f32. */
enum { CONFIG_PRECISION_AUTO = 3 };

/* The words for values of `precision`, ended by NULL. */
extern const char *const config_precisions[];

enum log_format { LOG_FORMAT_TEXT, LOG_FORMAT_JSON };

struct config {
    const char *called; /* the first argument: a preset's name or a path */

    /* from the preset alone */
    const char *name;
    const char *about;
    const char *source; /* the YAML it was read from */
    struct model_spec model;
    struct loss_spec loss;
    struct optimizer_spec optimizer;
    struct schedule_spec schedule;
    struct data_spec data;
    bool own_lines; /* the preset prints `lines` instead of the trainer's own start, steps and times */
    struct lines_spec lines;
    bool test; /* evaluate the test data when training is done */
    int positionals;
    int64_t nprocs_default;                  /* ranks to start when alone; 0: none, or NPROCS_GPUS */
    const char *positional[POSITIONALS_MAX]; /* names of options whose values may stand without their names */

    /* options; the preset gives the defaults of some */
    const char *data_dir;
    bool no_download;
    int64_t epochs, max_steps;
    int64_t batch_size;         /* per rank; of a model in stages: of all. 0: session_batch.c chooses */
    int64_t micro_batches;      /* parts of a batch that go through the model one after the other */
    int64_t total_batch_tokens; /* of all ranks in a step, batch_size then being a micro-batch; 0: not so */
    int64_t seed, sampler_seed;
    int64_t val_every;              /* steps between validations, besides those behind epochs; 0: none */
    int64_t val_steps;              /* steps' worth of samples that validate; 0: all */
    int64_t log_interval;           /* steps; 0: from log_interval_all_ranks */
    int64_t log_interval_all_ranks; /* steps of all ranks together */
    bool eval_only, no_cuda, help, show;
    int64_t nprocs;  /* 0: nprocs_default */
    int64_t threads; /* 0: decided by the machine */
    int backend;     /* enum collectives_backend */
    int precision;   /* CONFIG_PRECISION_AUTO or enum precision of kernels/device.h */
    double timeout_s;
    double
        bucket_mb; /* MiB of gradients that GPUs sum at a time, beside the backward pass; 0: all behind it */
    const char *init_from;           /* NULL: weights from the seed */
    const char *log_dir, *save_path; /* NULL: none */
    int64_t
        save_every; /* write save_path after epochs 0, n, 2n, ... and where max_steps ends the run; 0: once, at the end */
    int log_format;                /* enum log_format */
    const char *ckpt_dir, *resume; /* resume: "auto", "never" or a path */
    int64_t save_steps, keep;      /* save_steps 0: not by steps */
    int64_t log_histograms;        /* steps between two; 0: none */
    double save_seconds;           /* 0: not by time */
};

/* Read a preset's text into *ret. `file` names it in errors. */
int config_decode(const char *file, const char *text, size_t len, struct arena *a, struct config *ret,
                  struct err *err) MUST_CHECK;

/* Apply `argc` options to *cfg, which the preset has filled. An unknown option or a value out of range is an error. Of an
 * option given twice the last one counts. */
int config_options(int argc, char *const *argv, struct config *cfg, struct err *err) MUST_CHECK;

/* Compute batch_size and micro_batches from total_batch_tokens for `replicas`. ERR_INVALID: it is not divisible. */
int config_batch(struct config *cfg, int replicas, struct err *err) MUST_CHECK;

/* The most ranks, `most` or fewer, that can share the batch and the stages; 0: none can. *why, when it is fewer: what `most` lack. */
int config_world(const struct config *cfg, int most, struct err *why);

/* Load a preset by name, or a YAML file by path: a word with a '/' or ending in .yaml or .yml is a path. */
int config_load(const char *name_or_path, struct arena *a, struct config *ret, struct err *err) MUST_CHECK;

/* A checksum of the configuration, without paths, so that ranks can check that theirs are equal. */
uint32_t config_fingerprint(const struct config *cfg);

/* The same without what may change when a run is resumed: where it ends (unless the schedule depends on that),
 * and what is kept for the backward pass. */
uint32_t config_resumable(const struct config *cfg);

#endif
