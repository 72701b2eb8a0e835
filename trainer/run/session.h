/* session.h - set up and release what one training run holds: connection to the other ranks, device, data, model,
 * checkpoints, report.
 *
 * Ownership: session_release frees what session_open has acquired, also after session_open failed; cfg and env are
 *            borrowed.
 * Order:     a collective call: every rank makes it. Signals are watched (stop.h) once the ranks have met. Initial
 *            weights are drawn first and the train/validation split after them, from one generator, as the
 *            original program does.
 * Errors:    as run.h says.
 */
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

/* The start of the interval over which the speed is measured. */
struct session_speed {
    int64_t ms, step; /* ms 0: nowhere yet */
    double val_s;
};

/* Members are in the order in which they are acquired. */
struct session {
    const struct config *cfg;   /* &effective */
    const struct config *given; /* the command line's, for what must not depend on the number of ranks */
    struct config effective; /* `given`, plus each rank's batch and the precision that session_open chooses */
    const struct run_env *env;
    int64_t timeout_ms;
    struct rank_slot *slot;          /* what this rank does, for its launcher */
    struct collectives_config ranks; /* those that train, or an idle rank's own */
    struct idle idle;                /* self: nothing below is set up */
    const struct gpu_plugin *plugin; /* NULL: this rank computes on the CPU */
    struct gpu_choice gpu;
    bool nccl; /* several ranks exchange on their GPUs: */
    struct device_comm *device_comm;
    struct collectives *comm;
    struct kctx *ctx;
    struct pod_data data;
    struct pipeline pipeline;
    struct model *model; /* this rank's stage of it */
    struct optim optim;
    struct optim whole_optim; /* rank 0, where ranks have stages: memory for the moments of all of them */
    uint32_t *split_order;
    struct split split;
    struct train train;
    struct run_id run_id;   /* rank 0's counts */
    char run_dir[PATH_MAX]; /* of its checkpoints, in --ckpt_dir */
    struct cursor cursor;
    double *sums; /* [1 + world] as struct snapshot's, at the last checkpoint */
    struct saver saver;
    struct err
        why_synchronous; /* why checkpoints are not written beside the training; kind ERR_NONE: they are */
    double lr;           /* of the last step */
    struct resume_result resumed;
    struct report *report;    /* rank 0 alone */
    bool saves;               /* rank 0 has a --save_path, and then also needs the others' weights */
    int64_t save_every;       /* rank 0's, as the next */
    int64_t histograms_every; /* steps; 0: never, or no --log_dir */
    struct report_times times;
    struct session_speed speed;
    bool left, lost; /* by session_leave: the ranks were left; the device was lost before */
};

int session_open(struct session *s, const struct config *cfg, const struct run_env *env,
                 struct err *err) MUST_CHECK;

/* session_find_device to session_begin are parts of session_open. Find the GPU of this rank, if it is to use one, before
 * the ranks connect. The error is one line: what was asked for, what there is, what to change. */
int session_find_device(struct session *s, struct err *err) MUST_CHECK;

/* Open the GPU's context and NCCL, after the ranks have connected; s->ctx stays NULL on a rank that uses the CPU. */
int session_open_device(struct session *s, struct err *err) MUST_CHECK;

/* Decide how many samples a rank takes per step and how many of them go through it at a time: the same numbers on every rank.
 * ERR_INVALID: --total_batch_tokens is not divisible. */
int session_share_batch(struct session *s, struct err *err) MUST_CHECK;

/* Check that inputs, targets and classes of the data are those of the model. */
int session_check_fit(const struct session *s, struct err *err) MUST_CHECK;

/* Determine the run's id, the step at which it begins or resumes, and which rank saves. */
int session_begin(struct session *s, struct err *err) MUST_CHECK;

/* What a checkpoint holds of this run. */
struct snapshot session_snapshot(struct session *s);

/* Bring the state of all stages into rank 0's snapshot. A collective call, when rank 0 has written the one before. */
int session_gather(struct session *s, struct err *err) MUST_CHECK;

int64_t session_now_ms(const struct session *s);
double session_seconds_since(const struct session *s, int64_t start_ms);

/* Steps of a whole epoch at this number of ranks. */
int64_t session_steps(const struct session *s);

/* The values for a preset's lines in `epoch` (from 0), without the loss. */
struct lines_values session_lines(const struct session *s, int64_t epoch);

/* Free what trains, and leave the other ranks, so that they hear of it now; what a checkpoint is written from stays. A second call
 * does nothing. */
void session_leave(struct session *s);

/* Waits for the checkpoint that is being written, behind session_leave. */
void session_release(struct session *s);
/* After train_release, before the ranks are left: whether the device was lost, so that its memory cannot be freed (collectives/device.h). */
bool session_device_lost(const struct session *s);
#define cleanup_session __attribute__((cleanup(session_release)))

#endif
