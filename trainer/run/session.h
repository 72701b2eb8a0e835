/* session.h - set up and release the parts of one training run: connections to the other ranks, device, data,
 * model, checkpoints, report. run.c calls it.
 *
 * Ownership: session_release frees what session_open has acquired, also after session_open failed; cfg and env are
 *            borrowed.
 * Order:     a collective call: every rank makes it. It polls for signals (stop.h) once the ranks are
 *            connected. One generator draws first the initial weights and then the train/validation split, as
 *            the original program does.
 * Errors:    those of run.h. */
#ifndef TK_TRAINER_RUN_SESSION_H
#define TK_TRAINER_RUN_SESSION_H

#include "trainer/cli/config.h"
#include "trainer/data/pod_data.h"
#include "trainer/data/split.h"
#include "trainer/gpu/find.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/run/idle.h"
#include "trainer/run/report.h"
#include "trainer/run/run.h"
#include "trainer/run/train.h"
#include "trainer/state/resume.h"
#include "trainer/state/run_id.h"
#include "trainer/state/saver.h"

/* The begin of the interval over which the speed is measured. */
struct session_speed {
    int64_t ms, step; /* ms 0: not begun yet */
    double val_s;
};

/* Members are in the order in which they are acquired. */
struct session {
    const struct config *cfg;   /* &effective */
    const struct config *given; /* the command line's, for what must not depend on the number of ranks */
    struct config effective; /* `given`, plus each rank's batch and the precision that session_open chooses */
    const struct run_env *env;
    int64_t timeout_ms;
    struct rank_slot *slot;          /* this rank's slot in the launcher's memory */
    struct collectives_config ranks; /* of the training ranks; on an idle rank its own */
    struct idle idle;                /* with idle.self, nothing below is set up */
    const struct gpu_plugin *plugin; /* NULL: this rank computes on the CPU */
    struct gpu_choice gpu;
    bool nccl; /* several ranks use NCCL: device_comm is open */
    struct device_comm *device_comm;
    struct collectives *comm;
    struct kctx *ctx;
    struct pod_data data;
    struct pipeline pipeline;
    struct model *model; /* this rank's stage */
    struct optim optim;
    struct optim whole_optim; /* on rank 0, with stages: memory for the moments of all stages */
    uint32_t *split_order;
    struct split split;
    struct train train;
    struct run_id run_id;     /* only rank 0's is used */
    char run_dir[PATH_MAX];   /* folder of the run's checkpoints, in --ckpt_dir */
    struct attempt_mark mark; /* rank 0's, in run_dir */
    struct cursor cursor;
    double *sums; /* [1 + world] as struct snapshot's, at the last checkpoint */
    struct saver saver;
    struct err why_synchronous; /* why training waits for checkpoints; kind ERR_NONE: a thread writes them */
    double lr;                  /* of the last step */
    struct resume_result resumed;
    struct report *report;    /* rank 0 alone */
    bool saves;               /* rank 0 has a --save_path, so it needs the other ranks' weights */
    int64_t save_every;       /* rank 0's value; histograms_every too */
    int64_t histograms_every; /* steps; 0: never, or no --log_dir */
    struct report_times times;
    struct session_speed speed;
    bool left, lost; /* session_leave was called; the device was lost before */
};

int session_open(struct session *s, const struct config *cfg, const struct run_env *env,
                 struct err *err) MUST_CHECK;

/* session_find_device to session_begin are parts of session_open. Find this rank's GPU, if it uses one,
 * before the ranks connect. The error has one line: the request, the GPUs found, and what to change. */
int session_find_device(struct session *s, struct err *err) MUST_CHECK;

/* Open the GPU's context and NCCL, after the ranks have connected; s->ctx stays NULL on a rank that uses the CPU. */
int session_open_device(struct session *s, struct err *err) MUST_CHECK;

/* Decide the number of samples per rank and step, and the size of a micro-batch: the same on every rank.
 * ERR_INVALID: --total_batch_tokens is not divisible. */
int session_share_batch(struct session *s, struct err *err) MUST_CHECK;

/* Check that inputs, targets and classes of the data fit the model. */
int session_check_fit(const struct session *s, struct err *err) MUST_CHECK;

/* Determine the run's id, the step at which it begins or resumes, and which rank saves. */
int session_begin(struct session *s, struct err *err) MUST_CHECK;

/* On rank 0 of a job's attempt: ERR_PEER if another attempt of the job writes to its folder. */
int session_check_attempt(struct session *s, struct err *err) MUST_CHECK;

/* The state of this run for a checkpoint. */
struct snapshot session_snapshot(struct session *s);

/* Gather the state of all stages in rank 0's snapshot. A collective call; the previous checkpoint must be
 * written. */
int session_gather(struct session *s, struct err *err) MUST_CHECK;

int64_t session_now_ms(const struct session *s);
double session_seconds_since(const struct session *s, int64_t start_ms);

/* The values for a preset's lines in `epoch` (from 0), except the loss. */
struct lines_values session_lines(const struct session *s, int64_t epoch);

/* Free the training, and close the collectives, so that the other ranks notice at once. The memory that the
 * checkpoint writer reads remains. A second call does nothing. */
void session_leave(struct session *s);

/* session_leave, then wait for the checkpoint writer and free the rest. */
void session_release(struct session *s);
/* After train_release, before the collectives are closed: whether the device was lost, so that its memory
 * cannot be freed (collectives/device.h). */
bool session_device_lost(const struct session *s);
#define cleanup_session __attribute__((cleanup(session_release)))

#endif
